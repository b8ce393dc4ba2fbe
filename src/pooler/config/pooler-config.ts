/**
 * Configuration of the pooler: complete, checked and frozen. Times are milliseconds, sizes are bytes; 0 stands for "off" or "no
 * limit" where an option can be turned off.
 */

import type { ValuesOf } from './option.js';
import type { entryTable, OptionTable, SectionName } from './option-table.js';

/** General settings, by section: `config.pooling.poolSize`. */
export type GeneralConfig = { readonly [Section in SectionName]: ValuesOf<OptionTable[Section]> };

/** A database that clients may ask for. Undefined options have the general value. */
export type DatabaseConfig = { readonly name: string } & ValuesOf<(typeof entryTable)['databases']>;

/** A user. Undefined options have the value of the database, or the general one. */
export type UserConfig = { readonly name: string } & ValuesOf<(typeof entryTable)['users']>;

export interface PoolerConfig extends GeneralConfig {
  /** By the name that clients use. `*` stands for all others. */
  readonly databases: ReadonlyMap<string, DatabaseConfig>;
  readonly users: ReadonlyMap<string, UserConfig>;
}

/** Names of the console, which can't be databases. */
export const consoleDatabases: readonly string[] = ['headgate', 'pgbouncer'];

export const fallbackDatabase = '*';

/** The database that a client asks for, with its name on the server; undefined where there is none. */
export function databaseFor(config: PoolerConfig, name: string): DatabaseConfig | undefined {
  const database = config.databases.get(name) ?? config.databases.get(fallbackDatabase);
  if (database === undefined) return undefined;
  const last = lastAsked.get(database);
  if (last?.name === name) return last;
  const named = Object.freeze({ ...database, name, dbname: database.dbname ?? name });
  lastAsked.set(database, named);
  return named;
}

/** Files with rules, where they are used: as with PgBouncer, only with `hba`. */
export function ruleFilesOf({
  auth,
}: PoolerConfig): Partial<Pick<PoolerConfig['auth'], 'hbaFile' | 'identFile'>> {
  return auth.type === 'hba' ? auth : {};
}

/** Cache: every login asks, and most ask for the same database. */
const lastAsked = new WeakMap<DatabaseConfig, DatabaseConfig>();

/** An immutable map. */
export function frozenMap<V>(entries: Iterable<readonly [string, V]>): ReadonlyMap<string, V> {
  const map = new Map(entries);
  const refuse = (): never => {
    throw new TypeError('the configuration can not be changed');
  };
  return Object.freeze(Object.assign(map, { set: refuse, delete: refuse, clear: refuse }));
}
