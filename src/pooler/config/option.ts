/** One option of the pooler with everything about it. All else derives from this. */
import type { Kind } from './kind.js';

/**
 * Effect of a reload on a setting. What a reload does, its log, the console and the documentation all go by this alone.
 *
 * - `now`: the new value holds at once, also for what is open.
 * - `new-clients`: for clients that connect from then on.
 * - `new-servers`: for server connections opened from then on; open ones close when they are given back.
 * - `other-servers`: as `new-servers`, and open ones must be replaced: a client in session mode that keeps one may be disconnected.
 * - `restart`: none, until the pooler is started again.
 */
export type ReloadEffect = 'now' | 'new-clients' | 'new-servers' | 'other-servers' | 'restart';

/** When a changed setting holds: the word of the log, and the text of a column of the documentation. */
export const reloadTexts: Readonly<Record<ReloadEffect, { readonly word: string; readonly column: string }>> =
  {
    now: { word: 'now', column: 'at once' },
    'new-clients': { word: 'new_clients', column: 'new clients' },
    'new-servers': { word: 'new_servers', column: 'new server connections' },
    'other-servers': { word: 'all_servers', column: 'all server connections' },
    restart: { word: 'restart', column: 'restart' },
  };

/** For settings of listening sockets. */
export const boundAtStart = { reload: 'restart', whyRestart: 'sockets are opened at the start' } as const;

/** General settings that decide how an entry's own setting is imported. */
export interface SaidForAll {
  readonly pooling?: { readonly serverLifetime?: unknown; readonly serverMaxUses?: unknown };
}

/** PgBouncer's option for the same setting, and the differences. */
export interface PgBouncerSide {
  /** Name in PgBouncer, if different. */
  readonly name?: string;
  /** Default in pgbouncer.ini notation, if different, and why. */
  readonly otherDefault?: { readonly ini: string; readonly why: string };
  /** Difference in meaning of a value that is carried over. */
  readonly difference?: string;
  /** Values with that difference; without this, all. */
  readonly differsFor?: (ini: string) => boolean;
  /** Converts values whose notation differs from the kind's. Undefined: as if not given. */
  readonly toData?: (ini: string) => unknown;
  /** True if the option is left out, given the section's other values, because it would mean more here than in PgBouncer. */
  readonly isUnused?: (section: Readonly<Record<string, unknown>>) => boolean;
  /** In PgBouncer, 0 for a database or a user stands for the general value, as if it were not given. */
  readonly zeroIsUnset?: boolean;
  /** Settings that must be added beside it, by keys of the same section or entry; undefined removes one. */
  readonly also?: (ini: string, said: SaidForAll) => Readonly<Record<string, unknown>>;
}

export interface OptionDetails {
  /** With underscores; PgBouncer's name where it has the option. Flag and variable are derived from it. */
  readonly name: string;
  readonly meaning: string;
  readonly reload: ReloadEffect;
  /** Required for options that need a restart. */
  readonly whyRestart?: string;
  /** Undefined where PgBouncer has no such option. */
  readonly pgbouncer?: PgBouncerSide;
  /** The default in words, where the value alone is unclear. */
  readonly defaultText?: string;
}

export interface Option<T> extends OptionDetails {
  readonly kind: Kind<T>;
  readonly default: T;
}

export function option<T>(kind: Kind<T>, usual: T, details: OptionDetails): Option<T> {
  return Object.freeze({ ...details, kind, default: usual });
}

/** An option of one database or one user: undefined where it is not given, and the general value applies. */
export function override<T>(kind: Kind<T>, details: OptionDetails): Option<T | undefined> {
  return option<T | undefined>(orNothing(kind), undefined, details);
}

/** Reads as the kind does; undefined only where the option is not given. */
function orNothing<T>(kind: Kind<T>): Kind<T | undefined> {
  return {
    ...kind,
    show: (value) => (value === undefined ? 'none' : kind.show(value)),
    toIni: (value) => (value === undefined ? '' : kind.toIni(value)),
  };
}

/** For loops over all options, where the types of values are unknown. */
export type AnyOption = Option<unknown>;

/** Options by their key in a configuration file. */
export type OptionGroup = Readonly<Record<string, AnyOption>>;

export type ValueOf<O> = O extends { readonly default: infer T } ? T : never;

export type ValuesOf<Group> = { readonly [Key in keyof Group]: ValueOf<Group[Key]> };

export function flagOf({ name }: { readonly name: string }): string {
  return `--${name.replaceAll('_', '-')}`;
}

export function variableOf({ name }: { readonly name: string }): string {
  return `HEADGATE_${name.toUpperCase()}`;
}

/** Includes the meaning of 0, unless the default is 0. */
export function meaningOf({ kind, meaning, default: usual }: AnyOption): string {
  return kind.zero === undefined || usual === 0 ? meaning : `${meaning}; 0: ${kind.zero}`;
}

export function defaultOf(known: AnyOption): string {
  return known.defaultText ?? known.kind.show(known.default);
}
