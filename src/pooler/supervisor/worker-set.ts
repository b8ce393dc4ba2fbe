/** Starts the workers, and replaces one that dies: at once or, if it keeps dying, after growing delays. Never gives up. */
import { backoffDelay } from '../../core/backoff.js';
import { systemRandom } from '../../runtime/system.js';
import type { PoolerLog } from '../log.js';
import { WorkerProcess, type WorkerProcessParts } from './worker-process.js';

export interface WorkerSetParts {
  readonly size: number;
  readonly log: PoolerLog;
  readonly partsOf: (number: number) => Omit<WorkerProcessParts, 'number' | 'restarts' | 'ended' | 'log'>;
  /** The worker's process was started, and needs its first messages. */
  readonly began: (worker: WorkerProcess) => void;
  /** The worker can take clients. False: its state is outdated, and it must be started again. */
  readonly ready: (worker: WorkerProcess) => boolean;
  /** The worker has ended. Returns the number of slots that it has left behind. */
  readonly ended: (worker: WorkerProcess) => number;
  /** The last worker has ended, and none will be started. */
  readonly emptied: () => void;
}

const backoff = { base: 200, cap: 10_000 };
/** After this life time, a death is not blamed on the start. */
const longLifeMs = 30_000;

export class WorkerSet {
  readonly #parts: WorkerSetParts;
  readonly #workers = new Map<number, WorkerProcess>();
  /** Consecutive deaths soon after a start, by the worker's number. */
  readonly #failures = new Map<number, number>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #isEnding = false;

  constructor(parts: WorkerSetParts) {
    this.#parts = parts;
  }

  /** All workers, including those that have ended and are to be replaced. */
  get all(): readonly WorkerProcess[] {
    return [...this.#workers.values()];
  }

  /** Workers that can be asked. */
  get serving(): readonly WorkerProcess[] {
    return this.all.filter(({ state }) => state === 'ready' || state === 'ending');
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  get(number: number): WorkerProcess | undefined {
    return this.#workers.get(number);
  }

  /** Rejects if a worker can't be started; all of them are ended then. */
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
        if (!this.#isEnding) log('error', 'worker not started', { worker: number, error: error.message });
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
    // Without delay the first time: its clients are about to reconnect.
    const delayMs = failures === 1 ? 0 : Math.ceil(backoffDelay(backoff, failures - 1, systemRandom));
    this.#parts.log('error', 'worker ended', {
      worker: number,
      pid: processId,
      reason: why,
      duration_ms: livedMs,
      restarts,
      slots,
      restart_in_ms: delayMs,
    });
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#start(number, restarts + 1);
    }, delayMs);
    this.#timers.add(timer);
  }

  /** Workers that end from now on are not replaced. */
  end(): void {
    this.#isEnding = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const [number, worker] of this.#workers) {
      // A dead worker waiting for its replacement is dropped; a starting one has no clients.
      if (worker.state === 'gone') this.#workers.delete(number);
      else if (worker.state === 'starting') worker.kill();
    }
    if (this.#workers.size === 0) this.#parts.emptied();
  }

  kill(): void {
    for (const worker of this.#workers.values()) worker.kill();
  }
}
