/** The engine's interface for opening, closing and checking connections, which it does not do itself. */
import type { Linked } from '../kernel/linked-list.js';
import type { Approval, Slot } from './ledger.js';
import type { PooledConnection } from './pooled-connection.js';
import type { DialPurpose } from './reasons.js';
import type { Waiter } from './waiters.js';

/** One attempt to open a connection, from its approval to its one answer. */
export class Dial<C> implements Linked<Dial<C>> {
  readonly approval: Approval;
  readonly startedAt: number;
  purpose: DialPurpose = 'caller';
  /** Failed attempts at the same connection, where they are counted. */
  failedBefore = 0;
  /** Repeats a dial whose reason to fail no longer exists. Another failure of that kind counts. */
  isSecondChance = false;
  /**
   *     dialing --answer--> answered
   *     dialing --deadline, or not wanted any more--> abandoned --answer--> answered
   *                                                            \--none in time--> lost
   */
  state: 'dialing' | 'abandoned' | 'answered' | 'lost' = 'dialing';
  /** When the current state must end. */
  deadline: number;
  /** Set when the dial is abandoned: from then on the attempt counts as a closing connection. */
  slot: Slot | undefined;
  /** No caller wants this dial any more: a timeout is then no failure. */
  isUnwanted = false;
  /** The caller for whom the dial is made. */
  waiter: Waiter<C> | undefined;
  /** A failure of this dial is that caller's answer. */
  answersWaiter = false;
  previous: Dial<C> | undefined;
  next: Dial<C> | undefined;

  constructor(approval: Approval, startedAt: number, deadline: number) {
    this.approval = approval;
    this.startedAt = startedAt;
    this.deadline = deadline;
  }
}

/** Each call is answered by one call to the pool, at once or later. */
export interface Dialer<C> {
  /** Open one. Answer: `pool.dialed(dial, connection)` or `pool.dialFailed(dial, error)`. */
  dial(dial: Dial<C>): void;
  /** Stop opening it. An answer is still expected; a connection that opens in spite of this is closed. */
  abandon(dial: Dial<C>): void;
  /** Close it in good order. Answer: `pool.closed(connection)`. */
  close(connection: PooledConnection<C>): void;
  /** Close it now, whatever it is doing; no answer is waited for. */
  destroy(connection: PooledConnection<C>): void;
  /** Find out whether it works. Answer: `pool.checked(connection, error?)`. */
  check(connection: PooledConnection<C>): void;
}
