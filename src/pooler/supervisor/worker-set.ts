/** The workers: starts them, and another in place of one that dies, at once or, if it keeps dying, later and later. Never gives up. */
import { backoffDelay } from '../../core/backoff.js';
import { systemRandom } from '../../runtime/system.js';
import type { PoolerLog } from '../log.js';
import { WorkerProcess, type WorkerProcessParts } from './worker-process.js';

export interface WorkerSetParts {
  readonly size: number;
  readonly log: PoolerLog;
  readonly partsOf: (number: number) => Omit<WorkerProcessParts, 'number' | 'restarts' | 'ended' | 'log'>;
  /** It is there, and is to be told what to begin with. */
  readonly began: (worker: WorkerProcess) => void;
  /** It can take clients. False: it has learned something that does not hold any more, and has to begin again. */
  readonly ready: (worker: WorkerProcess) => boolean;
  /** It is no more. Answers how many slots it has left behind. */
  readonly ended: (worker: WorkerProcess) => number;
  /** The last one is no more, and none is to follow. */
  readonly emptied: () => void;
}

const backoff = { base: 200, cap: 10_000 };
/** One that has lived for so long does not die because of how it was started. */
const longLifeMs = 30_000;

export class WorkerSet {
  readonly #parts: WorkerSetParts;
  readonly #workers = new Map<number, WorkerProcess>();
  /** By the worker's number: deaths soon after a start, one after the other. */
  readonly #failures = new Map<number, number>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #isEnding = false;

  constructor(parts: WorkerSetParts) {
    this.#parts = parts;
  }

  /** All of them, also one that is gone and yet to be replaced. */
  get all(): readonly WorkerProcess[] {
    return [...this.#workers.values()];
  }

  /** Those that can be asked something. */
  get serving(): readonly WorkerProcess[] {
    return this.all.filter(({ state }) => state === 'ready' || state === 'ending');
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  get(number: number): WorkerProcess | undefined {
    return this.#workers.get(number);
  }

  /** Rejects with why one of them can't work; none is left then. */
  async startAll(): Promise<void> {
    const numbers = Array.from({ length: this.#parts.size }, (_, index) => index + 1);
    try {
      await Promise.all(numbers.map((number) => this.#start(number, 0).ready));
    } catch (error) {
      this.#isEnding = true;
      this.kill();
      throw error;
    }
  }

  #start(number: number, restarts: number): WorkerProcess {
    const { log, partsOf, began, ready } = this.#parts;
    const worker: WorkerProcess = new WorkerProcess({
      ...partsOf(number),
      number,
      restarts,
      log,
      ended: (why) => this.#ended(worker, why),
    });
    this.#workers.set(number, worker);
    began(worker);
    worker.ready.then(
      () => {
        if (!ready(worker)) worker.kill();
      },
      (error: Error) => {
        if (!this.#isEnding) log('error', `worker ${number} did not start: ${error.message}`);
      },
    );
    return worker;
  }

  #ended(worker: WorkerProcess, why: string): void {
    const slots = this.#parts.ended(worker);
    if (!this.#isEnding) {
      this.#replace(worker, why, slots);
      return;
    }
    this.#workers.delete(worker.number);
    if (this.#workers.size === 0) this.#parts.emptied();
  }

  #replace({ number, startedAt, restarts, processId }: WorkerProcess, why: string, slots: number): void {
    const livedMs = Date.now() - startedAt;
    const failures = livedMs >= longLifeMs ? 1 : (this.#failures.get(number) ?? 0) + 1;
    this.#failures.set(number, failures);
    // The first time at once: its clients are about to come back.
    const delayMs = failures === 1 ? 0 : Math.ceil(backoffDelay(backoff, failures - 1, systemRandom));
    this.#parts.log('error', `worker ${number} has ended (${why}); another is started in ${delayMs} ms`, {
      pid: processId,
      livedMs,
      restarts,
      slots,
    });
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#start(number, restarts + 1);
    }, delayMs);
    this.#timers.add(timer);
  }

  /** None follows those that end from now on. */
  end(): void {
    this.#isEnding = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const [number, worker] of this.#workers) {
      // One that is dead and would have been replaced is not waited for; one that has yet to start has no clients.
      if (worker.state === 'gone') this.#workers.delete(number);
      else if (worker.state === 'starting') worker.kill();
    }
    if (this.#workers.size === 0) this.#parts.emptied();
  }

  kill(): void {
    for (const worker of this.#workers.values()) worker.kill();
  }
}
