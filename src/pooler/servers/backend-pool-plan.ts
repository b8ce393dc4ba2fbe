/** Present configuration of one pool of server connections. */
import type { PoolPolicy } from '../../core/pool-policy.js';
import type { PoolSettings } from '../config/pool-settings.js';
import type { OpenBackend } from './backend-dialer.js';
import type { CancellerOptions } from './canceller.js';

/** Which statements share connections while all connections are in use. */
export interface MultiplexPlan {
  /** Number of statements sent one behind the other each time a connection is checked out. */
  readonly depth: number;
  /** Writes share connections, too, not only reads. */
  readonly sharesWrites: boolean;
  /** Statements are sent only behind statements that usually take no longer than this. */
  readonly longestMs: number;
}

export interface BackendPoolPlan {
  readonly limits: PoolSettings;
  readonly policy: PoolPolicy;
  readonly open: OpenBackend;
  readonly checkQuery: string;
  /** Idle connections that a change of the configuration replaces are closed after this time. */
  readonly closeReplacedAfterMs: number;
  /** Forgets what a client left in a session beyond settings; empty for nothing. */
  readonly resetQuery: string;
  /** The server is Aurora DSQL, which sets and resets a session with other statements. */
  readonly isDsql: boolean;
  /** The pooler keeps the settings that the server refuses. */
  readonly keepsSettings: boolean;
  /** Runs the reset query after every transaction, too. */
  readonly resetsAlways: boolean;
  /** Asks the server after every transaction what the client has left, not only where that is unclear. */
  readonly checksAlways: boolean;
  readonly cleaningTimeoutMs: number;
  readonly cancelTimeoutMs: number;
  /** Prepared statements follow the client. */
  readonly followsStatements: boolean;
  /** So many a server connection has. */
  readonly mostStatements: number;
  /** Unnamed statements that are repeated often are prepared, too. */
  readonly preparesUnnamed: boolean;
  /** BEGIN is answered before a server connection is checked out. */
  readonly defersBegin: boolean;
  /** Statements of several clients share connections; undefined turns that off. */
  readonly multiplex?: MultiplexPlan | undefined;
  /** Limit in bytes for kept statements that no client has under a name. */
  readonly mostStatementBytes: number;
  /** Limit in bytes for the parameters that servers report of a session. */
  readonly mostParameterBytes: number;
  /** Part of the connections reserved for transactions. */
  readonly reservedRatio: number;
  /** Name of the budget above this pool that has nothing left for it. */
  readonly shortage: () => string | undefined;
}

export function cancellerOptions({ cancelTimeoutMs, limits }: BackendPoolPlan): CancellerOptions {
  return { mostAtOnce: limits.poolSize, timeoutMs: cancelTimeoutMs };
}
