/**
 * Settings of a session, as statements that apply them to a server. They are immutable: a changed session has other settings.
 * Settings are interned; `===` tells whether the server already has the next client's.
 */

import { createHash } from 'node:crypto';
import { literal, quoteName } from '../../sql/quote.js';
import { isForSuperusers, settingOf } from '../../sql/settings.js';

/** The session user. A change of it ends the present role. */
export const identity = 'session_authorization';

export class Settings {
  /** The statement that sets a setting, by lower-case name. */
  readonly statements: ReadonlyMap<string, string>;
  /** Different settings have different keys. */
  readonly key: string;
  /** Clients with equal keys share prepared statements. */
  readonly planKey: string;
  /** No server will refuse these settings, so a query can be sent along without waiting. Others, such as SET ROLE, are confirmed first. */
  readonly areSure: boolean;
  /** A session with another user may have settings that only that user can reset. */
  readonly areStuck: boolean;
  /** A server may refuse to reset them. */
  readonly mayStick: boolean;
  /** Bytes of names and statements. */
  readonly size: number;

  /** Only the registry calls this. */
  constructor(statements: ReadonlyMap<string, string>, key: string) {
    this.statements = statements;
    this.key = key;
    this.planKey = keyOf([...statements].filter(([name]) => settingOf(name).isOutsideOfPlans !== true));
    const names = [...statements.keys()];
    let size = 0;
    for (const [name, statement] of statements) size += name.length + statement.length;
    this.size = size;
    this.areSure = names.every((name) => settingOf(name).isSure === true);
    const isSomeoneElse = statements.has(identity) || statements.has('role');
    const hasPrivileged = names.some(isForSuperusers);
    this.areStuck = isSomeoneElse && hasPrivileged;
    this.mayStick = isSomeoneElse || hasPrivileged;
  }

  /** Size with another statement for one setting, or with none. */
  sizeWith(name: string, statement: string | undefined): number {
    const key = name.toLowerCase();
    const before = this.statements.get(key);
    const without = before === undefined ? this.size : this.size - key.length - before.length;
    return statement === undefined ? without : without + key.length + statement.length;
  }
}

export class SettingsRegistry {
  readonly none: Settings = new Settings(new Map(), '');
  readonly #known = new Map<string, WeakRef<Settings>>();
  readonly #forgotten = new FinalizationRegistry<string>((key) => {
    if (this.#known.get(key)?.deref() === undefined) this.#known.delete(key);
  });

  get size(): number {
    return this.#known.size;
  }

  /** A copy with one setting changed. */
  with(settings: Settings, name: string, statement: string): Settings {
    const key = name.toLowerCase();
    if (settings.statements.get(key) === statement) return settings;
    return this.of(new Map(settings.statements).set(key, statement));
  }

  without(settings: Settings, name: string): Settings {
    const key = name.toLowerCase();
    if (!settings.statements.has(key)) return settings;
    const statements = new Map(settings.statements);
    statements.delete(key);
    return this.of(statements);
  }

  /** A copy with one setting as in `others`. */
  withOneOf(settings: Settings, name: string, others: Settings): Settings {
    return this.put(settings, name, others.statements.get(name.toLowerCase()));
  }

  /** A copy with one setting changed; without a statement it has the server's default. */
  put(settings: Settings, name: string, statement: string | undefined): Settings {
    return statement === undefined ? this.without(settings, name) : this.with(settings, name, statement);
  }

  of(statements: ReadonlyMap<string, string>): Settings {
    if (statements.size === 0) return this.none;
    const key = keyOf(statements);
    const known = this.#known.get(key)?.deref();
    if (known !== undefined) return known;
    const settings = new Settings(statements, key);
    this.#known.set(key, new WeakRef(settings));
    this.#forgotten.register(settings, key);
    return settings;
  }
}

/** Limit of a key's length, since keys are parts of other keys; a longer key is hashed. */
const longestKey = 256;

/** JSON, so that no name or value can be mistaken for the end of another. */
function keyOf(statements: Iterable<readonly [string, string]>): string {
  const entries = [...statements];
  if (entries.length === 0) return '';
  const key = JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  return key.length <= longestKey ? key : createHash('sha256').update(key).digest('base64');
}

/** The call that sets a setting; `isLocal`: until the end of the transaction. */
export function setConfigCall(name: string, value: string, isLocal: boolean): string {
  return `pg_catalog.set_config(${literal(name)}, ${literal(value)}, ${isLocal})`;
}

/** The statement for a setting whose value is in the server's notation. Aurora DSQL refuses set_config(). */
export function setStatement(name: string, value: string, isDsql: boolean): string {
  return isDsql ? setText('SET', name, value) : `SELECT ${setConfigCall(name, value, false)}`;
}

/** SET or SET LOCAL, for a server without set_config(). */
export function setText(verb: 'SET' | 'SET LOCAL', name: string, value: string): string {
  const values = name.toLowerCase() === searchPath ? (listOf(value) ?? [value]) : [value];
  return `${verb} ${quotedName(name)} = ${values.map(literal).join(', ')}`;
}

/** The only setting of DSQL whose value SET takes as a list of names. */
export const searchPath = 'search_path';

export function isNameList(value: string): boolean {
  return listOf(value) !== undefined;
}

/** Names in a list, as PostgreSQL reads them; undefined where it would refuse the list. */
function listOf(value: string): string[] | undefined {
  const names: string[] = [];
  const pattern = /\s*(?:"((?:[^"]|"")*)"|([^",\s]+))\s*(,|$)/y;
  let isOpen = value.trim() !== '';
  if (!isOpen) return [''];
  while (isOpen) {
    const [, quoted, plain = '', end] = pattern.exec(value) ?? [];
    if (end === undefined) return undefined;
    names.push(quoted === undefined ? plain.toLowerCase() : quoted.replaceAll('""', '"'));
    isOpen = end === ',';
  }
  return names;
}

/** A name may have a prefix: `my.setting`. */
export function quotedName(name: string): string {
  return name.split('.').map(quoteName).join('.');
}
