// A world for the engine in which time, chance and the server belong to the test.
import { ConnectionPool, type PoolParts } from '../../src/core/connection-pool.js';
import type { PoolState } from '../../src/core/pool-counts.js';
import type { FillProgress, PoolListener } from '../../src/core/pool-listener.js';
import { type PolicyOptions, type PoolPolicy, readPolicy } from '../../src/core/pool-policy.js';
import type { PooledConnection } from '../../src/core/pooled-connection.js';
import type { DiscardReason, RefillCause } from '../../src/core/reasons.js';
import { Waiter } from '../../src/core/waiters.js';
import { OptionReader } from '../../src/kernel/option-reader.js';
import { type Random, SeededRandom } from '../../src/kernel/random.js';
import { type FakeDial, FakeServer, type FakeSocket, type Manners } from './fake-server.js';
import { VirtualAlarm, VirtualTime } from './virtual-time.js';

const never = Number.POSITIVE_INFINITY;

/** Is told of what happens at the moment at which it happens, in the middle of the engine's decisions. */
export interface Witness {
  dialBegun(dial: FakeDial): void;
  /** The dial failed or timed out, and the engine knows. */
  dialFailed(dial: FakeDial): void;
  discarded(socket: FakeSocket, reason: DiscardReason): void;
  taken(lease: FakeLease, caller: Caller | undefined): void;
  failed(caller: Caller, error: Error): void;
  /** Released, and idle. */
  kept?(socket: FakeSocket): void;
  /** How far the first fill or the warmup is. */
  filling?(progress: FillProgress): void;
}

/** One checkout, as its holder sees it. */
export class FakeLease {
  readonly #world: VirtualWorld;
  readonly pooled: PooledConnection<FakeSocket>;
  readonly socket: FakeSocket;
  readonly generation: number;
  readonly takenAt: number;
  isOver = false;

  constructor(world: VirtualWorld, pooled: PooledConnection<FakeSocket>) {
    this.#world = world;
    this.pooled = pooled;
    this.socket = pooled.connection;
    this.generation = pooled.generation;
    this.takenAt = world.time.coarse();
  }

  release(error?: unknown): void {
    const { pool, leases } = this.#world;
    if (!this.isOver && this.socket.place === 'in_use') {
      this.isOver = true;
      leases.delete(this);
      if (error !== undefined) this.socket.doomedBy.add('released_with_error');
      // A socket that is closed by this says so before the call returns.
      this.socket.moveTo('idle');
      this.#world.returning = this.socket;
    }
    pool.release(this.pooled, this.generation, error);
    if (this.#world.returning === this.socket) this.#world.witness?.kept?.(this.socket);
    this.#world.returning = undefined;
  }
}

/** A caller in the queue, and what became of it. */
export class Caller extends Waiter<FakeSocket> {
  readonly #world: VirtualWorld;
  readonly name: string;
  readonly askedAt: number;
  readonly deadlineAt: number;
  outcome: 'waiting' | 'granted' | 'failed' | 'withdrawn' = 'waiting';
  lease: FakeLease | undefined = undefined;
  error: Error | undefined = undefined;
  abortError: Error | undefined = undefined;
  /** Done at once when the outcome is known, from inside the engine. */
  reaction: ((caller: Caller) => void) | undefined = undefined;

  constructor(world: VirtualWorld, name: string, timeout: number) {
    super();
    this.#world = world;
    this.name = name;
    this.askedAt = world.time.time;
    this.deadlineAt = this.askedAt + timeout;
  }

  override granted(pooled: PooledConnection<FakeSocket>): void {
    if (!this.#settle('granted')) return;
    this.lease = this.#world.noteTaken(pooled, this);
    this.reaction?.(this);
  }

  override failed(error: Error): void {
    if (!this.#settle('failed')) return;
    this.error = error;
    this.#world.witness?.failed(this, error);
    this.reaction?.(this);
  }

  /** Leaves the queue with an error. */
  abort(error = new Error('aborted')): boolean {
    this.abortError = error;
    return this.#world.pool.abort(this, error);
  }

  /** Leaves the queue without an answer. */
  withdraw(): boolean {
    const wasWaiting = this.outcome === 'waiting';
    if (wasWaiting) this.#settle('withdrawn');
    return this.#world.pool.withdraw(this);
  }

  #settle(outcome: 'granted' | 'failed' | 'withdrawn'): boolean {
    if (this.outcome !== 'waiting') {
      this.#world.contradict(`caller ${this.name} was ${this.outcome} and then ${outcome}`);
      return false;
    }
    this.outcome = outcome;
    this.#world.queue.delete(this);
    return true;
  }

  get socket(): FakeSocket {
    if (this.lease === undefined)
      throw new Error(`Caller ${this.name} has no connection: it is ${this.outcome}.`);
    return this.lease.socket;
  }

  release(error?: unknown): void {
    if (this.lease === undefined) throw new Error(`Caller ${this.name} has nothing to give back.`);
    this.lease.release(error);
  }
}

export interface FakeLeak {
  readonly socket: FakeSocket;
  readonly generation: number;
  readonly holder: unknown;
  readonly heldMs: number;
}

export interface WorldOptions {
  readonly seed?: number;
  readonly random?: Random;
  /** Replaces how the server behaves from the first dial on. */
  readonly manners?: (world: VirtualWorld) => Partial<Manners>;
  readonly witness?: Witness;
  readonly makePool?: (parts: PoolParts<FakeSocket>) => ConnectionPool<FakeSocket>;
}

export class VirtualWorld {
  readonly time = new VirtualTime();
  readonly policy: PoolPolicy;
  readonly server: FakeServer;
  readonly pool: ConnectionPool<FakeSocket>;
  readonly alarm: VirtualAlarm;
  readonly witness: Witness | undefined;
  /** Callers without an outcome, in the order in which they came. */
  readonly queue = new Set<Caller>();
  /** Checkouts that have not been given back. */
  readonly leases = new Set<FakeLease>();
  readonly states: PoolState[] = [];
  readonly leaks: FakeLeak[] = [];
  /** As they were told. */
  readonly refillFailures: Record<RefillCause, number> = {
    lease_acquire: 0,
    rate_limit: 0,
    token_provider: 0,
    connection_open: 0,
  };
  readonly fills: FillProgress[] = [];
  /** Contradictions. Anything in here is a bug. */
  readonly contradictions: string[] = [];
  checkouts = 0;
  /** Checkouts that found nothing, as they were answered and as the pool told of them. */
  emptyHanded = 0;
  toldEmpty = 0;
  drains = 0;
  /** Comes back at this moment, and the pool has not decided about it. */
  returning: FakeSocket | undefined = undefined;
  /** Checkouts that are being answered at this moment. */
  taking = 0;
  readonly topUps: { readonly count: number; readonly size: number; readonly target: number }[] = [];
  /** At the same moment: whether the alarm rings before other events. */
  alarmRingsFirst = false;
  #ringingFor = never;
  #callers = 0;

  constructor(options: PolicyOptions | PoolPolicy, world: WorldOptions = {}) {
    this.policy = 'base' in options ? options : policyOf(options);
    this.server = new FakeServer(this);
    this.witness = world.witness;
    Object.assign(this.server.manners, world.manners?.(this));
    let alarm: VirtualAlarm | undefined;
    const parts: PoolParts<FakeSocket> = {
      policy: this.policy,
      dialer: this.server,
      clock: this.time,
      alarm: (ring) => {
        alarm = new VirtualAlarm(ring, this.time);
        return alarm;
      },
      random: world.random ?? new SeededRandom(world.seed ?? 1),
      listener: this.#listener(),
    };
    this.pool = world.makePool?.(parts) ?? new ConnectionPool(parts);
    this.alarm = alarm as unknown as VirtualAlarm;
    this.pool.start();
  }

  get now(): number {
    return this.time.time;
  }

  get isRinging(): boolean {
    return this.#ringingFor !== never;
  }

  /** Events that are due by this time are on time: a little more than now, while an alarm rings that can't be set exactly. */
  get due(): number {
    if (this.#ringingFor === never) return this.time.time;
    return Math.max(this.time.time, this.#ringingFor) + this.alarm.granularityMs;
  }

  contradict(message: string): void {
    this.contradictions.push(message);
  }

  /** `tryTake()`, as a lease. */
  take(holder?: unknown): FakeLease | undefined {
    this.taking++;
    const pooled = this.pool.tryTake(holder);
    this.taking--;
    if (pooled !== undefined) return this.noteTaken(pooled, undefined);
    this.emptyHanded++;
    return undefined;
  }

  /** Takes a connection that must be there. */
  mustTake(holder?: unknown): FakeLease {
    const lease = this.take(holder);
    if (lease === undefined) throw new Error(`Nothing was ready: ${JSON.stringify(this.pool.counts())}`);
    return lease;
  }

  /** Queues a caller; without a timeout it waits for ever. */
  ask(timeout = never, reaction?: (caller: Caller) => void): Caller {
    const caller = new Caller(this, String(++this.#callers), timeout);
    caller.reaction = reaction;
    return this.#enqueue(caller, timeout);
  }

  /** As one that waits for as long as it may, however often dialing fails. */
  askPatiently(timeout = never): Caller {
    const caller = new Caller(this, String(++this.#callers), timeout);
    caller.isPatient = true;
    return this.#enqueue(caller, timeout);
  }

  #enqueue(caller: Caller, timeout: number): Caller {
    this.queue.add(caller);
    this.pool.enqueue(caller, timeout);
    return caller;
  }

  askMany(count: number, timeout = never): Caller[] {
    return Array.from({ length: count }, () => this.ask(timeout));
  }

  /** Drains the pool; `deadline` is so many milliseconds away. */
  drain(deadline = never): { times: number } {
    const called = { times: 0 };
    this.pool.drain(this.now + deadline, () => {
      called.times++;
      this.drains++;
    });
    return called;
  }

  noteTaken(pooled: PooledConnection<FakeSocket>, caller: Caller | undefined): FakeLease {
    const socket = pooled.connection;
    socket.pooled = pooled;
    if (socket.place !== 'idle')
      this.contradict(`socket ${socket.id} is given out while it is ${socket.place}`);
    socket.moveTo('in_use');
    socket.uses++;
    this.checkouts++;
    this.returning = undefined;
    const lease = new FakeLease(this, pooled);
    this.leases.add(lease);
    this.witness?.taken(lease, caller);
    return lease;
  }

  /** Lets time pass, one event after the other, each at its moment. */
  advance(milliseconds: number): void {
    const until = this.time.time + milliseconds;
    let ringsInARow = 0;
    for (;;) {
      const eventAt = this.time.nextEventAt;
      const alarmAt = this.alarm.ringsAt;
      const next = Math.min(eventAt, alarmAt);
      if (next > until) break;
      this.time.newTurn();
      const isLater = next > this.time.time;
      if (isLater) this.time.time = next;
      if (alarmAt < eventAt || (alarmAt === eventAt && this.alarmRingsFirst)) {
        ringsInARow = isLater ? 0 : ringsInARow + 1;
        if (ringsInARow > 500) throw new Error('The alarm rings again and again while time stands still.');
        this.ringAlarm();
      } else this.time.runNextEvent();
    }
    this.time.time = Math.max(this.time.time, until);
    this.time.newTurn();
  }

  /** The program is busy: time passes, and what falls due meanwhile happens late. */
  stall(milliseconds: number): void {
    this.time.time += milliseconds;
    this.time.newTurn();
  }

  /** Time passes inside one turn of the event loop, which the coarse clock does not notice. */
  creep(milliseconds: number): void {
    this.time.coarse();
    this.time.time += milliseconds;
  }

  ringAlarm(): void {
    this.#ringingFor = this.alarm.isArmed ? this.alarm.at : this.now;
    this.alarm.clear();
    this.server.loseOverdue();
    this.alarm.ring();
    this.#ringingFor = never;
  }

  #listener(): PoolListener<FakeSocket> {
    return {
      wantsAcquires: true,
      wantsReleases: true,
      acquired: () => {},
      released: () => {},
      opened: (pooled) => {
        pooled.connection.pooled = pooled;
      },
      dialFailed: () => {},
      refillFailed: (cause) => {
        this.refillFailures[cause]++;
      },
      foundEmpty: () => {
        this.toldEmpty++;
      },
      filling: (progress) => {
        this.fills.push(progress);
        this.witness?.filling?.(progress);
      },
      toppingUp: (count, size, target) => {
        this.topUps.push({ count, size, target });
      },
      discarded: () => {},
      closed: () => {},
      timedOut: () => {},
      leaked: (pooled, heldMs) => {
        const { connection, generation, holder } = pooled;
        this.leaks.push({ socket: connection, generation, holder, heldMs });
      },
      stateChanged: (state) => {
        this.states.push(state);
      },
    };
  }
}

/** The policy that the engine makes of these options, which must be right. */
export function policyOf(options: PolicyOptions): PoolPolicy {
  const read = new OptionReader(options);
  const policy = readPolicy(read, false);
  read.throwIfAnyProblem();
  return policy;
}
