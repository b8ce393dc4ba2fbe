// Generators that lease node ids in a table in memory, in virtual time: they are killed, paused and cut off, calls are lost,
// late or made twice, and every clock is wrong in its own way.
import { nodeKeys, nodeOf } from '../../../src/coordination/dynamodb/node-items.js';
import type { Table } from '../../../src/coordination/dynamodb/table.js';
import { TableCalls } from '../../../src/coordination/dynamodb/table-calls.js';
import { type NodeSettings, TableNodeLease } from '../../../src/coordination/dynamodb/table-node-lease.js';
import { IdClockError } from '../../../src/dsql/ids/errors.js';
import { IdSequence } from '../../../src/dsql/ids/id-sequence.js';
import type { Alarm, AlarmFactory } from '../../../src/kernel/clock.js';
import { SeededRandom } from '../../../src/kernel/random.js';
import { MemoryTable } from '../../../src/simulator/leases/dynamodb/memory-table.js';
import {
  epochMs,
  noTableFaults,
  RemoteTable,
  type TableFaults,
} from '../../../src/simulator/leases/dynamodb/remote-table.js';
import { ServiceAlarm, ServiceClock } from '../../../src/simulator/time/service-clock.js';
import { Timeline } from '../../../src/simulator/time/timeline.js';

export const keys = nodeKeys('cluster.example');

export interface NodeFleetOptions {
  readonly seed: number;
  readonly settings?: Partial<NodeSettings>;
  /** Clocks of the day differ by up to this. */
  readonly skewMs?: number;
  /** How long every way takes. Default: a few milliseconds. */
  readonly halfWayMs?: number;
  /** The part of ways that take up to a minute (twice as many take up to a second), and of calls that are made twice. */
  readonly late?: number;
  readonly twice?: number;
}

export class NodeFleet {
  readonly timeline = new Timeline();
  readonly table = new MemoryTable();
  readonly random: SeededRandom;
  readonly options: NodeFleetOptions;
  readonly holders: Holder[] = [];
  readonly problems: string[] = [];
  faults: TableFaults = noTableFaults;
  made = 0;
  readonly #ids = new Set<string>();

  constructor(options: NodeFleetOptions) {
    this.options = options;
    this.random = new SeededRandom(options.seed);
  }

  start(): Holder {
    const holder = new Holder(this, `h${this.holders.length + 1}`);
    this.holders.push(holder);
    return holder;
  }

  run(ms: number): void {
    this.timeline.runUntil(this.timeline.now + ms);
  }

  note(name: string, id: string): void {
    this.made++;
    if (this.#ids.has(id)) this.problem(`${name} made ${id} a second time`);
    this.#ids.add(id);
  }

  problem(text: string): void {
    if (this.problems.length < 10) this.problems.push(`at ${this.timeline.now.toFixed(0)} ms: ${text}`);
  }
}

export class Holder {
  readonly name: string;
  readonly fleet: NodeFleet;
  readonly lease: TableNodeLease;
  readonly sequence = new IdSequence({ epochMs: 0, maxClockBackMs: 10_000 });
  readonly lost: number[] = [];
  isCutOff = false;
  isGone = false;
  /** A machine that stands still without its clocks: nothing tells it, so that it may take a lost lease for valid. */
  wasFrozen = false;
  #isPaused = false;
  #backlog: (() => void)[] = [];
  #dayShiftMs: number;
  #frozenMs = 0;
  #frozenAt: number | undefined;

  constructor(fleet: NodeFleet, name: string) {
    const { timeline, random, options } = fleet;
    const { skewMs = 0, late = 0, twice = 0, halfWayMs } = options;
    this.fleet = fleet;
    this.name = name;
    this.#dayShiftMs = (random.next() - 0.5) * 2 * skewMs;
    const steady = new ServiceClock(timeline, random.next() * 1e6, (random.next() - 0.5) * 1e-4);
    const alarm: AlarmFactory = (ring): Alarm =>
      new ServiceAlarm(timeline, steady, ring, (action) => this.deliver(action));
    const table = new RemoteTable(fleet.table, {
      now: () => timeline.now,
      later: (delayMs, run) => void timeline.plan(timeline.now + delayMs, run),
      halfWayMs: () => {
        if (halfWayMs !== undefined) return halfWayMs;
        const kind = random.next();
        if (kind < late) return random.next() * 60_000;
        return kind < 3 * late ? random.next() * 1_000 : 2 + random.next() * 6;
      },
      isCutOff: () => this.isCutOff,
      faults: () => fleet.faults,
      random,
    });
    const delivering: Table = {
      read: (key, answer) => table.read(key, (reply) => this.deliver(() => answer(reply))),
      list: (prefix, answer) => table.list(prefix, (reply) => this.deliver(() => answer(reply))),
      write: (change, answer) => {
        if (random.next() < twice) table.write(change, () => {});
        return table.write(change, (reply) => this.deliver(() => answer(reply)));
      },
      writeAll: () => {
        throw new Error('not used');
      },
    };
    let owners = 0;
    const clock = { now: () => steady.now() - this.#frozen };
    const world = {
      ...{ clock, alarm, random, timeoutMs: 2_000 },
      timeOfDay: () => this.timeOfDay(),
      newOwner: () => `${name}-${++owners}`,
    };
    const settings = { keys, from: 0, to: 3, instance: name, service: 'test' };
    const times = { leaseMs: 30_000, renewMs: 10_000, graceMs: 10_000 };
    this.lease = new TableNodeLease(
      new TableCalls(delivering, world),
      world,
      { ...settings, ...times, ...options.settings },
      { changed: () => {}, lost: (nodeId) => this.lost.push(nodeId) },
    );
    this.deliver(() => this.lease.pump());
  }

  get #frozen(): number {
    return this.#frozenMs + (this.#frozenAt === undefined ? 0 : this.fleet.timeline.now - this.#frozenAt);
  }

  timeOfDay(): number {
    return Math.floor(epochMs + this.fleet.timeline.now + this.#dayShiftMs - this.#frozen);
  }

  /** Makes up to so many ids; what can't be made is not made. */
  make(count: number): void {
    this.deliver(() => {
      for (let n = 0; n < count; n++) if (!this.#makeOne()) return;
    });
  }

  #makeOne(): boolean {
    const grant = this.lease.grant();
    if (grant === undefined) return false;
    // A holder that may make ids has its node id in the table, too: no other could have it yet.
    const { instance, owner, expiresMs } = nodeOf(this.fleet.table.get(keys + grant.nodeId));
    if (!this.wasFrozen && (instance !== this.name || owner === ''))
      this.fleet.problem(`${this.name} has node id ${grant.nodeId}, which belongs to '${owner}'`);
    // Its lease has not ended by the server's clock, so that the grace is a margin and nothing else.
    const overMs = epochMs + this.fleet.timeline.now - expiresMs;
    if (!this.wasFrozen && overMs > 5)
      this.fleet.problem(`${this.name} uses a lease that ended ${overMs.toFixed(0)} ms ago`);
    try {
      const waitMs = this.sequence.advance(this.timeOfDay(), grant);
      if (waitMs < 0) this.lease.extend();
      if (waitMs !== 0) return false;
    } catch (error) {
      if (error instanceof IdClockError) return false;
      throw error;
    }
    const { timeMs, number } = this.sequence;
    this.fleet.note(this.name, `${timeMs}/${grant.nodeId}/${number}`);
    return true;
  }

  setClock(byMs: number): void {
    this.#dayShiftMs += byMs;
  }

  end(): void {
    this.deliver(() => this.lease.end(this.sequence.timeMs, () => {}));
  }

  deliver(action: () => void): void {
    if (this.isGone) return;
    if (this.#isPaused) this.#backlog.push(action);
    else action();
  }

  kill(): void {
    this.isGone = true;
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** As `pause`, and its clocks stand still, too. */
  freeze(): void {
    this.pause();
    this.wasFrozen = true;
    this.#frozenAt ??= this.fleet.timeline.now;
  }

  resume(): void {
    this.#isPaused = false;
    this.#frozenMs = this.#frozen;
    this.#frozenAt = undefined;
    for (const action of this.#backlog.splice(0)) this.deliver(action);
  }
}
