/** The leases of one process, in a table: the product's own, and what the world wants to know of them. */

import type { leaseKeys } from '../../../coordination/dynamodb/lease-items.js';
import { type Item, numberOf, type Table } from '../../../coordination/dynamodb/table.js';
import { TableLeases } from '../../../coordination/dynamodb/table-leases.js';
import type { LeaseAnswer, LeaseHolder } from '../../../core/leases.js';
import type { AlarmFactory, Clock } from '../../../kernel/clock.js';
import type { Random } from '../../../kernel/random.js';
import type { CoordinatorPlan, TablePlan } from '../../scenario/scenario.js';
import type { LeasingProcess, ProcessLeases } from '../process-leases.js';

/** The table with the leases, as a process reaches it. */
export interface TableSource {
  readonly plan: CoordinatorPlan & { readonly table: TablePlan };
  readonly keys: ReturnType<typeof leaseKeys>;
  tableFor(process: LeasingProcess, random: Random): Table;
  worldOf(
    process: LeasingProcess,
    random: Random,
  ): { clock: Pick<Clock, 'now'>; alarm: AlarmFactory; random: Random; timeoutMs: number };
  /** The item under this key, whatever a process believes. */
  find(key: string): Item | undefined;
}

/** A program does not wait for longer with its end. */
const finishMs = 5_000;

export class TableLeaseClient implements ProcessLeases {
  readonly #leases: TableLeases;
  readonly #process: LeasingProcess;
  readonly #coordinator: TableSource;
  readonly #key: string;
  #isAbandoned = false;

  constructor(process: LeasingProcess, coordinator: TableSource, leaseId: string, random: Random) {
    const { plan, keys } = coordinator;
    const { leaseMs, renewMs, graceMs, onCoordinatorLoss } = plan.table;
    this.#process = process;
    this.#coordinator = coordinator;
    this.#key = keys.leases + leaseId;
    this.#leases = new TableLeases(
      coordinator.tableFor(process, random),
      {
        ...{ keys, leaseId, instance: leaseId, service: process.name, limit: plan.leaseLimit },
        ...{ leaseMs, renewMs, graceMs, onCoordinatorLoss, localShare: 0 },
        lookMs: Math.min(5_000, graceMs / 3),
        block: 20,
      },
      coordinator.worldOf(process, random),
    );
  }

  get held(): number {
    return this.#leases.held;
  }

  get isAsking(): boolean {
    return this.#leases.isAsking;
  }

  /** One that could not give back in time has left it to others. */
  get outstanding(): number {
    return this.#isAbandoned ? 0 : numberOf(this.#coordinator.find(this.#key), 'slots');
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    return this.#leases.acquire(count, holder);
  }

  release(count: number, holder: LeaseHolder): void {
    this.#leases.release(count, holder);
  }

  finish(onFinished: () => void): void {
    let isFinished = false;
    const finish = (): void => {
      if (isFinished) return;
      isFinished = true;
      onFinished();
    };
    this.#leases.end(finish);
    this.#process.later(finishMs, () => {
      if (isFinished) return;
      this.#isAbandoned = true;
      this.#leases.abandon();
      finish();
    });
  }

  processCrashed(): void {
    this.#leases.abandon();
  }

  /** The table is not told. */
  sessionsGone(): void {}
}
