/**
 * Settings that a client requests in its startup packet. A server is asked once for each value that is not known yet: whether
 * it is valid, and how the server writes it. The client is thus refused, or told the value, as PostgreSQL would do. While all
 * servers are busy, the client is accepted with unchecked values: its first server checks them.
 */
import { BoundedMap } from '../../kernel/bounded-map.js';
import { OwnQueryError } from '../errors.js';
import type { Backend } from '../servers/backend.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { askServer } from '../servers/server-question.js';
import { refusedSettings } from '../settings/refused-settings.js';
import { quotedName, type Settings, setConfigCall, setStatement, setText } from '../settings/settings.js';
import { Refusal } from './refusal.js';

/** Borrows a server connection from the pool for a short while. */
export interface BorrowedServer {
  wait<T>(use: (backend: Backend) => Promise<T>): Promise<T>;
  /** Undefined where no connection is available soon. */
  waitShortly<T>(use: (backend: Backend) => Promise<T>): Promise<T | undefined>;
}

export interface StartupSettings {
  readonly settings: Settings;
  /** The reported settings for this client. */
  readonly told: ReadonlyMap<string, string>;
  /** Settings that the server would refuse and the pooler keeps: by lower-case name, in PostgreSQL's notation. */
  readonly kept: ReadonlyMap<string, string>;
  /** No server has checked the values yet. */
  readonly areUnchecked: boolean;
}

const applicationName = 'application_name';
/** The server cuts longer names. */
const longestApplicationName = 63;
const mostKnown = 1_000;
/** Limit of resolved startup packets. Applications are few, and each entry is a map of settings. */
const mostResolved = 16;
/** Limit in bytes. Names and values may be as long as a startup packet. */
const mostKnownBytes = 1_048_576;

interface Resolved {
  /** Parameters of a new session at that time. */
  readonly usual: ReadonlyMap<string, string>;
  readonly startup: StartupSettings;
}

/** How servers of a pool write values, and the settings resolved for recent clients. One per pool. */
export class KnownValues {
  readonly #values = new BoundedMap<string, string>(mostKnown, {
    bytes: mostKnownBytes,
    of: (name, written) => name.length + written.length,
  });
  readonly resolved = new BoundedMap<string, Resolved>(mostResolved);

  get(name: string, value: string): string | undefined {
    return this.#values.get(`${name}=${value}`);
  }

  set(name: string, value: string, written: string): void {
    this.#values.set(`${name}=${value}`, written);
  }
}

/** The settings resolved for an earlier client that has requested the same ones, while new sessions still begin as then. */
export function startupAsBefore(
  pool: BackendPool,
  known: KnownValues,
  wanted: ReadonlyMap<string, string>,
): StartupSettings | undefined {
  const resolved = known.resolved.get(resolvedKey(pool, wanted));
  return resolved !== undefined && resolved.usual === pool.parameters ? resolved.startup : undefined;
}

/** Includes `keepsSettings`, since a reload may change which settings the pooler keeps. */
function resolvedKey(pool: BackendPool, wanted: ReadonlyMap<string, string>): string {
  return `${pool.plan.keepsSettings}\0${keyOf(wanted)}`;
}

/** `wanted`: values by name of the setting. Rejects with a `Refusal`. */
export async function resolveStartup(
  pool: BackendPool,
  known: KnownValues,
  wanted: ReadonlyMap<string, string>,
  servers: BorrowedServer,
): Promise<StartupSettings> {
  if (pool.parameters === undefined) await servers.wait(async () => {});
  const usual = pool.parameters as ReadonlyMap<string, string>;
  const before = startupAsBefore(pool, known, wanted);
  if (before !== undefined) return before;
  const reported = new Map([...usual.keys()].map((name) => [name.toLowerCase(), name]));
  const isUsual = (name: string, value: string): boolean => usual.get(reported.get(name) ?? '') === value;

  const values = new Map<string, string>();
  const kept = new Map<string, string>();
  for (const [given, value] of wanted) {
    const name = given.toLowerCase();
    if (pool.plan.keepsSettings && keep(kept, name, value)) continue;
    if (!isUsual(name, value)) values.set(name, name === applicationName ? cleanName(value) : value);
  }
  const { isDsql } = pool.plan;
  const isLearned = await learn(known, values, servers, isDsql);

  const told = new Map(usual);
  const statements = new Map<string, string>();
  for (const [name, value] of values) {
    const written = name === applicationName ? value : (known.get(name, value) ?? value);
    if (isUsual(name, written)) continue;
    statements.set(name, setStatement(name, written, isDsql));
    const shownAs = reported.get(name);
    if (shownAs !== undefined) told.set(shownAs, written);
  }
  const startup = {
    settings: pool.settings.of(statements),
    told: statements.size === 0 ? usual : told,
    kept,
    areUnchecked: !isLearned,
  };
  if (isLearned) known.resolved.set(resolvedKey(pool, wanted), { usual, startup });
  return startup;
}

/** True for a setting that the pooler keeps. Throws a `Refusal` for an invalid value. */
function keep(kept: Map<string, string>, name: string, value: string): boolean {
  const read = refusedSettings.get(name)?.read(value);
  if (read === undefined) return false;
  if (typeof read === 'object') throw new Refusal({ ...read, severity: 'FATAL' });
  kept.set(name, read);
  return true;
}

/** The zero is a safe separator: neither names nor values contain one. */
function keyOf(wanted: ReadonlyMap<string, string>): string {
  let key = '';
  for (const [name, value] of wanted) key += `${name}\0${value}\0`;
  return key;
}

/** Asks a server for unknown values. False where no server could be asked. */
async function learn(
  known: KnownValues,
  values: ReadonlyMap<string, string>,
  servers: BorrowedServer,
  isDsql: boolean,
): Promise<boolean> {
  const unknown = [...values].filter(
    ([name, value]) => name !== applicationName && known.get(name, value) === undefined,
  );
  if (unknown.length === 0) return true;
  const text = isDsql ? trialOnDsql(unknown) : trialOf(unknown);
  try {
    const rows = await servers.waitShortly((backend) =>
      askServer(backend, { what: 'Setting startup parameters', text }),
    );
    if (rows === undefined) return false;
    // DSQL answers each SHOW with a row of its own.
    const written = rows.flat();
    for (const [index, [name, value]] of unknown.entries()) known.set(name, value, written[index] ?? value);
    return true;
  } catch (error) {
    if (!(error instanceof OwnQueryError)) throw error;
    throw new Refusal({ ...error.fields, severity: 'FATAL' });
  }
}

type Wanted = readonly (readonly [name: string, value: string])[];

/** A statement that sets the values until it is over, and returns how the server writes them. */
function trialOf(wanted: Wanted): string {
  return `SELECT ${wanted.map(([name, value]) => setConfigCall(name, value, true)).join(', ')}`;
}

/** The statements of one text are one transaction, and their settings end with it. */
function trialOnDsql(wanted: Wanted): string {
  return wanted
    .map(([name, value]) => `${setText('SET LOCAL', name, value)}; SHOW ${quotedName(name)}`)
    .join('; ');
}

/** Cleans a name as the server does: anything but printable ASCII is written by its code, and the length is limited to that of a name. */
function cleanName(name: string): string {
  let clean = '';
  for (const byte of Buffer.from(name)) {
    clean +=
      byte >= 0x20 && byte <= 0x7e ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return clean.slice(0, longestApplicationName);
}
