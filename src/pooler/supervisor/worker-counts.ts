/**
 * Counters of workers, as each has reported them last. Counters of workers that have ended, or do not answer, keep counting in
 * the totals: monitoring takes a falling total for a restart, and one that rises again for a burst.
 */
import { type Counters, noCounters, sumOf } from '../console/counters.js';
import type { StatsRecord } from '../console/pooler-view.js';

type Counted = StatsRecord['databases'];

export class WorkerCounts<Worker> {
  readonly #last = new Map<Worker, Counted>();
  /** Counters of forgotten workers, by database. */
  readonly #forgotten = new Map<string, Counters>();

  told(worker: Worker, { databases }: StatsRecord): void {
    this.#last.set(worker, databases);
  }

  /** Merges the counters of all workers but these into one. */
  forgetAllBut(workers: readonly Worker[]): void {
    for (const [worker, databases] of this.#last) {
      if (workers.includes(worker)) continue;
      this.#last.delete(worker);
      for (const { database, total } of databases)
        this.#forgotten.set(database, sumOf([this.#forgotten.get(database) ?? noCounters, total]));
    }
  }

  /** Counters of all workers but these. They do not change, so averages of the latest period are those of living workers. */
  besides(present: ReadonlyMap<Worker, unknown>): Counted {
    const absent = [...this.#last]
      .filter(([worker]) => !present.has(worker))
      .flatMap(([, counted]) => counted);
    const totals = [...absent.map(({ database, total }) => [database, total] as const), ...this.#forgotten];
    return totals.map(([database, total]) => ({ database, total, before: total }));
  }
}
