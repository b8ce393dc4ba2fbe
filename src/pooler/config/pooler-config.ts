/**
 * The configuration of the pooler: complete, checked and frozen. Times are milliseconds, sizes are bytes; 0 stands for
 * "off" or "no limit" where an option can be switched off.
 */

import type { ValuesOf } from './option.js';
import type { entryTable, OptionTable, SectionName } from './option-table.js';

/** What holds for all, by section: `config.pooling.poolSize`. */
export type GeneralConfig = { readonly [Section in SectionName]: ValuesOf<OptionTable[Section]> };

/** A database that clients may ask for. What is undefined is as it is for all. */
export type DatabaseConfig = { readonly name: string } & ValuesOf<(typeof entryTable)['databases']>;

/** A user. What is undefined is as it is for the database, or for all. */
export type UserConfig = { readonly name: string } & ValuesOf<(typeof entryTable)['users']>;

export interface PoolerConfig extends GeneralConfig {
  /** By the name that clients use. `*` stands for all others. */
  readonly databases: ReadonlyMap<string, DatabaseConfig>;
  readonly users: ReadonlyMap<string, UserConfig>;
}

/** The names that lead to the console, and can't be databases. */
export const consoleDatabases: readonly string[] = ['headgate', 'pgbouncer'];

export const fallbackDatabase = '*';

/** The database that a client asks for, its name on the server filled in; undefined where there is none. */
export function databaseFor(config: PoolerConfig, name: string): DatabaseConfig | undefined {
  const database = config.databases.get(name) ?? config.databases.get(fallbackDatabase);
  if (database === undefined) return undefined;
  const last = lastAsked.get(database);
  if (last?.name === name) return last;
  const named = Object.freeze({ ...database, name, dbname: database.dbname ?? name });
  lastAsked.set(database, named);
  return named;
}

/** The files with rules, where they are used: as with PgBouncer, they have a meaning with `hba` only. */
export function ruleFilesOf({
  auth,
}: PoolerConfig): Partial<Pick<PoolerConfig['auth'], 'hbaFile' | 'identFile'>> {
  return auth.type === 'hba' ? auth : {};
}

/** Every client that comes asks, and most ask for the same. */
const lastAsked = new WeakMap<DatabaseConfig, DatabaseConfig>();

/** A map that nobody can change. */
export function frozenMap<V>(entries: Iterable<readonly [string, V]>): ReadonlyMap<string, V> {
  const map = new Map(entries);
  const refuse = (): never => {
    throw new TypeError('the configuration can not be changed');
  };
  return Object.freeze(Object.assign(map, { set: refuse, delete: refuse, clear: refuse }));
}
