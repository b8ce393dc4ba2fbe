/** What happens to a client that takes too long, looked at once in a while. */

import { writeNotice } from '../../wire/error-fields.js';
import { TransactionStatus } from '../../wire/message-types.js';
import type { ClientSession } from './client-session.js';
import { timeouts, waitNotice } from './session-errors.js';

/** `now` is by the clock of the process. 0 switches a timeout off. */
export function checkTimeouts(session: ClientSession, now: number, notifyAfterMs: number): void {
  const { queryTimeout, transactionTimeout, idleTransactionTimeout, clientIdleTimeout } = session.pool.limits;
  const { state, backend } = session;
  const { clientWriteTimeout } = session.pool.limits;
  const isOver = (limit: number, since: number): boolean => limit > 0 && now - since >= limit;
  if (state === 'waiting') {
    if (session.hasNotice || !isOver(notifyAfterMs, session.waitingSince)) return;
    session.hasNotice = true;
    session.tell((writer) => writeNotice(writer, waitNotice(session.pool, now - session.waitingSince)));
    return;
  }
  if (clientWriteTimeout > 0 && session.stalledFor(now) >= clientWriteTimeout) {
    session.end(timeouts.clientWrite(clientWriteTimeout));
    return;
  }
  const isInTransaction =
    backend !== undefined &&
    (state !== 'idle' || backend.status !== TransactionStatus.idle) &&
    isOver(transactionTimeout, session.beganAt);
  if (isInTransaction) session.end(timeouts.transaction(transactionTimeout));
  else if (state === 'active') {
    if (isOver(queryTimeout, session.askedAt)) session.end(timeouts.query(queryTimeout));
  } else if (state === 'idle in transaction') {
    // Without a server it holds nobody up.
    const limit = backend === undefined ? clientIdleTimeout : idleTransactionTimeout;
    const say = backend === undefined ? timeouts.clientIdle : timeouts.idleTransaction;
    if (isOver(limit, session.idleSince)) session.end(say(limit));
  } else if (isOver(clientIdleTimeout, session.idleSince))
    session.end(timeouts.clientIdle(clientIdleTimeout));
}
