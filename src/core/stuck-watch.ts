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

export class StuckWatch<C> {
  readonly #warnAfter: number;
  readonly #parts: StuckWatchParts<C>;
  readonly #alarm: Alarm;
  #isSet = false;
  #readySince = 0;
  #endSince: number | undefined;
  #intervalMs = firstIntervalMs;
  #tellAgainAt = -Infinity;
  #seenAgain = 0;
  #timedOutTold = 0;

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
    const waits = this.#longestWait();
    if (waits === undefined) return;
    const [who, since] = waits;
    const waitedMs = now - since;
    if (waitedMs + this.#alarm.granularityMs >= this.#warnAfter) this.#noteStuck(who, waitedMs, now);
    this.#lookAt(Math.max(now, since) + this.#warnAfter);
  }

  /** Callers first: their wait cause is also why `ready()` and `end()` wait. */
  #longestWait(): readonly [StuckReport<C>['waits'], number] | undefined {
    const { waiters, service, readiness } = this.#parts;
    const { first } = waiters;
    if (first !== undefined) return ['callers', first.enqueuedAt];
    if (this.#endSince !== undefined && service.current === 'draining') return ['end', this.#endSince];
    return readiness.size > 0 ? ['ready', this.#readySince] : undefined;
  }

  #noteStuck(waits: StuckReport<C>['waits'], waitedMs: number, now: number): void {
    const { figures, connections, service, dialing, tally, listener } = this.#parts;
    if (now < this.#tellAgainAt) {
      this.#seenAgain++;
      return;
    }
    const isLongAgo = now - this.#tellAgainAt > longestIntervalMs;
    this.#intervalMs = isLongAgo ? firstIntervalMs : Math.min(2 * this.#intervalMs, longestIntervalMs);
    this.#tellAgainAt = now + this.#intervalMs;
    const held = [...connections.all()].filter(({ state }) => state === 'in_use');
    listener?.stuck?.({
      ...{ waits, waitedMs, now },
      cause: figures.waitCause(),
      state: service.current,
      counts: figures.counts(),
      failedDials: dialing.failures,
      held: held.sort((a, b) => a.inUseSince - b.inUseSince),
      lastError: dialing.lastError,
      seenAgain: this.#seenAgain,
      timedOut: tally.timedOut - this.#timedOutTold,
    });
    this.#seenAgain = 0;
    this.#timedOutTold = tally.timedOut;
  }
}
