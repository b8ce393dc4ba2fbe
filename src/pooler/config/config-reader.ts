/**
 * Reads a configuration from all its sources: flags take precedence over variables, variables over the file, and the file over
 * defaults. Keeps the place of each setting, and collects problems instead of stopping at the first.
 */
import type { Environment } from '../../kernel/environment.js';
import { nearest } from '../../kernel/nearest.js';
import { Misread, type Place, type Problems, show } from './config-problems.js';
import type { ConfigTree } from './config-tree.js';
import { type Entry, entriesOfTree, entryOfText } from './entries.js';
import type { PresetName } from './fair-share-options.js';
import { isMapping, type ReadContext } from './kind.js';
import { type AnyOption, flagOf, variableOf } from './option.js';
import {
  allOptions,
  type EntryKind,
  entryKinds,
  entryOptions,
  optionTable,
  type SectionName,
} from './option-table.js';
import { type DatabaseConfig, frozenMap, type PoolerConfig, type UserConfig } from './pooler-config.js';
import { presets } from './presets.js';
import { parseYaml } from './yaml-tree.js';

/** Values of variables that are not named after an option. */
export type OtherVariables = ReadonlyMap<string, { readonly variable: string; readonly text: string }>;

export interface ConfigSources {
  /** Values from the command line, by option name; `databases` and `users` have one text per entry. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  readonly environment: Environment;
  /** Values of other variables, by option name; Headgate's own variables take precedence. */
  readonly otherVariables?: OtherVariables | undefined;
  readonly tree: ConfigTree | undefined;
  /** Base folder of relative paths in flags and variables. */
  readonly folder: string;
  /** False: contents of files are not checked, since they may be on another machine. */
  readonly readsFiles: boolean;
}

export interface ConfigReading {
  /** Valid only without problems. */
  readonly config: PoolerConfig;
  /** Place of each setting, by its path; settings without one have their default. */
  readonly places: ReadonlyMap<string, Place>;
}

export function readConfig(sources: ConfigSources, problems: Problems): ConfigReading {
  return new ConfigReader(sources, problems).read();
}

/** Maximum of `pooling.poolSize`. */
const largestPool = 1_000_000;

class ConfigReader {
  readonly #sources: ConfigSources;
  readonly #problems: Problems;
  readonly #places = new Map<string, Place>();
  #preset: PresetName = 'none';

  constructor(sources: ConfigSources, problems: Problems) {
    this.#sources = sources;
    this.#problems = problems;
  }

  read(): ConfigReading {
    const { tree } = this.#sources;
    if (tree !== undefined) this.#refuseUnknown(tree);
    const sections: Record<string, Record<string, unknown>> = {};
    for (const { section, key, path, option } of allOptions) {
      sections[section] ??= {};
      sections[section][key] = this.#value(option, section, key, path);
      if (path === 'fairShares.preset') this.#preset = sections[section][key] as PresetName;
    }
    this.#fillPoolSize(sections);
    for (const section of Object.values(sections)) Object.freeze(section);
    const databases = this.#entries('databases') as ReadonlyMap<string, DatabaseConfig>;
    const users = this.#entries('users') as ReadonlyMap<string, UserConfig>;
    // Every section of the table was filled, key by key.
    const config = Object.freeze({ ...sections, databases, users }) as unknown as PoolerConfig;
    return { config, places: this.#places };
  }

  #value(option: AnyOption, section: SectionName, key: string, path: string): unknown {
    const { flags, environment, otherVariables, tree, folder } = this.#sources;
    const flag = flags.get(option.name)?.at(-1);
    if (flag !== undefined)
      return this.#take(option, path, { source: flagOf(option) }, () =>
        option.kind.fromText(flag, this.#context(folder)),
      );
    const other = otherVariables?.get(option.name);
    const own = variableOf(option);
    const inEnvironment = environment[own]?.trim() || other?.text;
    const variable = environment[own]?.trim() ? own : (other?.variable ?? own);
    if (inEnvironment)
      return this.#take(option, path, { source: variable }, () =>
        option.kind.fromText(inEnvironment, this.#context(folder)),
      );
    const values = tree?.data[section];
    const data = isMapping(values) ? (values[key] ?? undefined) : undefined;
    if (tree === undefined || data === undefined) return this.#usual(option, section, key, path);
    return this.#take(option, path, tree.placeOf([section, key]), () =>
      option.kind.fromData(data, this.#context(tree.folder)),
    );
  }

  /** Value of the preset, or the default. */
  #usual(option: AnyOption, section: SectionName, key: string, path: string): unknown {
    const value = section === 'fairShares' ? presets[this.#preset][key] : undefined;
    if (value === undefined) return option.default;
    this.#places.set(path, { source: `preset ${this.#preset}` });
    return option.kind.fromData(value, this.#context(''));
  }

  /** With a limit for all connections and none for a pool, fairness alone limits the pool. */
  #fillPoolSize(sections: Record<string, Record<string, unknown>>): void {
    if (this.#places.has('pooling.poolSize')) return;
    const fleetLimit = sections['fleet']?.['limit'] || undefined;
    const budgets = [
      ['fairShares.capacity', sections['fairShares']?.['capacity']],
      ['fleet.limit', fleetLimit],
    ] as const;
    const [source, size] = budgets.find(([, value]) => typeof value === 'number') ?? [];
    if (source === undefined) return;
    (sections['pooling'] as Record<string, unknown>)['poolSize'] = Math.min(size as number, largestPool);
    this.#places.set('pooling.poolSize', { source });
  }

  /** A value of the wrong kind is a problem, and is read as the default. */
  #take(option: AnyOption, path: string, place: Place, read: () => unknown): unknown {
    this.#places.set(path, place);
    try {
      return read();
    } catch (error) {
      if (!(error instanceof Misread)) throw error;
      this.#problems.add(path, error.message, place);
      return option.default;
    }
  }

  #context(folder: string): ReadContext {
    const { environment, readsFiles } = this.#sources;
    return { folder, environment, readsFiles };
  }

  /** An entry replaces the entry of the same name from a weaker source. */
  #entries(kind: EntryKind): ReadonlyMap<string, object> {
    const { tree } = this.#sources;
    const found = new Map<string, Entry>();
    const fromFile = tree === undefined ? [] : entriesOfTree(kind, tree, this.#problems);
    for (const entry of [...fromFile, ...this.#entriesOfVariable(kind), ...this.#entriesOfFlags(kind)])
      found.set(entry.name, entry);
    return frozenMap([...found].map(([name, entry]) => [name, this.#entry(kind, entry)] as const));
  }

  #entriesOfFlags(kind: EntryKind): Entry[] {
    const { flags, folder } = this.#sources;
    const flag = kind === 'databases' ? '--database' : '--user';
    return (flags.get(kind) ?? []).flatMap(
      (text) => entryOfText(kind, text, flag, folder, this.#problems) ?? [],
    );
  }

  /** A mapping as in a file, or one line per entry as in pgbouncer.ini. */
  #entriesOfVariable(kind: EntryKind): Entry[] {
    const { environment, folder } = this.#sources;
    const variable = `HEADGATE_${kind.toUpperCase()}`;
    const text = environment[variable]?.trim() ?? '';
    if (text.startsWith('{')) {
      const tree = parseYaml(text, variable, folder, this.#problems);
      const inside: ConfigTree = {
        data: { [kind]: tree.data },
        folder,
        placeOf: () => ({ source: variable }),
      };
      return entriesOfTree(kind, inside, this.#problems);
    }
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    return lines.flatMap((line) => entryOfText(kind, line, variable, folder, this.#problems) ?? []);
  }

  #entry(kind: EntryKind, { name, place, folder, values }: Entry): object {
    const path = `${kind}.${name}`;
    this.#places.set(path, place);
    const config: Record<string, unknown> = { name };
    const context = this.#context(folder);
    for (const [key, option] of entryOptions(kind)) {
      const given = values.get(key);
      config[key] =
        given === undefined ? option.default : this.#entryValue(option, `${path}.${key}`, given, context);
    }
    return Object.freeze(config);
  }

  #entryValue(
    option: AnyOption,
    path: string,
    given: { readonly place: Place } & ({ readonly data: unknown } | { readonly text: string }),
    context: ReadContext,
  ): unknown {
    this.#places.set(path, given.place);
    try {
      return 'text' in given
        ? option.kind.fromText(given.text, context)
        : option.kind.fromData(given.data, context);
    } catch (error) {
      if (!(error instanceof Misread)) throw error;
      this.#problems.add(path, error.message, given.place);
      return option.default;
    }
  }

  #refuseUnknown({ data, placeOf }: ConfigTree): void {
    const sections = [...Object.keys(optionTable), ...entryKinds];
    for (const [section, values] of Object.entries(data)) {
      if (!sections.includes(section)) {
        this.#problems.add(section, unknownHere(section, sections), placeOf([section]));
        continue;
      }
      if (!Object.hasOwn(optionTable, section) || values === null || values === undefined) continue;
      if (!isMapping(values)) {
        const message = `must be a mapping of settings to their values, not ${show(values)}`;
        this.#problems.add(section, message, placeOf([section]));
        continue;
      }
      const keys = Object.keys(optionTable[section as SectionName]);
      for (const key of Object.keys(values)) {
        if (keys.includes(key)) continue;
        this.#problems.add(`${section}.${key}`, unknownHere(key, keys), placeOf([section, key]));
      }
    }
  }
}

/** A key of another section, or PgBouncer's name, is most likely what was meant. */
function unknownHere(key: string, known: readonly string[]): string {
  if (key === '<<') return 'is not supported: there is nothing to merge';
  const elsewhere = allOptions.find(({ key: other, option }) => other === key || option.name === key);
  const guess = nearest(key, known);
  if (elsewhere !== undefined && !known.includes(elsewhere.key))
    return `is not known here; did you mean ${elsewhere.path}?`;
  if (elsewhere !== undefined) return `is not known here; did you mean ${elsewhere.key}?`;
  return `is not known here; ${guess === undefined ? `known are ${known.join(', ')}` : `did you mean ${guess}?`}`;
}
