/** The meaning of a failed attempt to open a server connection: its cause in one word, its code, and what to do about it. */
import type { DialFailureCause } from '../../core/breaker.js';
import { SqlState } from '../../wire/sql-states.js';
import { ServerAuthenticationError } from '../auth/errors.js';
import { BackendRefusedError } from '../errors.js';

/** As the console shows it. */
export interface DialFailure {
  readonly cause: DialFailureCause;
  /** SQLSTATE of the server or code of the system; undefined where there is none. */
  readonly code: string | undefined;
  readonly message: string;
}

const advices: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'No server listens there: look at the host and the port, and whether the server runs.',
  ENOTFOUND: 'The name of the host is not known: look at its spelling and at DNS.',
  ETIMEDOUT: 'Nothing answers there: look at firewalls, security groups and the address.',
  ECONNRESET: 'The server hangs up: look at its log, and whether it speaks PostgreSQL and TLS on that port.',
  '28P01': 'The password is wrong: look at databases.NAME.password, the user list or the server.',
  '28000': 'The server does not let this user in: look at its pg_hba.conf.',
  '3D000': 'There is no such database on the server: look at databases.NAME.dbname.',
  '53300': 'The server has no connection left: its max_connections is used up.',
  '57P03': 'The server is starting or in recovery: try again.',
};

export function dialFailureOf(error: Error): DialFailure {
  return { cause: dialFailureCauseOf(error), code: codesOf(error)[0], message: error.message };
}

export function dialFailureCauseOf(error: Error): DialFailureCause {
  if (error instanceof ServerAuthenticationError && error.reason === 'token_unavailable')
    return 'token_provider';
  return isRateExceeded(error) ? 'rate_limit' : 'connection_open';
}

export function isRateExceeded(error: Error): boolean {
  return error instanceof BackendRefusedError && error.sqlState === SqlState.configurationLimitExceeded;
}

export function adviceForCode(code: string): string | undefined {
  return advices[code];
}

/** The first advice for a code of the error or its causes. */
export function adviceFor(error: Error): string | undefined {
  return codesOf(error)
    .map(adviceForCode)
    .find((advice) => advice !== undefined);
}

/** Codes of the error and its causes, but for Headgate's own. */
function codesOf(error: Error): string[] {
  const codes: string[] = [];
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const code = cause instanceof BackendRefusedError ? cause.sqlState : (cause as { code?: string }).code;
    if (typeof code === 'string' && !code.startsWith('HG_')) codes.push(code);
  }
  return codes;
}
