/** Reasons to refuse a client: the error for the client, and details for the log alone. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import { fatal } from './session-errors.js';

export class Refusal extends Error {
  readonly fields: ErrorFields;
  /** For the log, and never for the client. */
  readonly detail: string | undefined;

  constructor(fields: ErrorFields, detail?: string) {
    super(fields.message);
    this.fields = fields;
    this.detail = detail;
  }
}

/** A name from a client may be as long as a packet. */
const longestShown = 128;

export function shown(name: string): string {
  return name.length <= longestShown ? name : `${name.slice(0, longestShown)}...`;
}

export function tooManyClients(what: string, limit: number, option: string): Refusal {
  return new Refusal(
    fatal(
      SqlState.tooManyConnections,
      `too many clients: ${what} may have ${limit} connections`,
      `The limit is ${option} of the pooler. Close connections that are not used, or raise it.`,
      option === 'max_client_conn'
        ? 'no more connections allowed (max_client_conn)'
        : `client connections exceeded (${option})`,
    ),
  );
}

export const tlsNeeded = (): Refusal =>
  new Refusal(
    fatal(
      SqlState.invalidAuthorization,
      'the pooler takes connections with TLS only',
      'Connect with sslmode=require.',
      'SSL required',
    ),
  );

export const noUser = (): Refusal =>
  new Refusal(
    fatal(
      SqlState.invalidAuthorization,
      'no PostgreSQL user name specified in startup packet',
      undefined,
      'no username supplied',
    ),
  );

export const repeatedStartup = (): Refusal =>
  new Refusal(
    fatal(
      SqlState.protocolViolation,
      'expected a password and got another startup packet',
      undefined,
      'client re-sent startup pkt',
    ),
  );

export const noDatabase = (name: string): Refusal =>
  new Refusal(
    fatal(
      SqlState.invalidCatalogName,
      `database "${shown(name)}" does not exist`,
      'The pooler serves the databases of its configuration only.',
      `no such database: ${shown(name)}`,
    ),
  );

export const noReplication = (): Refusal =>
  new Refusal(
    fatal(
      SqlState.featureNotSupported,
      'the console has nothing to replicate',
      'Name a database of the pooler for replication.',
    ),
  );

export const wrongReplication = (word: string): Refusal =>
  new Refusal(
    fatal(
      SqlState.invalidParameterValue,
      `invalid value for parameter "replication": "${shown(word)}"`,
      'Valid values are: "false", 0, "true", 1, "database".',
    ),
  );

export const wrongVersion = (major: number, minor: number): Refusal =>
  new Refusal(
    fatal(
      SqlState.featureNotSupported,
      `unsupported frontend protocol ${major}.${minor}: the pooler supports 3.0 to 3.2`,
    ),
  );

/** `isServerMissing`: the client has proved who it is, and waits for the first server connection of its pool. */
export const tooSlow = (timeout: string, isServerMissing: boolean): Refusal =>
  new Refusal(
    fatal(
      SqlState.queryCanceled,
      `the login was not over within ${timeout} (client_login_timeout)`,
      isServerMissing ? 'No server connection of its pool could be opened; the log says why.' : undefined,
      isServerMissing ? 'client_login_timeout (server down)' : 'client_login_timeout',
    ),
  );

export const wrongOptions = (problem: string): Refusal =>
  new Refusal(
    fatal(
      SqlState.syntaxError,
      problem,
      undefined,
      "unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed",
    ),
  );

/** `where`: a space and where the parameter was set. */
export const notTracked = (name: string, where = ''): Refusal =>
  new Refusal(
    fatal(
      SqlState.featureNotSupported,
      `the startup parameter "${shown(name)}" is not supported`,
      'Name it in ignore_startup_parameters or track_extra_parameters of the pooler.',
      `unsupported startup parameter${where}: ${shown(name)}`,
    ),
  );
