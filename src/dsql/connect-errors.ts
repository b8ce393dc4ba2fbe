/**
 * Tells connect errors apart. The server's texts have changed more than once and the codes cover several causes, so a
 * text is looked for at its beginning, in any case of letters, and the code decides only what the text does not.
 */
import { refillCause } from '../pg/client.js';
import { isTokenExpired } from '../wire/dsql-refusals.js';
import { type ConnectFailure, type ConnectRemedy, DsqlConnectError } from './errors.js';

interface Verdict {
  readonly remedy: ConnectRemedy;
  readonly advice: string;
}

/** Advice for each of them. */
export const verdicts: Readonly<Record<ConnectFailure, Verdict>> = {
  too_many_connections: {
    remedy: 'later',
    advice: "Lower max: the pools of all processes together exceed the cluster's limit of connections.",
  },
  rate_exceeded: {
    remedy: 'later',
    advice: 'Open connections more slowly (rateLimiter) and keep them longer; a new token does not help.',
  },
  token_expired: {
    remedy: 'fresh_token',
    advice: "If this stays with a new token, this machine's clock is wrong or its credentials have expired.",
  },
  not_authorized: {
    remedy: 'never',
    advice:
      'Allow dsql:DbConnectAdmin for the user admin and dsql:DbConnect for others, and map the role to the database user.',
  },
  waking_up: { remedy: 'later', advice: 'The cluster was idle; it is available in a while.' },
  no_sni: {
    remedy: 'never',
    advice: 'Connect to the cluster by its host name, not by an address, and without a proxy that ends TLS.',
  },
  token_unavailable: {
    remedy: 'later',
    advice: 'See the cause: no token could be made, so nothing was dialed.',
  },
  tls: {
    remedy: 'never',
    advice:
      'The server could not prove that it is the cluster, so no token was sent. See ssl.ca and the host.',
  },
  network: {
    remedy: 'later',
    advice: 'The cluster was not reached, or hung up. Look at the network and its state.',
  },
  refused: { remedy: 'never', advice: 'See what the server said.' },
  other: { remedy: 'never', advice: 'See the cause.' },
};

const networkCodes: ReadonlySet<string> = new Set(
  (
    'ECONNREFUSED ECONNRESET ECONNABORTED EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN ENOTFOUND EAI_AGAIN EAI_FAIL ' +
    'EAI_NODATA ETIMEDOUT EPIPE'
  ).split(' '),
);
const networkTexts = /^(connection terminated|timeout expired|client network socket disconnected)/i;
const tlsCodes =
  /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH|PATH_LENGTH_|ERROR_IN_CERT_)/;
const tlsTexts = /^(the server does not support ssl|there was an error establishing an ssl)/i;

/** The error in one word; see `ConnectFailure`. */
export function connectFailureOf(error: Error): ConnectFailure {
  const { code, hint, severity } = error as { code?: unknown; hint?: unknown; severity?: unknown };
  const text = typeof error.message === 'string' ? error.message : '';
  const state = typeof code === 'string' ? code : '';
  if (typeof severity === 'string') return refusalOf(state, text, typeof hint === 'string' ? hint : '');
  if (tlsCodes.test(state) || tlsTexts.test(text)) return 'tls';
  if (networkCodes.has(state) || networkTexts.test(text)) return 'network';
  return 'other';
}

/** The server's own words. */
function refusalOf(state: string, message: string, hint: string): ConnectFailure {
  const text = message.replace(/^unable to accept connection, /i, '').toLowerCase();
  if (isTokenExpired(text, hint)) return 'token_expired';
  if (text.startsWith('waking up cluster')) return 'waking_up';
  if (text.startsWith('sni was not received')) return 'no_sni';
  if (text.startsWith('access denied')) return 'not_authorized';
  if (text.startsWith('too many open connections')) return 'too_many_connections';
  if (text.startsWith('rate exceeded')) return 'rate_exceeded';
  if (state === '53300') return 'too_many_connections';
  if (state === '53400') return 'rate_exceeded';
  if (state === '28000' || state === '28P01') return 'not_authorized';
  // Any other failure of the connection itself.
  return state.startsWith('08') || state === '57P03' ? 'network' : 'refused';
}

/** Adds the reason to an error, and what to do about it. */
export function connectError(thrown: unknown): DsqlConnectError {
  const error = errorOf(thrown);
  return makeError(connectFailureOf(error), error);
}

/** The token provider's error. */
export function tokenError(thrown: unknown): DsqlConnectError {
  const error = makeError('token_unavailable', errorOf(thrown));
  Object.defineProperty(error, refillCause, { value: 'token_provider' });
  return error;
}

function makeError(reason: ConnectFailure, error: Error): DsqlConnectError {
  return new DsqlConnectError(reason, verdicts[reason], error);
}

/** The AWS signer rejects with a text at times, and a token provider with anything. */
function errorOf(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  return new Error(
    typeof thrown === 'string' ? thrown : `Something that is no error was thrown: ${typeof thrown}`,
  );
}
