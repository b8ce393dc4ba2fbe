/** What happens to a client that takes too long, looked at once in a while. */

import { writeNotice } from '../../../wire/error-fields.js';
import { timeouts, waitNotice } from '../session-errors.js';
import type { ClientSession } from './client-session.js';

/** `now` is by the clock of the process. 0 switches a timeout off. */
export function checkTimeouts(session: ClientSession, now: number, notifyAfterMs: number): void {
  const { limits, state, backend } = session;
  const { queryTimeout, transactionTimeout, idleTransactionTimeout } = limits;
  const { clientIdleTimeout, clientWriteTimeout } = limits;
  const isOver = (limit: number, since: number): boolean => limit > 0 && now - since >= limit;
  // Its time begins when the statements ahead of its own are answered, which they are soon, or it runs elsewhere.
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
  // As the client knows it: a BEGIN counts, also while no server has heard of it.
  if (state !== 'idle' && isOver(transactionTimeout, session.inTransactionSince))
    session.end(timeouts.transaction(transactionTimeout));
  else if (state === 'active') {
    // As PgBouncer has it: from when the client asked, the wait for a server included.
    if (isOver(queryTimeout, session.waitedSince || session.askedAt))
      session.end(timeouts.query(queryTimeout));
  } else if (state === 'idle in transaction') {
    if (isOver(idleTransactionTimeout, session.idleSince))
      session.end(timeouts.idleTransaction(idleTransactionTimeout));
    // Without a server it holds nobody up, as one that is in no transaction.
    else if (backend === undefined && isOver(clientIdleTimeout, session.idleSince))
      session.end(timeouts.clientIdle(clientIdleTimeout));
  } else if (isOver(clientIdleTimeout, session.idleSince))
    session.end(timeouts.clientIdle(clientIdleTimeout));
}
