/** Runs console commands. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import { ConfigError, describeProblem, show as quote } from '../config/config-problems.js';
import { leftOutOptions } from '../config/pgbouncer-left-out.js';
import { consoleDatabases, databaseFor, type PoolerConfig } from '../config/pooler-config.js';
import {
  type Command,
  describeCommand,
  help,
  isHarmless,
  mayGive,
  type Role,
  type ShowName,
} from './command.js';
import { ConsoleError, guess } from './console-error.js';
import { driverSettings } from './driver-settings.js';
import { keepHeld, withHeldSettings } from './held-settings.js';
import type { PoolerControls, PoolerView } from './pooler-view.js';
import type { ResultColumn } from './result-values.js';
import type { Rows } from './show.js';
import { shows } from './shows.js';

/** The long lists that a command needs. */
export interface WantedRecords {
  readonly clients: boolean;
  readonly servers: boolean;
  readonly queries: boolean;
}

export interface ConsoleTools {
  readonly role: Role;
  readonly view: PoolerView;
  readonly controls: PoolerControls;
  /** With several processes, merges the views of all of them. */
  readonly gather?: ((wanted: WantedRecords) => Promise<PoolerView>) | undefined;
}

export interface Outcome {
  /** Tag for CommandComplete. */
  readonly tag: string;
  /** Rows of a command with columns, possibly none. */
  readonly rows: Rows;
  readonly notice: ErrorFields | undefined;
  /** Why the pooler holds a setting and does not use it; for the log. */
  readonly problem?: ConfigError;
}

/** Columns of the result; undefined where there are none. Known before the command runs. */
export function columnsOf(command: Command): readonly ResultColumn[] | undefined {
  switch (command.verb) {
    case 'show':
      return command.what === 'help' ? undefined : shows[command.what].columns;
    case 'show setting':
      return [{ name: command.name, type: 'text' }];
    case 'select one':
      return [{ name: '?column?', type: 'int4' }];
    default:
      return undefined;
  }
}

/** Returns a promise where the command has to wait. Throws or rejects with the error for the client. */
export function runCommand(
  command: Command,
  tools: ConsoleTools,
  signal: AbortSignal,
): Outcome | Promise<Outcome> {
  if (!mayGive(tools.role, command))
    throw new ConsoleError(
      SqlState.insufficientPrivilege,
      `${describeCommand(command)} is for users in admin_users; this one may only look`,
      undefined,
      'admin access needed',
    );
  const { gather } = tools;
  if (gather === undefined || !looksAround(command)) return runNow(command, tools, signal);
  return gather(wantedBy(command)).then((view) => runNow(command, { ...tools, view }, signal));
}

const noRecords: WantedRecords = { clients: false, servers: false, queries: false };
const wantedRecords: Readonly<Partial<Record<ShowName, Partial<WantedRecords>>>> = {
  active_queries: { queries: true },
  active_sockets: { clients: true, servers: true },
  clients: { clients: true },
  fds: { clients: true, servers: true },
  lists: { clients: true, servers: true },
  pins: { clients: true },
  query_stats: { queries: true },
  servers: { servers: true },
  sockets: { clients: true, servers: true },
  waiting: { clients: true },
};

function looksAround(command: Command): boolean {
  if (command.verb === 'show') return command.what !== 'help';
  return !isHarmless(command);
}

function wantedBy(command: Command): WantedRecords {
  return { ...noRecords, ...(command.verb === 'show' ? wantedRecords[command.what] : {}) };
}

function runNow(command: Command, tools: ConsoleTools, signal: AbortSignal): Outcome | Promise<Outcome> {
  switch (command.verb) {
    case 'show':
      if (command.what === 'help') return outcome('SHOW', [], notice('Console usage', help));
      return outcome('SHOW', shows[command.what].rows(tools.view));
    case 'show setting':
      return outcome('SHOW', [[driverSettings.get(command.name) ?? '']]);
    case 'select one':
      return outcome('SELECT 1', [[1]]);
    case 'ignored set':
      return outcome('SET', [], notice('SET ignored: the console has no such setting of its own'));
    default:
      return change(command, tools, signal);
  }
}

/** Commands that change something. */
type Change = Exclude<Command, { verb: 'show' | 'show setting' | 'select one' | 'ignored set' }>;
type Set = Extract<Change, { verb: 'set' }>;

function change(command: Change, tools: ConsoleTools, signal: AbortSignal): Outcome | Promise<Outcome> {
  if (command.verb === 'set') return set(command, tools);
  const done = outcome(command.verb.toUpperCase());
  const underWay = begin(command, tools, signal);
  return underWay === undefined ? done : underWay.then(() => done);
}

/** PgBouncer lets the console change them. All are numbers. */
const settableWithoutEffect: ReadonlySet<string> = new Set([
  'dns_max_ttl',
  'dns_nxdomain_ttl',
  'dns_zone_check_period',
  'sbuf_loopcnt',
  'tcp_defer_accept',
]);

function isNumber(text: string): boolean {
  return /^\d+(?:\.\d+)?$/.test(text);
}

function set({ key, value }: Set, { view, controls }: ConsoleTools): Outcome | Promise<Outcome> {
  const was = view.config;
  if (was.admin.compatibility === 'pgbouncer' && settableWithoutEffect.has(key) && isNumber(value))
    return outcome('SET', [], notice(`${key} has no effect: ${leftOutOptions[key]}`));
  const changed = changedConfig(was, key, value);
  if (changed instanceof ConfigError) {
    const message = 'TLS settings could not be applied, still using old configuration';
    return { ...outcome('SET', [], notice(message, textOf(changed))), problem: changed };
  }
  const finish = (): Outcome => {
    keepHeld(was, key, view.config);
    return outcome('SET');
  };
  const underWay = waited(controls.applyConfig(changed));
  return underWay === undefined ? finish() : underWay.then(finish);
}

function begin(
  command: Exclude<Change, Set>,
  { view, controls }: ConsoleTools,
  signal: AbortSignal,
): Promise<void> | undefined {
  switch (command.verb) {
    case 'kill_client':
      return killClient(controls.killClient(command.id), command.id);
    case 'reload':
      return controls.reload();
    case 'shutdown':
      return controls.shutdown(command.mode, signal);
    case 'suspend':
      expectActive(view);
      if (view.databases().some(({ isPaused }) => isPaused))
        throw notNow(
          'SUSPEND needs all databases in service; RESUME those that are paused first',
          'cannot suspend with paused databases',
        );
      return controls.suspend(signal);
    default:
      if (command.database !== undefined) expectDatabase(view, command.database);
      return beginOnDatabase(command, view, controls, signal);
  }
}

function beginOnDatabase(
  { verb, database }: Extract<Change, { database: string | undefined }>,
  view: PoolerView,
  controls: PoolerControls,
  signal: AbortSignal,
): Promise<void> | undefined {
  switch (verb) {
    case 'pause':
      expectActive(view);
      return controls.pause(database, signal);
    case 'kill':
      expectActive(view);
      return waited(controls.kill(database));
    case 'resume':
      // Clients that wait during a pause are served by other means, even while the pooler waits for them to disconnect.
      if (view.isShuttingDown && database === undefined && view.config.admin.compatibility === 'pgbouncer')
        throw notNow('the pooler is shutting down', 'pooler is shutting down');
      expectPaused(view, database);
      return waited(controls.resume(database));
    case 'reconnect':
      return waited(controls.reconnect(database));
    case 'wait_close':
      return controls.waitClose(database, signal);
    default:
      return waited(controls[verb](database as string));
  }
}

/** Undefined where the action is done already. */
function waited(underWay: void | Promise<void>): Promise<void> | undefined {
  return underWay instanceof Promise ? underWay : undefined;
}

function killClient(isKilled: boolean | Promise<boolean>, id: number): Promise<void> | undefined {
  const check = (wasThere: boolean): void => {
    if (wasThere) return;
    const message = `there is no client with the id ${id}`;
    throw new ConsoleError(SqlState.undefinedObject, message, undefined, 'client not found');
  };
  if (isKilled instanceof Promise) return isKilled.then(check);
  check(isKilled);
  return undefined;
}

/** A `ConfigError` for settings that are held until the rest of them comes. */
function changedConfig(config: PoolerConfig, key: string, value: string): PoolerConfig | ConfigError {
  try {
    return withHeldSettings(config, key, value);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const hint = 'SHOW CONFIG lists all settings.';
    throw new ConsoleError(SqlState.invalidParameterValue, textOf(error), hint, 'SET failed');
  }
}

function textOf({ problems }: ConfigError): string {
  return problems.map(describeProblem).join('; ');
}

function expectDatabase(view: PoolerView, name: string): void {
  if (consoleDatabases.includes(name))
    throw new ConsoleError(
      SqlState.featureNotSupported,
      `${quote(name)} is the console, which is always in service`,
      undefined,
      `cannot change admin db: ${name}`,
    );
  if (databaseFor(view.config, name) !== undefined || isKnown(view, name)) return;
  throw new ConsoleError(
    SqlState.invalidCatalogName,
    `there is no database ${quote(name)}${guess(name, view.config.databases.keys())}`,
    'SHOW DATABASES lists all databases.',
    `no such database: ${name}`,
  );
}

/** A database that was removed from the configuration may still have clients. */
function isKnown(view: PoolerView, name: string): boolean {
  return view.databases().some(({ settings }) => settings.name === name);
}

function expectActive({ state }: PoolerView): void {
  if (state !== 'active')
    throw notNow(`the pooler is ${state} already; RESUME ends that`, 'already suspended/paused');
}

function expectPaused(view: PoolerView, database: string | undefined): void {
  const isPaused = view
    .databases()
    .some((record) => record.isPaused && (database === undefined || record.settings.name === database));
  if (isPaused) return;
  if (database !== undefined)
    throw notNow(
      view.state === 'active'
        ? `database ${quote(database)} is not paused`
        : `database ${quote(database)} is not paused by itself: the whole pooler is ${view.state}, and RESUME ends that`,
      `database ${database} is not paused`,
    );
  if (view.state === 'active')
    throw notNow('nothing is paused or suspended', 'pooler is not paused/suspended');
}

function notNow(message: string, asPgBouncer: string): ConsoleError {
  return new ConsoleError(SqlState.objectNotInPrerequisiteState, message, undefined, asPgBouncer);
}

function outcome(tag: string, rows: Outcome['rows'] = [], told?: ErrorFields): Outcome {
  return { tag, rows, notice: told };
}

function notice(message: string, detail?: string): ErrorFields {
  return {
    severity: 'NOTICE',
    code: SqlState.successfulCompletion,
    message,
    ...(detail === undefined ? {} : { detail }),
  };
}
