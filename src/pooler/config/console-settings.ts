/** Settings as the console shows and changes them: by PgBouncer's names, in PgBouncer's notation. */
import { nearest } from '../../kernel/nearest.js';
import { ConfigError, Misread, Problems, show } from './config-problems.js';
import { checkTogether } from './cross-checks.js';
import { databaseOptions } from './entry-options.js';
import type { ReadContext } from './kind.js';
import type { AnyOption, OptionGroup } from './option.js';
import { allOptions, entryOptions, type ListedOption, optionTable } from './option-table.js';
import { type DatabaseConfig, frozenMap, type PoolerConfig } from './pooler-config.js';

/** A row of SHOW CONFIG. */
export interface ConsoleSetting {
  readonly key: string;
  readonly value: string;
  readonly default: string;
  /** SET can change it. */
  readonly changeable: boolean;
}

/** In the order of the names. */
export function consoleSettings(config: PoolerConfig): ConsoleSetting[] {
  return allOptions
    .map(({ section, key, option: { name, kind, default: usual, reload } }) => ({
      key: name,
      value: kind.toIni((config[section] as Readonly<Record<string, unknown>>)[key]),
      default: kind.toIni(usual),
      changeable: reload !== 'restart',
    }))
    .sort((one, other) => (one.key < other.key ? -1 : 1));
}

/** The configuration after a SET of one setting. Throws a `ConfigError`. */
export function withConsoleSetting(config: PoolerConfig, name: string, value: string): PoolerConfig {
  return withConsoleSettings(config, [[name, value]]);
}

/** The configuration after a SET of several settings at once. Throws a `ConfigError`. */
export function withConsoleSettings(
  config: PoolerConfig,
  settings: Iterable<readonly [name: string, value: string]>,
): PoolerConfig {
  const problems = new Problems();
  let changed = config;
  for (const [name, value] of settings) changed = change(changed, name, value, problems);
  if (problems.list.length === 0) checkTogether({ config: changed, places: new Map() }, problems, true);
  if (problems.list.length > 0) throw new ConfigError(problems.list);
  return changed;
}

function change(config: PoolerConfig, name: string, value: string, problems: Problems): PoolerConfig {
  const listed = find(name);
  if (listed === undefined) {
    const guess = nearest(
      name,
      allOptions.map(({ option }) => option.name),
    );
    const meant = guess === undefined ? '' : `; did you mean ${guess}?`;
    problems.add('', `${show(name)} is not a setting${meant}`);
    return config;
  }
  const { section, key, option } = listed;
  if (option.reload === 'restart') {
    problems.add(option.name, `can't be changed while the pooler runs: ${option.whyRestart}`);
    return config;
  }
  try {
    const side =
      option.pgbouncer?.name === undefined || option.pgbouncer.name === name ? option.pgbouncer : {};
    const data = side?.toData === undefined ? option.kind.iniToData(value) : side.toData(value);
    const context = { folder: process.cwd(), environment: {}, readsFiles: true };
    const read = data === undefined ? option.default : option.kind.fromData(data, context);
    const beside = valuesOf(optionTable[section], side?.also?.(value, config) ?? {}, context);
    const next = Object.freeze({ ...config[section], ...beside, [key]: read });
    return withOwnWords(Object.freeze({ ...config, [section]: next }), option.name, context);
  } catch (error) {
    if (!(error instanceof Misread)) throw error;
    problems.add(option.name, error.message);
    return config;
  }
}

/** Settings that an option's value implies, in the form of a configuration file; undefined stands for the default. */
function valuesOf(
  options: OptionGroup,
  said: Readonly<Record<string, unknown>>,
  context: ReadContext,
): Readonly<Record<string, unknown>> {
  const values = Object.entries(said).map(([key, data]) => {
    const { kind, default: usual } = options[key] as AnyOption;
    return [key, data === undefined ? usual : kind.fromData(data, context)];
  });
  return Object.fromEntries(values);
}

/** A database's own value takes precedence over a setting implied by the general one. */
function withOwnWords(config: PoolerConfig, name: string, context: ReadContext): PoolerConfig {
  const [key, own] = entryOptions('databases').find(([, option]) => option.name === name) ?? [];
  const also = own?.pgbouncer?.also;
  if (key === undefined || own === undefined || also === undefined) return config;
  const databases = Array.from(config.databases, ([database, entry]): [string, DatabaseConfig] => {
    const value = (entry as Readonly<Record<string, unknown>>)[key];
    if (value === undefined) return [database, entry];
    const beside = valuesOf(databaseOptions, also(own.kind.toIni(value), config), context);
    const given = Object.entries(entry).filter(([, said]) => said !== undefined);
    return [database, Object.freeze({ ...entry, ...beside, ...Object.fromEntries(given) })];
  });
  return Object.freeze({ ...config, databases: frozenMap(databases) });
}

/** PgBouncer has other names for a few options. */
function find(name: string): ListedOption | undefined {
  return allOptions.find(({ option }) => option.name === name || option.pgbouncer?.name === name);
}
