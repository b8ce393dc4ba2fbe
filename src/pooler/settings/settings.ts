/**
 * The settings of a session, as statements that bring a server there. They never change: a changed session has other
 * settings. Equal ones are the same object, so that one comparison tells whether a server is as its next client left
 * the last one.
 */

import { createHash } from 'node:crypto';

/** Who one is. The role that one plays ends with it. */
export const identity = 'session_authorization';

/** These change neither what a statement means nor how it is planned: clients with different ones share statements. */
const irrelevantForPlans = new Set([
  'application_name',
  'bytea_output',
  'client_min_messages',
  'extra_float_digits',
  'idle_in_transaction_session_timeout',
  'idle_session_timeout',
  'lock_timeout',
  'statement_timeout',
  'transaction_timeout',
]);

/** What a server has accepted once for these, any server of the database accepts. */
const sureNames = new Set([
  ...irrelevantForPlans,
  'client_encoding',
  'datestyle',
  'default_transaction_deferrable',
  'default_transaction_isolation',
  'default_transaction_read_only',
  'intervalstyle',
  'search_path',
  'standard_conforming_strings',
  'timezone',
]);

/** Only who may do everything can set them, and set them back. */
const forSuperusers =
  /^(?:session_replication_role|log_|track_|debug_|wal_|zero_damaged_pages|ignore_checksum|lo_compat|temp_file_limit|deadlock_timeout|max_stack_depth|dynamic_library_path|commit_delay|allow_|event_triggers|compute_query_id|backtrace_functions|jit_(?:debugging|dump|profiling)|session_preload|auto_explain\.|pg_stat_statements\.)/;

export class Settings {
  /** By the lower-case name of the setting: the statement that sets it. */
  readonly statements: ReadonlyMap<string, string>;
  /** Different settings have different keys. */
  readonly key: string;
  /** Prepared statements are shared by clients for whom this is equal. */
  readonly planKey: string;
  /**
   * No server will refuse them, so that a query can be sent along without waiting for the answer. Of others, such as SET
   * ROLE, it is better to know first that they hold.
   */
  readonly areSure: boolean;
  /** Who has become somebody else may have settings that nobody else can set back. */
  readonly areStuck: boolean;
  /** A server may refuse to take them back. */
  readonly mayStick: boolean;
  /** Bytes of names and statements. */
  readonly size: number;

  /** Made by the registry alone. */
  constructor(statements: ReadonlyMap<string, string>, key: string) {
    this.statements = statements;
    this.key = key;
    this.planKey = keyOf([...statements].filter(([name]) => !irrelevantForPlans.has(name)));
    const names = [...statements.keys()];
    let size = 0;
    for (const [name, statement] of statements) size += name.length + statement.length;
    this.size = size;
    this.areSure = names.every((name) => sureNames.has(name));
    const isSomeoneElse = statements.has(identity) || statements.has('role');
    const hasPrivileged = names.some((name) => forSuperusers.test(name));
    this.areStuck = isSomeoneElse && hasPrivileged;
    this.mayStick = isSomeoneElse || hasPrivileged;
  }

  /** The size with another statement for one setting, or with none. */
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

  /** The same but for one setting. */
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

  /** The same, but for one setting that is as it is in `others`. */
  withOneOf(settings: Settings, name: string, others: Settings): Settings {
    return this.put(settings, name, others.statements.get(name.toLowerCase()));
  }

  /** The same, but for one setting; without a statement it is what servers have by themselves. */
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

/** Keys are parts of other keys: what is longer is hashed. */
const longestKey = 256;

/** As JSON, no name or value can be mistaken for the end of another. */
function keyOf(statements: Iterable<readonly [string, string]>): string {
  const entries = [...statements];
  if (entries.length === 0) return '';
  const key = JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  return key.length <= longestKey ? key : createHash('sha256').update(key).digest('base64');
}

/** The call that sets it; `isLocal`: until the end of the transaction. */
export function setConfigCall(name: string, value: string, isLocal: boolean): string {
  return `pg_catalog.set_config(${literal(name)}, ${literal(value)}, ${isLocal})`;
}

/** The statement for a setting whose value is known as the server shows it. Aurora DSQL refuses set_config(). */
export function setStatement(name: string, value: string, isDsql: boolean): string {
  return isDsql ? setText('SET', name, value) : `SELECT ${setConfigCall(name, value, false)}`;
}

/** SET or SET LOCAL, for a server without set_config(). */
export function setText(verb: 'SET' | 'SET LOCAL', name: string, value: string): string {
  const values = name.toLowerCase() === searchPath ? (listOf(value) ?? [value]) : [value];
  return `${verb} ${quotedName(name)} = ${values.map(literal).join(', ')}`;
}

/** Of the settings that DSQL has, the one whose value SET takes as a list of names. */
export const searchPath = 'search_path';

export function isNameList(value: string): boolean {
  return listOf(value) !== undefined;
}

/** The names in a list, as PostgreSQL reads them; undefined where it would refuse the list. */
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

/** How a server is brought from some settings to others. */
export interface Transition {
  /** Takes back who one is, the role that one plays and whatever is left; empty for nothing. */
  readonly resets: string;
  /** Sets what is wanted; empty for nothing. */
  readonly sets: string;
}

/** Where clients with different settings take turns, the same steps are asked for again and again. */
const transitions = new WeakMap<Settings, WeakMap<Settings, Transition>>();

export function transition(from: Settings, to: Settings): Transition {
  const fromHere = transitions.get(from) ?? new WeakMap<Settings, Transition>();
  transitions.set(from, fromHere);
  const steps = fromHere.get(to) ?? transitionBetween(from.statements, to.statements);
  fromHere.set(to, steps);
  return steps;
}

/** All of a transition in one text. */
export function textOf({ resets, sets }: Transition): string {
  return resets === '' || sets === '' ? resets + sets : `${resets}; ${sets}`;
}

/**
 * Identity and role are reset first, so that the login user resets settings that nobody else may reset, and are set last, when
 * everything else is set. A change of identity ends the role.
 */
function transitionBetween(from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>): Transition {
  const isPerson = (name: string): boolean => name === identity || name === 'role';
  const leftovers = [...from.keys()].filter((name) => !to.has(name) && !isPerson(name));
  const changed = [...to].filter(([name, statement]) => from.get(name) !== statement && !isPerson(name));
  const [fromPerson, person, fromRole, role] = [
    from.get(identity),
    to.get(identity),
    from.get('role'),
    to.get('role'),
  ];
  const changesSettings = changed.length > 0 || leftovers.length > 0;
  const leavesPerson = fromPerson !== undefined && (changesSettings || fromPerson !== person);
  const takesPerson = person !== undefined && (leavesPerson || fromPerson === undefined);
  const leavesRole =
    fromRole !== undefined && (leavesPerson || takesPerson || changesSettings || fromRole !== role);
  const takesRole =
    role !== undefined && (leavesRole || takesPerson || leavesPerson || fromRole === undefined);
  const resets = leftovers.map((name) => `RESET ${quotedName(name)}`);
  if (leavesPerson) resets.unshift('RESET SESSION AUTHORIZATION');
  else if (leavesRole) resets.unshift('RESET "role"');
  const sets = changed.map(([, statement]) => statement);
  if (takesPerson) sets.push(person);
  if (takesRole) sets.push(role);
  return { resets: resets.join('; '), sets: sets.join('; ') };
}

/** Good with either value of `standard_conforming_strings`. */
export function literal(text: string): string {
  const doubled = text.replaceAll("'", "''");
  return doubled.includes('\\') ? ` E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`;
}

/** A name may have a prefix: `my.setting`. */
export function quotedName(name: string): string {
  return name
    .split('.')
    .map((part) => `"${part.replaceAll('"', '""')}"`)
    .join('.');
}
