/** A connected client, as the pooler sees it. */
import type { Transport } from '../../../net/transport.js';
import type { PinReason } from '../../../sql/pin-reasons.js';
import type { ErrorFields } from '../../../wire/error-fields.js';
import type { PoolMode } from '../../config/pooling-options.js';
import type { Backend } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { RequestTimes } from './request-times.js';
import type { RunningQuery } from './running-query.js';
import type { ClientIdentity } from './session-parts.js';

export type SessionState = 'idle' | 'waiting' | 'active' | 'idle in transaction';

export interface ConnectedClient {
  readonly identity: ClientIdentity;
  readonly transport: Transport;
  readonly pool: BackendPool;
  readonly mode: PoolMode;
  readonly state: SessionState;
  readonly times: RequestTimes;
  /** Server connection in use. */
  readonly backend: Backend | undefined;
  /** Id of the connection on which the client's statement is behind those of others. */
  readonly placedOn: number | undefined;
  /** Kind of replication; `none` for an ordinary client. */
  readonly replication: 'none' | 'logical' | 'physical';
  /** Why the client keeps its server after its transaction, and since when, in milliseconds since 1970. */
  readonly pin: PinReason | undefined;
  readonly pinnedAt: number;
  /** Reported settings, as the client was told them. */
  readonly told: ReadonlyMap<string, string>;
  /** Bytes that wait to be passed on. */
  readonly held: Buffer | undefined;
  /** Number of prepared statements that have a name. */
  readonly namedStatements: number;
  /** Undefined where no statistics of statements are kept. */
  readonly running: RunningQuery | undefined;

  bytesCame(source: Buffer, start: number, end: number): void;
  /** Cancels the client's present request. Resolves when the server has been told. */
  cancel(): Promise<void>;
  /** Pauses reading until `resume()`. */
  suspend(): void;
  resume(): void;
  /** Enforces the client's timeouts. `now` is by the clock of the process. */
  checkTimeouts(now: number, notifyAfterMs: number): void;
  /** The pool was paused. */
  poolPaused(): void;
  /** Ends the client as soon as it is in no transaction and waits for nothing. */
  endWhenIdle(goodbye: ErrorFields): void;
  /** As `endWhenIdle()`, but a client that keeps its server beyond a transaction may stay. */
  endWithoutServer(goodbye: ErrorFields): void;
  /** Ends the client as soon as it waits for a server. The pool is to be paused. */
  endOnDemand(goodbye: ErrorFields): void;
  /** Ends the session with this error, and closes the connection at once, even if it is ending already. */
  kill(error: ErrorFields): void;
}
