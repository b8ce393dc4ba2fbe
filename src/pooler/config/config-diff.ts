/** Changes of a reload: effective at once, for new connections, or only after a restart. */
import { isDeepStrictEqual } from 'node:util';
import { HiddenText } from './hidden-text.js';
import type { AnyOption, ReloadEffect } from './option.js';
import { allOptions, type EntryKind, entryOptions } from './option-table.js';
import type { DatabaseConfig, PoolerConfig } from './pooler-config.js';

/** A changed setting. Contains no secret. */
export interface ConfigChange {
  /** `pooling.poolSize`, `databases.app.host`, or `databases.app` for a database that was added or removed. */
  readonly path: string;
  readonly from: string;
  readonly to: string;
  readonly effect: ReloadEffect;
  /** Why the change needs a restart, where it does. */
  readonly why?: string | undefined;
}

export interface ConfigDiff {
  /** All changes, in the order of the documentation. */
  readonly changes: readonly ConfigChange[];
  /** A setting for all servers has changed: every server connection must be replaced. */
  readonly reconnectAll: boolean;
  /** The configuration to use from now on: `next`, with old values where a change needs a restart. */
  readonly config: PoolerConfig;
}

export function diffConfig(old: PoolerConfig, next: PoolerConfig): ConfigDiff {
  const general = allOptions.flatMap(({ section, key, path, option }) =>
    changeOf(option, path, (old[section] as Values)[key], (next[section] as Values)[key]),
  );
  return {
    changes: [...general, ...entryChanges('databases', old, next), ...entryChanges('users', old, next)],
    reconnectAll: general.some(({ effect }) => effect === 'other-servers'),
    config: withoutRestart(old, next),
  };
}

type Values = Readonly<Record<string, unknown>>;

function changeOf(option: AnyOption, path: string, old: unknown, next: unknown): ConfigChange[] {
  if (isSame(old, next)) return [];
  const { kind, reload, whyRestart } = option;
  return [{ path, from: kind.show(old), to: kind.show(next), effect: reload, why: whyRestart }];
}

function isSame(one: unknown, other: unknown): boolean {
  if (one instanceof HiddenText && other instanceof HiddenText) return one.equals(other);
  return isDeepStrictEqual(one, other);
}

function entryChanges(kind: EntryKind, old: PoolerConfig, next: PoolerConfig): ConfigChange[] {
  const before: ReadonlyMap<string, Values> = old[kind];
  const after: ReadonlyMap<string, Values> = next[kind];
  const added = [...after.keys()].filter((name) => !before.has(name));
  const removed = [...before.keys()].filter((name) => !after.has(name));
  const changes: ConfigChange[] = [
    ...added.map((name) => ({ path: `${kind}.${name}`, from: 'none', to: 'there', effect: 'now' as const })),
    ...removed.map((name) => ({
      path: `${kind}.${name}`,
      from: 'there',
      to: 'none',
      effect: 'now' as const,
    })),
  ];
  for (const [name, is] of after) {
    const was = before.get(name);
    if (was === undefined) continue;
    for (const [key, option] of entryOptions(kind))
      changes.push(...changeOf(option, `${kind}.${name}.${key}`, was[key], is[key]));
  }
  return changes;
}

/** Server connections opened for `was` can't be used for `is`: they go to another server or are opened in another way. */
export function needsOtherServers(was: DatabaseConfig, is: DatabaseConfig): boolean {
  const [before, after]: Values[] = [was, is];
  return entryOptions('databases').some(
    ([key, { reload }]) => reload === 'other-servers' && !isSame(before?.[key], after?.[key]),
  );
}

function withoutRestart(old: PoolerConfig, next: PoolerConfig): PoolerConfig {
  const sections: Record<string, Record<string, unknown>> = {};
  for (const { section, key, option } of allOptions) {
    sections[section] ??= {};
    const kept = option.reload === 'restart' ? old : next;
    sections[section][key] = (kept[section] as Values)[key];
  }
  for (const section of Object.values(sections)) Object.freeze(section);
  return Object.freeze({ ...next, ...sections }) as PoolerConfig;
}
