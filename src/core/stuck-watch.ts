/**
 * Reports callers that wait for long, an `end()` that does not finish and a `ready()` that is not answered, with the
 * reason. The first report is immediate; while the wait goes on, later ones are summed and reported at intervals that
 * double up to an hour.
 *
 * Has its own alarm, which never keeps a program running, and which is set only while a caller waits.
 */
import type { Alarm, AlarmFactory, Clock } from '../kernel/clock.js';
import type { Dialing } from './dialing.js';
import type { LiveConnections } from './live-connections.js';
import type { PoolFigures } from './pool-figures.js';
import type { PoolListener } from './pool-listener.js';
import type { Readiness } from './readiness.js';
import type { ServiceState } from './service-state.js';
import type { StuckReport } from './stuck-report.js';
import type { Tally } from './tally.js';
import type { CallerQueue } from './waiters.js';

export interface StuckWatchParts<C> {
  readonly clock: Clock;
  readonly service: ServiceState<C>;
  readonly waiters: CallerQueue<C>;
  readonly connections: LiveConnections<C>;
  readonly dialing: Dialing<C>;
  readonly readiness: Readiness;
  readonly figures: PoolFigures<C>;
  readonly tally: Tally;
  readonly listener: PoolListener<C> | undefined;
}

const firstIntervalMs = 60_000;
const longestIntervalMs = 3_600_000;

/** When a wait was reported, and what was seen since then. */
class Told {
  seenAgain = 0;
  /** Callers that had timed out by then. */
  timedOut = 0;
  #intervalMs = firstIntervalMs;
  #againAt = -Infinity;

  /** Counts the wait if it is not to be reported yet. */
  isDue(now: number): boolean {
    if (now < this.#againAt) {
      this.seenAgain++;
      return false;
    }
    const isLongAgo = now - this.#againAt > longestIntervalMs;
    this.#intervalMs = isLongAgo ? firstIntervalMs : Math.min(2 * this.#intervalMs, longestIntervalMs);
    this.#againAt = now + this.#intervalMs;
    return true;
  }
}

export class StuckWatch<C> {
  readonly #warnAfter: number;
  readonly #parts: StuckWatchParts<C>;
  readonly #alarm: Alarm;
  #isSet = false;
  #readySince = 0;
  #endSince: number | undefined;
  /** An `end()` that does not finish is another event than callers that waited before it. */
  readonly #told = { waits: new Told(), end: new Told() };

  constructor(warnAfter: number, alarm: AlarmFactory, parts: StuckWatchParts<C>) {
    this.#warnAfter = warnAfter;
    this.#parts = parts;
    this.#alarm = alarm(() => this.#look());
  }

  /** A caller has begun to wait. */
  begin(now: number): void {
    if (!this.#isSet) this.#lookAt(now + this.#warnAfter);
  }

  /** `ready()` was called while no other `ready()` call waited. */
  readyAsked(now: number): void {
    if (this.#parts.readiness.size <= 1) this.#readySince = now;
    this.begin(now);
  }

  /** The pool has begun to end, without a deadline. */
  endBegan(now: number): void {
    this.#endSince = now;
    this.begin(now);
  }

  stop(): void {
    this.#isSet = true;
    this.#alarm.clear();
  }

  #lookAt(at: number): void {
    this.#isSet = true;
    this.#alarm.set(at, false);
  }

  #look(): void {
    this.#isSet = false;
    const now = this.#parts.clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const [who, since] of this.#waits()) {
      const waitedMs = now - since;
      const isStuck = waitedMs + this.#alarm.granularityMs >= this.#warnAfter;
      if (isStuck) this.#noteStuck(who, waitedMs, now);
      next = Math.min(next, (isStuck ? now : since) + this.#warnAfter);
    }
    if (next < Number.POSITIVE_INFINITY) this.#lookAt(next);
  }

  /** Callers before `ready()`: their wait cause is also why that waits. */
  *#waits(): Iterable<readonly [StuckReport<C>['waits'], number]> {
    const { waiters, service, readiness } = this.#parts;
    const { first } = waiters;
    if (first !== undefined) yield ['callers', first.enqueuedAt];
    else if (readiness.size > 0) yield ['ready', this.#readySince];
    if (this.#endSince !== undefined && service.current === 'draining') yield ['end', this.#endSince];
  }

  #noteStuck(waits: StuckReport<C>['waits'], waitedMs: number, now: number): void {
    const { figures, connections, service, dialing, tally, listener } = this.#parts;
    const told = this.#told[waits === 'end' ? 'end' : 'waits'];
    if (!told.isDue(now)) return;
    const held = [...connections.all()].filter(({ state }) => state === 'in_use');
    listener?.stuck?.({
      ...{ waits, waitedMs, now },
      cause: figures.waitCause(),
      state: service.current,
      counts: figures.counts(),
      failedDials: dialing.failures,
      held: held.sort((a, b) => a.inUseSince - b.inUseSince),
      lastError: dialing.lastError,
      seenAgain: told.seenAgain,
      timedOut: tally.timedOut - told.timedOut,
    });
    told.seenAgain = 0;
    told.timedOut = tally.timedOut;
  }
}
