/**
 * Session check: one statement that asks a server what a client has left in its session, after a transaction that may have left
 * something. It costs the server about a millisecond. The answer is complete but for settings with a name of the client's own
 * (`my.setting`), which PostgreSQL lists nowhere.
 */
import { settableParameters } from '../../../dialect/settings.js';
import type { PinReason } from '../../../sql/pin-reasons.js';
import type { OwnRow } from '../../servers/own-row.js';
import { identity, setStatement } from '../../settings/settings.js';
import type { FollowedSettings } from './followed-settings.js';

/** These names mean what PostgreSQL ships, whatever the session's search path. */
const eq = 'OPERATOR(pg_catalog.=)';
const temporarySchema = 'pg_catalog.pg_my_temp_schema()';
/** The OID of pg_namespace in every PostgreSQL. */
const ofNamespaces = '2615::pg_catalog.oid';
const ownStatements = "name OPERATOR(pg_catalog.~~) 'headgate\\_%'::pg_catalog.text";

const questionOfPostgres: string = [
  "SELECT pg_catalog.current_setting('role')",
  'session_user',
  `CASE WHEN ${temporarySchema} ${eq} 0::pg_catalog.oid THEN false ELSE EXISTS (SELECT FROM pg_catalog.pg_depend WHERE refclassid ${eq} ${ofNamespaces} AND refobjid ${eq} ${temporarySchema}) END`,
  'EXISTS (SELECT FROM pg_catalog.pg_cursors)',
  `EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype ${eq} 'advisory'::pg_catalog.text AND pid ${eq} pg_catalog.pg_backend_pid())`,
  'EXISTS (SELECT FROM pg_catalog.pg_listening_channels())',
  'EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql)',
  `(SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_statements WHERE NOT from_sql AND ${ownStatements})`,
  `(SELECT pg_catalog.json_object_agg(name, pg_catalog.current_setting(name)) FROM pg_catalog.pg_settings WHERE source ${eq} 'session'::pg_catalog.text)`,
].join(', ');

/**
 * Aurora DSQL lacks the functions and most of the views, and its sessions can leave nothing but settings. A role ends with its
 * transaction. The list of names leaves out the settings that a server makes by itself in each session.
 */
const questionOfDsql: string = [
  "SELECT 'none'",
  'session_user',
  ...Array.from({ length: 5 }, () => 'false'),
  'NULL',
  `(SELECT pg_catalog.json_object_agg(name, pg_catalog.current_setting(name)) FROM pg_catalog.pg_settings WHERE source ${eq} 'session' AND pg_catalog.lower(name) IN (${Array.from(settableParameters, (name) => `'${name}'`).join(', ')}))`,
].join(', ');

export function sessionCheckText(isDsql: boolean): string {
  return isDsql ? questionOfDsql : questionOfPostgres;
}

/** Pin reasons in the order of the columns, from the third on. */
const pins: readonly PinReason[] = [
  'temporary_table',
  'cursor_with_hold',
  'advisory_lock',
  'listen',
  'prepare_in_sql',
];
const firstPin = 2;

export interface Leftovers {
  /** Why the client must be pinned. */
  readonly pin: PinReason | undefined;
  /** `none`, or the present role of the session. */
  readonly role: string;
  readonly sessionUser: string;
  /** Number of the pooler's prepared statements; undefined where the server does not tell. */
  readonly statements: number | undefined;
  /** Settings made in the session, by lower-case name; undefined where they can't be brought to another server. */
  readonly settings: ReadonlyMap<string, string> | undefined;
}

/** Undefined for an answer that can't be read. */
export function readLeftovers(row: OwnRow): Leftovers | undefined {
  const values = row.values()?.map((value) => value?.toString('latin1'));
  if (values?.length !== firstPin + pins.length + 2) return undefined;
  const [role, sessionUser] = values;
  const flags = values.slice(firstPin, firstPin + pins.length);
  const [statements, settings = '{}'] = values.slice(firstPin + pins.length);
  if (role === undefined || sessionUser === undefined || flags.some((flag) => flag !== 't' && flag !== 'f'))
    return undefined;
  const found = flags.indexOf('t');
  return {
    pin: found === -1 ? undefined : pins[found],
    role,
    sessionUser,
    statements: statements === undefined ? undefined : Number(statements),
    settings: readSettings(`${role}${sessionUser}${settings}`, settings),
  };
}

/** Undefined for values beyond ASCII: the next server may have another encoding. */
function readSettings(all: string, settings: string): Map<string, string> | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is meant.
  if (/[^\x00-\x7f]/.test(all)) return undefined;
  try {
    const entries = Object.entries(JSON.parse(settings) as Record<string, string>);
    return new Map(
      entries
        .map(([name, value]) => [name.toLowerCase(), value] as const)
        .filter(([name]) => !name.startsWith('transaction_')),
    );
  } catch {
    return undefined;
  }
}

/**
 * Follows settings that differ on the server from what was known: a statement has set or reset them unseen. `loginUser`: the
 * session's user without SET SESSION AUTHORIZATION. False: there are too many.
 */
export function followLeftovers(
  followed: FollowedSettings,
  left: Leftovers,
  loginUser: string | undefined,
  isDsql: boolean,
): boolean {
  const found = new Map<string, string>();
  for (const [name, value] of left.settings ?? []) found.set(name, setStatement(name, value, isDsql));
  if (left.role !== 'none') found.set('role', setStatement('role', left.role, isDsql));
  if (loginUser !== undefined && left.sessionUser !== loginUser)
    found.set(identity, setStatement(identity, left.sessionUser, isDsql));
  const known = followed.onServer.statements;
  for (const name of new Set([...found.keys(), ...known.keys()])) {
    // PostgreSQL does not list settings with a name of the client's own, and some servers do not tell who has logged in.
    const isUnseen = name.includes('.') || (name === identity && loginUser === undefined);
    if ((!isUnseen || found.has(name)) && !follow(followed, name, found.get(name))) return false;
  }
  return true;
}

/** `found`: the statement for the present value on the server; undefined where that is the server's default. */
function follow(followed: FollowedSettings, name: string, found: string | undefined): boolean {
  const { registry, wanted: settings, onServer, start } = followed;
  const known = onServer.statements.get(name);
  if (found === known) return true;
  // After a RESET the client wants the value of its startup packet, and not the server's.
  const isWanted = settings.statements.get(name) === known;
  const wanted = found ?? start.statements.get(name);
  if (isWanted && followed.isTooMuch(name, wanted)) return false;
  followed.onServer = registry.put(onServer, name, found);
  if (isWanted) followed.wanted = registry.put(settings, name, wanted);
  return true;
}
