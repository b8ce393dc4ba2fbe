// Instances that share a table in memory, in virtual time: they can be killed, paused and cut off, and have clocks of
// their own. After every event the books are compared: what the table says, and what connections there really are.

import { leaseKeys, leaseOf } from '../../../src/coordination/dynamodb/lease-items.js';
import type { LeaseSettings } from '../../../src/coordination/dynamodb/lease-settings.js';
import { numberOf } from '../../../src/coordination/dynamodb/table.js';
import { TableLeases } from '../../../src/coordination/dynamodb/table-leases.js';
import type { Alarm, AlarmFactory } from '../../../src/kernel/clock.js';
import { SeededRandom } from '../../../src/kernel/random.js';
import { MemoryTable } from '../../../src/simulator/leases/dynamodb/memory-table.js';
import {
  noTableFaults,
  RemoteTable,
  type TableFaults,
  epochMs as tableEpochMs,
} from '../../../src/simulator/leases/dynamodb/remote-table.js';
import { ServiceAlarm, ServiceClock } from '../../../src/simulator/time/service-clock.js';
import { Timeline } from '../../../src/simulator/time/timeline.js';
import { ModelPool } from './model-pool.js';

const endpoint = 'cluster.example';
export const keys = leaseKeys(endpoint);

export interface FleetOptions {
  readonly seed: number;
  readonly limit: number;
  readonly settings?: Partial<LeaseSettings>;
  readonly latencyMs?: number;
  readonly longestLoanMs?: number;
  readonly skewMs?: number;
}

export class Fleet {
  readonly timeline = new Timeline();
  readonly table = new MemoryTable();
  readonly random: SeededRandom;
  readonly limit: number;
  readonly instances: Instance[] = [];
  readonly options: FleetOptions;
  readonly problems: string[] = [];
  faults: TableFaults = noTableFaults;
  isTableDown = false;
  /** Sockets that exist, whoever knows of them. */
  #sockets = 0;
  peakSockets = 0;
  /** Sockets times milliseconds, since the last look at the mean. */
  #socketMs = 0;
  #since = { meanAt: 0, countedAt: 0 };
  reclaims: string[] = [];
  #lastId = 0;
  #checkedWrites = 0;

  constructor(options: FleetOptions) {
    this.options = options;
    this.limit = options.limit;
    this.random = new SeededRandom(options.seed);
  }

  get active(): number {
    return numberOf(this.table.get(keys.counter), 'active');
  }

  get slots(): number {
    return this.table.list(keys.leases).reduce((sum, item) => sum + leaseOf(item).slots, 0);
  }

  start(settings: Partial<LeaseSettings> = {}): Instance {
    const instance = new Instance(this, `i${++this.#lastId}`, settings);
    this.instances.push(instance);
    return instance;
  }

  /** Sockets on average, since this was last asked. */
  get meanSockets(): number {
    this.#count();
    const mean = this.#socketMs / Math.max(1, this.timeline.now - this.#since.meanAt);
    this.#since.meanAt = this.timeline.now;
    this.#socketMs = 0;
    return mean;
  }

  run(ms: number): void {
    this.timeline.runUntil(this.timeline.now + ms);
  }

  /** Call before there are more or fewer. */
  #count(): void {
    this.#socketMs += this.#sockets * (this.timeline.now - this.#since.countedAt);
    this.#since.countedAt = this.timeline.now;
  }

  get sockets(): number {
    return this.#sockets;
  }

  set sockets(count: number) {
    this.#count();
    this.#sockets = count;
  }

  check(): void {
    this.peakSockets = Math.max(this.peakSockets, this.sockets);
    const { limit, sockets } = this;
    if (this.table.writes !== this.#checkedWrites) this.#checkTable();
    if (sockets > limit) this.#problem(`${sockets} sockets of ${limit}`);
    for (const { pool, name } of this.instances)
      for (const complaint of pool.complaints.splice(0)) this.#problem(`${name} ${complaint}`);
  }

  #checkTable(): void {
    this.#checkedWrites = this.table.writes;
    const { active, slots, limit } = this;
    if (active !== slots) this.#problem(`the counter says ${active}, the leases ${slots}`);
    if (active > limit) this.#problem(`${active} slots of ${limit}`);
  }

  #problem(text: string): void {
    if (this.problems.length < 10) this.problems.push(`at ${this.timeline.now.toFixed(0)} ms: ${text}`);
  }
}

export class Instance {
  readonly name: string;
  readonly leases: TableLeases;
  readonly pool: ModelPool;
  readonly #makePool: (name: string) => ModelPool;
  readonly fleet: Fleet;
  readonly notes: string[] = [];
  isCutOff = false;
  isGone = false;
  #isPaused = false;
  #backlog: (() => void)[] = [];
  #sockets = 0;

  constructor(fleet: Fleet, name: string, settings: Partial<LeaseSettings>) {
    const { timeline, random, options } = fleet;
    const { latencyMs = 10, longestLoanMs = 1_000, skewMs = 0 } = options;
    this.fleet = fleet;
    this.name = name;
    const clock = new ServiceClock(
      timeline,
      (random.next() - 0.5) * 2 * skewMs,
      (random.next() - 0.5) * 1e-4,
    );
    const alarm: AlarmFactory = (ring): Alarm =>
      new ServiceAlarm(timeline, clock, ring, (action) => this.deliver(action));
    const later = (delayMs: number, run: () => void): void =>
      void timeline.plan(timeline.now + delayMs, () => this.deliver(run));
    const table = new RemoteTable(fleet.table, {
      now: () => timeline.now,
      // Messages on their way arrive, whether or not their sender still lives; answers reach only live processes.
      later: (delayMs, run) => void timeline.plan(timeline.now + delayMs, run),
      halfWayMs: () => (latencyMs / 2) * (0.5 + random.next()),
      isCutOff: () => this.isCutOff || fleet.isTableDown,
      faults: () => fleet.faults,
      random,
    });
    const delivering = {
      read: (key, answer) => table.read(key, (reply) => this.deliver(() => answer(reply))),
      list: (prefix, answer) => table.list(prefix, (reply) => this.deliver(() => answer(reply))),
      write: (change, answer) => table.write(change, (reply) => this.deliver(() => answer(reply))),
      writeAll: (changes, token, answer) =>
        table.writeAll(changes, token, (reply) => this.deliver(() => answer(reply))),
    } satisfies ConstructorParameters<typeof TableLeases>[0];
    this.leases = new TableLeases(
      delivering,
      {
        keys,
        leaseId: name,
        instance: name,
        service: 'test',
        limit: fleet.limit,
        leaseMs: 30_000,
        renewMs: 10_000,
        graceMs: 10_000,
        lookMs: 2_000,
        block: 20,
        onCoordinatorLoss: 'shed',
        localShare: 0,
        ...options.settings,
        ...settings,
      },
      { clock, alarm, random, timeoutMs: 2_000 },
      (message) => {
        this.notes.push(message);
        if (message.startsWith('took back')) fleet.reclaims.push(message);
      },
    );
    this.#makePool = (poolName) =>
      new ModelPool(poolName, this.leases, {
        later,
        random: () => random.next(),
        longestLoanMs,
        opened: () => {
          this.#sockets++;
          fleet.sockets++;
        },
        closed: () => {
          this.#sockets--;
          fleet.sockets--;
        },
      });
    this.pool = this.#makePool(name);
  }

  /** A further pool on the same leases. */
  addPool(): ModelPool {
    return this.#makePool(`${this.name} too`);
  }

  /** How long nobody may take its slots away, but for the grace; below 0 when that is over. */
  get leaseLeftMs(): number {
    const item = this.fleet.table.list(keys.leases).find(({ instance }) => instance === this.name);
    const nowMs = tableEpochMs + this.fleet.timeline.now;
    return item === undefined ? 0 : Math.max(-7_000, leaseOf(item).expiresMs - nowMs);
  }

  want(count: number, ready = 0): void {
    this.deliver(() => this.pool.want(count, ready));
  }

  deliver(action: () => void): void {
    if (this.isGone) return;
    if (this.#isPaused) this.#backlog.push(action);
    else {
      action();
      this.fleet.check();
    }
  }

  /** Its sockets are closed by the system. */
  kill(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.fleet.sockets -= this.#sockets;
    this.#sockets = 0;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    for (const action of this.#backlog.splice(0)) this.deliver(action);
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }
}
