/** Timeouts of a client, checked periodically. */
import type { ErrorFields } from '../../../wire/error-fields.js';
import type { PoolSettings } from '../../config/pool-settings.js';
import { timeouts } from '../session-errors.js';
import type { SessionState } from './connected-client.js';
import type { RequestTimes } from './request-times.js';

export interface TimedClient {
  readonly limits: PoolSettings;
  readonly state: SessionState;
  readonly times: RequestTimes;
  /** Server connection in use. */
  readonly backend: object | undefined;
  /** How long the client has read nothing although its server waits for that. */
  stalledFor(now: number): number;
}

/** The error of a timeout that is over. `now` is by the clock of the process. 0 switches a timeout off. */
export function dueTimeout(client: TimedClient, now: number): ErrorFields | undefined {
  const { limits, state, backend, times } = client;
  const { queryTimeout, transactionTimeout, idleTransactionTimeout } = limits;
  const { clientIdleTimeout, clientWriteTimeout } = limits;
  const isOver = (limit: number, since: number): boolean => limit > 0 && now - since >= limit;
  if (state === 'waiting')
    return isOver(queryTimeout, times.waitingSince) ? timeouts.queryWait(queryTimeout) : undefined;
  if (clientWriteTimeout > 0 && client.stalledFor(now) >= clientWriteTimeout)
    return timeouts.clientWrite(clientWriteTimeout);
  // The transaction begins at the client's BEGIN, even if no server has received it.
  if (state !== 'idle' && isOver(transactionTimeout, times.inTransactionSince))
    return timeouts.transaction(transactionTimeout);
  // As in PgBouncer, the time counts from the client's request and includes the wait for a server.
  if (state === 'active')
    return isOver(queryTimeout, times.waitedSince || times.askedAt)
      ? timeouts.query(queryTimeout)
      : undefined;
  if (state === 'idle in transaction' && isOver(idleTransactionTimeout, times.idleSince))
    return timeouts.idleTransaction(idleTransactionTimeout);
  // In a transaction without a server the client blocks no other, like a client outside a transaction.
  const blocks = state === 'idle in transaction' && backend !== undefined;
  return !blocks && isOver(clientIdleTimeout, times.idleSince)
    ? timeouts.clientIdle(clientIdleTimeout)
    : undefined;
}
