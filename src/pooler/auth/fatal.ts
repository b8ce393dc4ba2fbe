/** Errors that refuse a client before its connection is closed. None says more than PostgreSQL would. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import { alsoAs, type OwnError } from '../own-error.js';

/** Limit of characters of a name in a text. The name comes from the client, and may be as long as a packet. */
const longestShown = 128;

export interface Wanted {
  readonly user: string;
  readonly database: string;
  /** For display: an IP address, or `[local]`. */
  readonly from: string;
  readonly isEncrypted: boolean;
}

/** PgBouncer names the method and not the user. */
const failures: Readonly<Record<string, string>> = {
  trust: '"trust" authentication failed',
  'scram-sha-256': 'SASL authentication failed',
};

/** One error for a wrong password and for a missing user. `method`: what the client was asked for. */
export function wrongPassword(user: string, method: string): OwnError {
  const message = `password authentication failed for user "${shown(user)}"`;
  const asPgBouncer = failures[method] ?? 'password authentication failed';
  return alsoAs(asPgBouncer, fatal(SqlState.invalidPassword, message));
}

/** PgBouncer reports a missing user where it has asked the server. */
export function noSuchUser(user: string): OwnError {
  return alsoAs('no such user', wrongPassword(user, 'password'));
}

export function notThePeer(user: string): OwnError {
  const message = `peer authentication failed for user "${shown(user)}"`;
  return alsoAs('unix socket login rejected', fatal(SqlState.invalidAuthorization, message));
}

export function wrongCertificate(user: string, hint?: string): OwnError {
  const message = `certificate authentication failed for user "${shown(user)}"`;
  return alsoAs('certificate authentication failed', fatal(SqlState.invalidAuthorization, message, hint));
}

export function noRule(wanted: Wanted): OwnError {
  const message = `no access rule (HBA) for ${described(wanted)}`;
  const hint = 'A line of the HBA file has to allow this kind of connection.';
  return alsoAs('login rejected', fatal(SqlState.invalidAuthorization, message, hint));
}

export function rejectedByRule(wanted: Wanted): OwnError {
  const message = `an access rule (HBA) rejects ${described(wanted)}`;
  return alsoAs('login rejected', fatal(SqlState.invalidAuthorization, message));
}

export function unencryptedPassword(user: string): ErrorFields {
  return fatal(
    SqlState.invalidAuthorization,
    `user "${shown(user)}" has to send its password in clear text, and the connection is not encrypted`,
    'Connect with TLS (sslmode=require), or through a Unix socket.',
  );
}

export function cannotCheck(user: string): OwnError {
  const message = `the login of user "${shown(user)}" cannot be checked now`;
  const hint = 'The log of the pooler says why. Try again later.';
  return alsoAs('bouncer config error', fatal(SqlState.cannotConnectNow, message, hint));
}

/** In PgBouncer's words. */
export function authDatabaseDisabled(message: string): OwnError {
  const hint = 'ENABLE on the console of the pooler ends that.';
  return alsoAs(message, fatal(SqlState.cannotConnectNow, message, hint));
}

/** The requested database does not exist: the server's own message. */
export function noSuchDatabase({ message }: ErrorFields): ErrorFields {
  return fatal(SqlState.invalidCatalogName, message);
}

/** The limit of delayed verdicts for this user and address is reached. */
export function tooManyFailedLogins(user: string): ErrorFields {
  return fatal(
    SqlState.tooManyConnections,
    `too many failed logins of user "${shown(user)}" from this address`,
    'Wait a few seconds, and look for a program on this address that uses a wrong password.',
  );
}

/** The client sent an invalid answer. */
export function badAnswer(sqlState: SqlState, message: string): ErrorFields {
  return fatal(sqlState, message);
}

function fatal(code: SqlState, message: string, hint?: string): ErrorFields {
  return { severity: 'FATAL', code, message, ...(hint === undefined ? {} : { hint }) };
}

function described({ user, database, from, isEncrypted }: Wanted): string {
  const encryption = isEncrypted ? 'TLS' : 'no encryption';
  return `host "${from}", user "${shown(user)}", database "${shown(database)}", ${encryption}`;
}

function shown(name: string): string {
  return name.length <= longestShown ? name : `${name.slice(0, longestShown)}...`;
}
