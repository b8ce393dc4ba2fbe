/**
 * The server's statement_timeout and idle_in_transaction_session_timeout, kept on this side, because Aurora DSQL has
 * neither. What takes too long can't be cancelled either, so its connection is closed.
 *
 *     idle --sent--> busy --ready, outside a transaction--> idle
 *                     busy --ready, inside of one--> idle in transaction --sent--> busy
 *                     busy --ready, while more was sent--> busy, for the next statement
 *
 * A statement's time begins when it is sent, or when the one before it on the same connection is done.
 */
import type { Alarm, AlarmFactory, Clock } from '../kernel/clock.js';
import { IdleInTransactionError, StatementTimeoutError } from './errors.js';

/** Milliseconds; Infinity: no limit. */
export interface SessionLimits {
  readonly statement: number;
  readonly idleInTransaction: number;
}

export class SessionTimeouts {
  readonly #limits: SessionLimits;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #alarm: Alarm;
  /** Answers that the server owes: one for each query, or for each group of messages that ends with a Sync. */
  #owed = 0;
  #isBusy = false;

  /** `end` closes the connection with this error. */
  constructor(
    limits: SessionLimits,
    clock: Pick<Clock, 'now'>,
    makeAlarm: AlarmFactory,
    end: (error: Error) => void,
  ) {
    this.#limits = limits;
    this.#clock = clock;
    this.#alarm = makeAlarm(() =>
      end(
        this.#isBusy
          ? new StatementTimeoutError(limits.statement)
          : new IdleInTransactionError(limits.idleInTransaction),
      ),
    );
  }

  /** A message of a statement went out; `isAnswered` when the server will say that it is ready after it. */
  sent(isAnswered: boolean): void {
    if (isAnswered) this.#owed++;
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#set(this.#limits.statement);
  }

  /** The server is ready; `status` is `I` outside a transaction. */
  ready(status: string): void {
    if (this.#owed > 0) this.#owed--;
    this.#isBusy = this.#owed > 0;
    if (this.#isBusy) this.#set(this.#limits.statement);
    else this.#set(status === 'I' ? Number.POSITIVE_INFINITY : this.#limits.idleInTransaction);
  }

  closed(): void {
    this.#alarm.clear();
  }

  #set(limit: number): void {
    if (Number.isFinite(limit)) this.#alarm.set(this.#clock.now() + limit, false);
    else this.#alarm.clear();
  }
}

/** The watched part of pg's connection: pg itself calls these methods to send. */
export interface WatchedConnection {
  on(event: 'readyForQuery', listener: (message: { readonly status: string }) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  readonly stream: { destroy(error: Error): unknown };
}

/** Keeps the limits on a connection for as long as it lives. */
export function watchSession(
  connection: WatchedConnection,
  limits: SessionLimits,
  clock: Pick<Clock, 'now'>,
  makeAlarm: AlarmFactory,
): void {
  const timeouts = new SessionTimeouts(limits, clock, makeAlarm, (error) => connection.stream.destroy(error));
  const methods = connection as unknown as Record<string, ((...args: unknown[]) => unknown) | undefined>;
  for (const name of ['query', 'parse', 'bind', 'execute', 'sync']) {
    const send = methods[name];
    if (send === undefined) continue;
    methods[name] = (...args) => {
      timeouts.sent(name === 'query' || name === 'sync');
      return send.apply(connection, args);
    };
  }
  connection.on('readyForQuery', ({ status }) => timeouts.ready(status));
  connection.on('end', () => timeouts.closed());
}
