/**
 * Leases and a rate limit in a table that all processes share: the product's own protocol, in each process, on a table in
 * memory. What the table says is judged after every change, and compared with itself: the counter is the sum of the leases.
 */
import { leaseKeys } from '../../../coordination/dynamodb/lease-items.js';
import { rateKey } from '../../../coordination/dynamodb/rate-items.js';
import { type Item, numberOf, type Table } from '../../../coordination/dynamodb/table.js';
import { TableRateLimiter } from '../../../coordination/dynamodb/table-rate-limiter.js';
import type { RateLimiter } from '../../../core/rate-limiter.js';
import type { AlarmFactory, Clock } from '../../../kernel/clock.js';
import type { Random } from '../../../kernel/random.js';
import type { Laws } from '../../laws.js';
import type { CoordinatorRecord } from '../../result.js';
import type { CoordinatorPlan, LimiterPlan, TablePlan } from '../../scenario/scenario.js';
import { CutOff } from '../../server/cut-off.js';
import { draw } from '../../time/chance.js';
import type { Timeline } from '../../time/timeline.js';
import type { LeaseKeeper, LeasingProcess, ProcessLeases } from '../process-leases.js';
import { MemoryTable } from './memory-table.js';
import { RemoteTable } from './remote-table.js';
import { TableLeaseClient } from './table-lease-client.js';

const endpoint = 'simulated';

export class DynamoCoordinator implements LeaseKeeper {
  readonly plan: CoordinatorPlan & { readonly table: TablePlan };
  readonly timeline: Timeline;
  readonly keys = leaseKeys(endpoint);
  readonly #laws: Laws;
  readonly #table: MemoryTable;
  readonly #cutOff = new CutOff();
  /** Slots of all leases, the sum of the changes. */
  #slots = 0;
  #active = 0;
  #peak = 0;
  #lastId = 0;

  constructor(plan: CoordinatorPlan & { readonly table: TablePlan }, timeline: Timeline, laws: Laws) {
    this.plan = plan;
    this.timeline = timeline;
    this.#laws = laws;
    this.#table = new MemoryTable({
      changed: (key, before, after) => this.#note(key, before, after),
      applied: () => this.#judge(),
    });
  }

  record(): CoordinatorRecord {
    return { leaseLimit: this.plan.leaseLimit, peakLeases: this.#peak, leases: this.#active };
  }

  clientFor(process: LeasingProcess, random: Random): ProcessLeases {
    // Every process has a lease of its own; one that is started again does not know the other's.
    return new TableLeaseClient(process, this, `${process.name}/${++this.#lastId}`, random);
  }

  limiterFor(process: LeasingProcess, plan: LimiterPlan, random: Random): RateLimiter {
    const { perSecond: rate, burst } = plan;
    const settings = {
      key: rateKey(endpoint),
      rate,
      burst,
      batch: 10,
      maxWaitMs: 30_000,
      localShare: undefined,
    };
    return new TableRateLimiter(this.tableFor(process, random), settings, this.worldOf(process, random));
  }

  /** The item under this key, whatever a process believes. */
  find(key: string): Item | undefined {
    return this.#table.get(key);
  }

  worldOf(
    process: LeasingProcess,
    random: Random,
  ): { clock: Pick<Clock, 'now'>; alarm: AlarmFactory; random: Random; timeoutMs: number } {
    return { clock: process.clock, alarm: process.alarmFactory, random, timeoutMs: this.plan.timeoutMs };
  }

  /** Its way to the table. Answers come in as all that happens in a process does. */
  tableFor(process: LeasingProcess, random: Random): Table {
    const { timeline, plan } = this;
    const { lostRequests, lostReplies, conflicts, throttles } = plan.table;
    const faults = { lostRequests, lostReplies, conflicts, throttles };
    const remote = new RemoteTable(this.#table, {
      now: () => timeline.now,
      later: (delayMs, run) => void timeline.plan(timeline.now + delayMs, run),
      halfWayMs: () => draw(plan.latency, random) / 2,
      isCutOff: () => this.#cutOff.has(process.name),
      faults: () => faults,
      random,
    });
    const later =
      <R>(answer: (reply: R) => void) =>
      (reply: R): void =>
        process.deliver(() => answer(reply));
    return {
      read: (key, answer) => remote.read(key, later(answer)),
      list: (prefix, answer) => remote.list(prefix, later(answer)),
      write: (change, answer) => remote.write(change, later(answer)),
      writeAll: (changes, token, answer) => remote.writeAll(changes, token, later(answer)),
    };
  }

  cutOff(service: string): void {
    this.#cutOff.add(service);
  }

  reconnect(service: string): void {
    this.#cutOff.remove(service);
  }

  #note(key: string, before: Item | undefined, after: Item | undefined): void {
    if (key === this.keys.counter) this.#active = numberOf(after, 'active');
    else if (key.startsWith(this.keys.leases))
      this.#slots += numberOf(after, 'slots') - numberOf(before, 'slots');
  }

  #judge(): void {
    const { leaseLimit } = this.plan;
    this.#peak = Math.max(this.#peak, this.#active);
    this.#laws.checkLeases(this.#active, leaseLimit);
    if (this.#active !== this.#slots)
      this.#laws.report(
        'leases',
        undefined,
        `the counter says ${this.#active}, the leases add up to ${this.#slots}`,
      );
  }
}
