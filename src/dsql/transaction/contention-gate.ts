/**
 * Keeps transactions that lose to each other from running at the same time.
 *
 * DSQL has no locks: of transactions that change the same row, the first to commit wins, so one that begins while another is
 * under way loses nearly always, however long it waited before. Where conflicts are rare, the gate is open and costs nothing.
 * After a run of conflicts it closes: as many attempts as `limit` run at once, the others wait, retries before first
 * attempts. The limit falls by 1 with each conflict and rises by a quarter with each commit, which settles at four commits
 * for a conflict.
 *
 *     open --`stormScore` conflicts more than a quarter of the commits--> closed --limit above what is asked for--> open
 *
 * Not a lock: a transaction that has waited for `patienceMs` goes on.
 */
import type { AlarmFactory, Clock } from '../../kernel/clock.js';
import { systemAlarm, systemClock } from '../../runtime/system.js';

/** End of an attempt. `other`: says nothing about conflicts. */
export type AttemptOutcome = 'committed' | 'conflict' | 'other';

const conflictStep = 1;
const commitStep = 0.25;
const stormScore = 10;
const patienceMs = 5_000;

export class ContentionGate {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #makeAlarm: AlarmFactory;
  readonly #retries = new Set<() => void>();
  readonly #firsts = new Set<() => void>();
  #inside = 0;
  /** Infinity: open. */
  #limit = Number.POSITIVE_INFINITY;
  #score = 0;

  constructor(clock: Pick<Clock, 'now'> = systemClock, makeAlarm: AlarmFactory = systemAlarm) {
    this.#clock = clock;
    this.#makeAlarm = makeAlarm;
  }

  /** Attempts that may run at once; Infinity while the gate is open. */
  get limit(): number {
    return this.#limit;
  }

  get inside(): number {
    return this.#inside;
  }

  get waiting(): number {
    return this.#retries.size + this.#firsts.size;
  }

  /** Calls `admit` when the attempt may begin, possibly before this returns. The function returned takes the wish back. */
  enter(isRetry: boolean, admit: () => void): () => void {
    if (this.#hasRoom && this.waiting === 0) {
      this.#inside++;
      admit();
      return () => {};
    }
    const queue = isRetry ? this.#retries : this.#firsts;
    const alarm = this.#makeAlarm(() => go());
    const leave = (): boolean => {
      alarm.clear();
      return queue.delete(go);
    };
    const go = (): void => {
      if (!leave()) return;
      this.#inside++;
      admit();
    };
    queue.add(go);
    alarm.set(this.#clock.now() + patienceMs, true);
    this.#admit();
    return leave;
  }

  /** An attempt that was admitted is over. */
  leave(outcome: AttemptOutcome): void {
    this.#inside--;
    if (outcome === 'conflict') this.#conflicted();
    else if (outcome === 'committed') this.#committed();
    this.#admit();
  }

  get #hasRoom(): boolean {
    return this.#inside < Math.max(1, Math.floor(this.#limit));
  }

  #conflicted(): void {
    if (this.#limit !== Number.POSITIVE_INFINITY) {
      this.#limit = Math.max(1, this.#limit - conflictStep);
      return;
    }
    this.#score += conflictStep;
    if (this.#score < stormScore) return;
    this.#score = 0;
    this.#limit = Math.max(1, this.#inside);
  }

  #committed(): void {
    if (this.#limit === Number.POSITIVE_INFINITY) {
      this.#score = Math.max(0, this.#score - commitStep);
      return;
    }
    this.#limit += commitStep;
    if (this.waiting === 0 && this.#limit > this.#inside + stormScore) this.#limit = Number.POSITIVE_INFINITY;
  }

  #admit(): void {
    while (this.#hasRoom) {
      const [next] = this.#retries.size > 0 ? this.#retries : this.#firsts;
      if (next === undefined) return;
      next();
    }
  }
}
