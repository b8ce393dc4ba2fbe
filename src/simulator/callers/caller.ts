/** One caller: comes, takes a connection at once or waits for one, uses it for a while, and gives it back. */
import type { PooledConnection } from '../../core/pooled-connection.js';
import { Waiter } from '../../core/waiters.js';
import type { ServiceProcess } from '../process/service-process.js';
import type { Session } from '../server/session.js';
import type { Planned, Timeline } from '../time/timeline.js';

/** Is told what becomes of callers. */
export interface CallerDiary {
  came(caller: Caller): void;
  /** `waitMs` counts from when the caller came, whether or not its process was able to notice. */
  served(caller: Caller, waitMs: number): void;
  failed(caller: Caller, waitMs: number): void;
  /** The connection broke while the caller had it: its work has failed. */
  cutOff(caller: Caller): void;
  /** The caller has given its connection back. */
  gaveBack(caller: Caller): void;
  /** The caller is gone; `isDone`: after its whole time. */
  left(caller: Caller, isDone: boolean): void;
  /** The caller was given a second answer. */
  answeredTwice(): void;
}

/** How many of one tenant are being served or waiting in one process. */
export interface Presence {
  count: number;
  /** Callers among them that have a connection. */
  served: number;
}

export class Caller extends Waiter<Session> {
  readonly cameAt: number;
  readonly holdMs: number;
  readonly presence: Presence;
  readonly #process: ServiceProcess;
  readonly #timeline: Timeline;
  readonly #diary: CallerDiary;
  #pooled: PooledConnection<Session> | undefined;
  #generation = 0;
  #isAnswered = false;
  #release: Planned | undefined;
  readonly #queryTimeoutMs: number | undefined;

  /** `queryTimeoutMs`: how long it waits for an answer of a connection that hangs; undefined: for ever. */
  constructor(
    process: ServiceProcess,
    timeline: Timeline,
    diary: CallerDiary,
    presence: Presence,
    holdMs: number,
    queryTimeoutMs?: number,
  ) {
    super();
    this.#process = process;
    this.#timeline = timeline;
    this.#diary = diary;
    this.presence = presence;
    this.cameAt = timeline.now;
    this.holdMs = holdMs;
    this.#queryTimeoutMs = queryTimeoutMs;
  }

  /** Without `maxWaitMs`, it waits as long as the pool says. */
  come(maxWaitMs: number | undefined): void {
    const { pool, tally } = this.#process;
    this.#diary.came(this);
    const pooled = pool.tryTake();
    if (pooled !== undefined) {
      this.granted(pooled);
      return;
    }
    tally.emptyEvents++;
    pool.enqueue(this, maxWaitMs ?? pool.usualTimeoutMs);
  }

  override granted(pooled: PooledConnection<Session>): void {
    if (this.#isAnsweredAgain()) return;
    const { now } = this.#timeline;
    this.#pooled = pooled;
    this.#generation = pooled.generation;
    this.#process.tally.checkouts++;
    pooled.connection.caller = this;
    this.#diary.served(this, now - this.cameAt);
    this.#release = this.#timeline.plan(now + this.holdMs, () => this.#end(pooled.connection));
  }

  /** Is done, unless the connection hangs: then the answer to its last query is missing. */
  #end(session: Session): void {
    const { now } = this.#timeline;
    if (session.isHung && this.#queryTimeoutMs !== undefined) {
      const leftMs = Math.max(0, this.#queryTimeoutMs - this.holdMs);
      this.#timeline.plan(now + leftMs, () => this.#process.deliver(() => this.#timeOut(session)));
    }
    session.whenAnswered(() => this.#process.deliver(() => this.#giveBack(true)));
  }

  #timeOut(session: Session): void {
    const pooled = this.#pooled;
    if (pooled === undefined || !session.isHung) return;
    this.#process.pool.broken(pooled, new Error('the query timed out'));
    this.cutOff();
  }

  override failed(_error: Error): void {
    if (this.#isAnsweredAgain()) return;
    this.#diary.failed(this, this.#timeline.now - this.cameAt);
    this.#diary.left(this, false);
  }

  #isAnsweredAgain(): boolean {
    if (this.#isAnswered) this.#diary.answeredTwice();
    const wasAnswered = this.#isAnswered;
    this.#isAnswered = true;
    return wasAnswered;
  }

  /** Its connection broke: what it was doing has failed, and it gives the connection back. */
  cutOff(): void {
    if (this.#pooled === undefined) return;
    if (this.#release !== undefined) this.#timeline.cancel(this.#release);
    this.#diary.cutOff(this);
    this.#giveBack(false);
  }

  #giveBack(isDone: boolean): void {
    const pooled = this.#pooled;
    if (pooled === undefined) return;
    this.#pooled = undefined;
    pooled.connection.caller = undefined;
    this.#diary.gaveBack(this);
    this.#diary.left(this, isDone);
    this.#process.pool.release(pooled, this.#generation);
  }
}
