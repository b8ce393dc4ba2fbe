/**
 * Names of functions and views that change a session beyond the transaction, run SQL that the text does not show, or
 * read what an earlier statement left in the session. A name counts wherever it stands as an identifier, since a
 * function can be called in many forms.
 */
import { isHarmlessFunctionName } from './harmless-functions.js';

/** Effect of a statement that has such a name in it. */
export interface NameEffect {
  /** For sharing a connection between queries: the session changes, or the text does not show the effect. */
  readonly touch: 'session' | 'opaque';
  /** Something may be left in the session after the transaction. */
  readonly mayLeave: boolean;
  /** No catalog shows the effect, so the server can't be asked for it. */
  readonly isHidden: boolean;
  /** Names and types may mean something else afterwards. */
  readonly mayChangeSchema: boolean;
  /** Settings may have changed without a tag that shows it. */
  readonly mayHideSettings: boolean;
}

const nothing = { mayLeave: false, isHidden: false, mayChangeSchema: false, mayHideSettings: false };
const changesSession: NameEffect = { ...nothing, touch: 'session', mayLeave: true };
const changesHidden: NameEffect = { ...changesSession, isHidden: true };
const setsSomething: NameEffect = { ...changesSession, mayHideSettings: true };
/** Not known to depend on one session, but not shareable either. */
const opaque: NameEffect = { ...nothing, touch: 'opaque', mayLeave: true, mayHideSettings: true };
const opaqueHidden: NameEffect = { ...opaque, isHidden: true };
const runsSql: NameEffect = { ...opaque, mayChangeSchema: true };
/** Reads the state of the session, or ends other sessions. Leaves nothing. */
const readsSession: NameEffect = { ...nothing, touch: 'opaque' };

const exact: readonly (readonly [NameEffect, string])[] = [
  // pg_temp is the schema of temporary tables.
  [changesSession, 'pg_temp'],
  [setsSomething, 'set_config set_user reset_user set_session_auth'],
  [changesHidden, 'setseed set_limit http_set_curlopt http_reset_curlopt'],
  [changesHidden, 'pg_backup_start pg_start_backup pg_stop_making_pinned_objects'],
  [changesHidden, 'pg_create_logical_replication_slot pg_create_physical_replication_slot'],
  [changesHidden, 'pg_copy_logical_replication_slot pg_copy_physical_replication_slot'],
  // An UPDATE of the view pg_settings is a SET.
  [opaque, 'pg_settings pg_drop_replication_slot pg_sync_replication_slots pg_backup_stop pg_stop_backup'],
  [runsSql, 'query_to_xml query_to_xmlschema query_to_xml_and_xmlschema cursor_to_xml cursor_to_xmlschema'],
  [runsSql, 'ts_stat ts_rewrite connectby xpath_table pg_import_system_collations pg_extension_config_dump'],
  [readsSession, 'currval lastval pg_cancel_backend pg_terminate_backend'],
];

const prefixes: readonly (readonly [NameEffect, string])[] = [
  [changesSession, 'pg_advisory_ pg_try_advisory_ pg_temp_'],
  [changesHidden, 'dblink_connect dblink_open hypopg_ pgv_ dbms_ utl_file hll_set_ binary_upgrade_'],
  [opaqueHidden, 'pg_replication_origin_session_ pg_replication_origin_xact_'],
  [opaque, 'pg_logical_slot_ pg_replication_ postgres_fdw_'],
  [runsSql, 'dblink crosstab run_command_on_ table_to_xml schema_to_xml database_to_xml'],
];

const byName: ReadonlyMap<string, NameEffect> = new Map(
  exact.flatMap(([effect, names]) => names.split(' ').map((name) => [name, effect] as const)),
);
const byPrefix = prefixes.flatMap(([effect, names]) =>
  names.split(' ').map((name) => [name, effect] as const),
);

/** Effect of a name in lower case; undefined if it is harmless. */
export function effectOfName(name: string): NameEffect | undefined {
  // The _xact_ forms of advisory locks end with their transaction.
  if (name.startsWith('pg_advisory_xact_') || name.startsWith('pg_try_advisory_xact_')) return undefined;
  return byName.get(name) ?? byPrefix.find(([prefix]) => name.startsWith(prefix))?.[1];
}

/** Effect of a name in front of a parenthesis: a function with the prefix `pg_` must be known to be harmless. */
export function effectOfFunction(name: string): NameEffect | undefined {
  const effect = effectOfName(name);
  if (effect !== undefined || !name.startsWith('pg_')) return effect;
  return isHarmlessFunctionName(name) ? undefined : runsSql;
}

const hiddenNames = new RegExp(
  [...byName, ...byPrefix].flatMap(([name, { isHidden }]) => (isHidden ? [name] : [])).join('|'),
  'i',
);

/** Searches a text that can't be read for names with `isHidden`. */
export function hasHiddenName(text: string): boolean {
  return hiddenNames.test(text);
}

/**
 * By the first three characters: the lengths of names that need a closer look, a bit for each length up to 31. Most
 * words have none of these beginnings.
 */
const lengths = new Uint32Array(27 ** 3);
const longest = 31;
for (const name of byName.keys()) note(name, Math.min(name.length, longest), Math.min(name.length, longest));
for (const name of [...byPrefix.map(([prefix]) => prefix), 'pg_']) note(name, name.length, longest);

function note(name: string, from: number, to: number): void {
  const at = beginningOf(Buffer.from(name), 0);
  for (let length = from; length <= to; length++) lengths[at] = (lengths[at] as number) | (1 << length);
}

/** Each letter is a digit in base 27, and all else is 26. */
function beginningOf(bytes: Buffer, start: number): number {
  let beginning = 0;
  for (let at = start; at < start + 3; at++) {
    const letter = ((bytes[at] as number) | 32) - 97;
    beginning = beginning * 27 + (letter >= 0 && letter < 26 ? letter : 26);
  }
  return beginning;
}

/** Quick look at the bytes of a name: false if neither `effectOfName()` nor `effectOfFunction()` would find an effect. */
export function mayBeDangerousName(bytes: Buffer, start: number, end: number): boolean {
  const length = end - start;
  if (length < 4) return false;
  const mask = lengths[beginningOf(bytes, start)] as number;
  return mask !== 0 && (mask & (1 << (length > longest ? longest : length))) !== 0;
}
