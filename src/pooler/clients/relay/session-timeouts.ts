/** Timeouts of a client, checked periodically. */

import { writeNotice } from '../../../wire/error-fields.js';
import { timeouts, waitNotice } from '../session-errors.js';
import type { ClientSession } from './client-session.js';

/** `now` is by the clock of the process. 0 switches a timeout off. */
export function checkTimeouts(session: ClientSession, now: number, notifyAfterMs: number): void {
  const { limits, state, backend } = session;
  const { queryTimeout, transactionTimeout, idleTransactionTimeout } = limits;
  const { clientIdleTimeout, clientWriteTimeout } = limits;
  const isOver = (limit: number, since: number): boolean => limit > 0 && now - since >= limit;
  // A placed statement's timeouts begin when the statements ahead of it are answered. That is soon, or it runs on another connection.
  if (session.isPlaced) {
    session.leaveSlow(now);
    return;
  }
  if (state === 'waiting') {
    if (isOver(queryTimeout, session.waitingSince)) {
      session.end(timeouts.queryWait(queryTimeout));
      return;
    }
    if (session.hasNotice || !isOver(notifyAfterMs, session.waitingSince)) return;
    session.hasNotice = true;
    session.tell((writer) =>
      writeNotice(writer, session.word(waitNotice(session.pool, now - session.waitingSince))),
    );
    return;
  }
  if (clientWriteTimeout > 0 && session.stalledFor(now) >= clientWriteTimeout) {
    session.end(timeouts.clientWrite(clientWriteTimeout));
    return;
  }
  // The transaction begins at the client's BEGIN, even if no server has received it.
  if (state !== 'idle' && isOver(transactionTimeout, session.inTransactionSince))
    session.end(timeouts.transaction(transactionTimeout));
  else if (state === 'active') {
    // As in PgBouncer, the time counts from the client's request and includes the wait for a server.
    if (isOver(queryTimeout, session.waitedSince || session.askedAt))
      session.end(timeouts.query(queryTimeout));
  } else if (state === 'idle in transaction') {
    if (isOver(idleTransactionTimeout, session.idleSince))
      session.end(timeouts.idleTransaction(idleTransactionTimeout));
    // Without a server the client blocks no other, like a client outside a transaction.
    else if (backend === undefined && isOver(clientIdleTimeout, session.idleSince))
      session.end(timeouts.clientIdle(clientIdleTimeout));
  } else if (isOver(clientIdleTimeout, session.idleSince))
    session.end(timeouts.clientIdle(clientIdleTimeout));
}
