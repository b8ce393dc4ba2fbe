/** Runs console commands of one worker in all workers, and waits for all of them. */

import type { FleetStats } from '../budgets/fleet.js';
import type { ShareLog } from '../budgets/share-log.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { RunState } from '../console/pooler-view.js';
import { ServingError } from '../errors.js';
import { WorkerCallError } from '../messages/calls.js';
import { decodeConfig } from '../messages/config-codec.js';
import type { ControlMessage } from '../messages/control-message.js';
import { ownerOf } from '../messages/worker-ids.js';
import type {
  NumberedSnapshot,
  SnapshotRequest,
  WorkerSnapshot,
  WorkerSnapshots,
} from '../messages/worker-snapshot.js';
import type { SlotBroker } from './slot-broker.js';
import { WorkerCounts } from './worker-counts.js';
import type { WorkerProcess } from './worker-process.js';

export interface ConsoleCommandsParts {
  readonly size: number;
  /** Workers that are ready or about to end. */
  readonly workers: () => readonly WorkerProcess[];
  readonly everyWorker: () => readonly WorkerProcess[];
  readonly slots: SlotBroker;
  readonly shareLog: ShareLog;
  readonly fleet: () => readonly FleetStats[];
  readonly reload: () => Promise<void>;
  readonly applyConfig: (config: PoolerConfig) => Promise<void>;
  /** No more clients are accepted, and no ended worker is replaced. */
  readonly ending: () => void;
}

/** A worker that takes longer is left out. */
const workerTimeoutMs = 5_000;

export class ConsoleCommands {
  state: RunState = 'active';
  /** Number of changes that a worker has to know from its start. */
  changes = 0;
  readonly paused = new Set<string>();
  readonly disabled = new Set<string>();
  readonly #parts: ConsoleCommandsParts;
  readonly #counts = new WorkerCounts<WorkerProcess>();
  #looksUnderWay = 0;

  constructor(parts: ConsoleCommandsParts) {
    this.#parts = parts;
  }

  /** Snapshots of all workers. One that does not answer is left out, except for its last known counters. */
  async look(wanted: SnapshotRequest): Promise<WorkerSnapshots> {
    // A snapshot under way may still contain the answer of a worker that has ended.
    if (this.#looksUnderWay === 0) this.#counts.forgetAllBut(this.#parts.everyWorker());
    this.#looksUnderWay++;
    const looked = new Map<WorkerProcess, NumberedSnapshot>();
    await Promise.allSettled(
      this.#parts.workers().map(async (worker) => {
        const look = (await worker.calls.ask('snapshot', wanted, {
          timeoutMs: workerTimeoutMs,
        })) as WorkerSnapshot;
        this.#counts.told(worker, look.stats);
        looked.set(worker, { ...look, number: worker.number });
      }),
    );
    this.#looksUnderWay--;
    const looks = [...looked.values()].sort((one, other) => one.number - other.number);
    return {
      snapshots: looks,
      absent: this.#counts.besides(looked),
      workers: this.#parts.everyWorker().map((worker) => worker.stateForPeople()),
      peaks: this.#parts.slots.peaks(),
      shares: this.#parts.slots.budgets
        .stats()
        .flatMap(({ budget, capacity, users }) => users.map((user) => ({ budget, capacity, ...user }))),
      rebalances: this.#parts.shareLog.changes,
      fleet: [...this.#parts.fleet(), ...looks.flatMap(({ fleet }) => fleet)],
      state: this.state,
      paused: [...this.paused],
    };
  }

  async obey(control: ControlMessage, signal: AbortSignal): Promise<unknown> {
    switch (control.verb) {
      case 'reload':
        return this.#parts.reload();
      case 'applyConfig':
        return this.#parts.applyConfig(decodeConfig(control.config ?? {}));
      case 'killClient':
        return this.#killClient(control.id ?? 0);
      case 'shutdown':
        this.#parts.ending();
        return this.#tellAll(control, signal);
      default:
        this.#note(control);
        return this.#tellAll(control, signal);
    }
  }

  /** Notes the command for workers that start later. */
  #note({ verb, database }: ControlMessage): void {
    if (verb === 'reconnect' || verb === 'waitClose') return;
    this.changes++;
    if (verb === 'pause' || verb === 'kill') {
      if (database === undefined) this.state = 'paused';
      else this.paused.add(database);
    } else if (verb === 'resume') {
      if (database === undefined) {
        this.state = 'active';
        this.paused.clear();
      } else this.paused.delete(database);
    } else if (verb === 'suspend') this.state = 'suspended';
    else if (verb === 'disable') this.disabled.add(database as string);
    else if (verb === 'enable') this.disabled.delete(database as string);
  }

  async #killClient(id: number): Promise<boolean> {
    const owner = ownerOf(id, this.#parts.size);
    const worker = this.#parts.workers().find(({ number }) => number === owner?.worker);
    if (owner === undefined || worker === undefined) return false;
    const message: ControlMessage = { verb: 'killClient', id: owner.own };
    return (await worker.calls.ask('control', message, { timeoutMs: workerTimeoutMs })) === true;
  }

  /** Resolves when all workers are done. A worker that has ended has nothing left to do. */
  async #tellAll(control: ControlMessage, signal: AbortSignal): Promise<void> {
    const workers = this.#parts.workers();
    const outcomes = await Promise.allSettled(
      workers.map(({ calls }) => calls.ask('control', control, { signal })),
    );
    signal.throwIfAborted();
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled' || outcome.reason instanceof WorkerCallError) continue;
      const { number } = workers[index] as WorkerProcess;
      const { message } = outcome.reason as Error;
      throw new ServingError(`Worker ${number} of ${this.#parts.size}: ${message}`, outcome.reason);
    }
  }
}
