/**
 * What workers have counted, as each has said last. Whoever makes rates of totals takes one that falls for a pooler that
 * began anew, and one that rises again for a burst: so those that are no more, or do not answer, count as they did.
 */
import { type Counters, noCounters, sumOf } from '../console/counters.js';
import type { StatsRecord } from '../console/pooler-view.js';

type Counted = StatsRecord['databases'];

export class WorkerCounts<Worker> {
  readonly #last = new Map<Worker, Counted>();
  /** By database: what those have counted that are forgotten. */
  readonly #forgotten = new Map<string, Counters>();

  told(worker: Worker, { databases }: StatsRecord): void {
    this.#last.set(worker, databases);
  }

  /** Those that are no more are one from now on. */
  forgetAllBut(workers: readonly Worker[]): void {
    for (const [worker, databases] of this.#last) {
      if (workers.includes(worker)) continue;
      this.#last.delete(worker);
      for (const { database, total } of databases)
        this.#forgotten.set(database, sumOf([this.#forgotten.get(database) ?? noCounters, total]));
    }
  }

  /** Of all but these. Nothing of it is of the last moments, so that averages are of those that live. */
  besides(present: ReadonlyMap<Worker, unknown>): Counted {
    const absent = [...this.#last]
      .filter(([worker]) => !present.has(worker))
      .flatMap(([, counted]) => counted);
    const totals = [...absent.map(({ database, total }) => [database, total] as const), ...this.#forgotten];
    return totals.map(([database, total]) => ({ database, total, before: total }));
  }
}
