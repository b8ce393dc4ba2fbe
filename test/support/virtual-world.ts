// A world for the engine in which time, chance and the server belong to the test. The server keeps its own books of what
// exists physically and shares no code with the engine's ledger, so that the two can be compared.
import { ConnectionPool, type PoolParts } from '../../src/core/connection-pool.js';
import type { Dial, Dialer } from '../../src/core/dialer.js';
import type { PoolListener } from '../../src/core/pool-listener.js';
import { type PolicyOptions, type PoolPolicy, readPolicy } from '../../src/core/pool-policy.js';
import type { PoolState } from '../../src/core/pool-stats.js';
import type { PooledConnection } from '../../src/core/pooled-connection.js';
import type { DiscardReason } from '../../src/core/reasons.js';
import { Waiter } from '../../src/core/waiters.js';
import type { Alarm, Clock } from '../../src/kernel/clock.js';
import { OptionReader } from '../../src/kernel/option-reader.js';
import { type Random, SeededRandom } from '../../src/kernel/random.js';

const never = Number.POSITIVE_INFINITY;

interface TimedEvent {
  readonly at: number;
  readonly run: () => void;
}

/** Virtual time: events in the order of their time, those of the same time in the order in which they were planned. */
export class VirtualTime implements Clock {
  time = 1_000;
  #reading = 0;
  #readInThisTurn = false;
  #events: TimedEvent[] = [];

  now(): number {
    this.#reading = this.time;
    return this.time;
  }

  /** As old as this turn of the event loop, but never older than the last exact reading. */
  coarse(): number {
    if (!this.#readInThisTurn) {
      this.#readInThisTurn = true;
      this.#reading = this.time;
    }
    return this.#reading;
  }

  newTurn(): void {
    this.#readInThisTurn = false;
  }

  plan(at: number, run: () => void): void {
    let index = this.#events.length;
    while (index > 0 && (this.#events[index - 1] as TimedEvent).at > at) index--;
    this.#events.splice(index, 0, { at, run });
  }

  get nextEventAt(): number {
    return this.#events[0]?.at ?? never;
  }

  runNextEvent(): void {
    this.#events.shift()?.run();
  }
}

export class VirtualAlarm implements Alarm {
  at = never;
  granularityMs = 0;
  /** So much of its granularity it makes use of to ring early. */
  earlyBy = 0;
  /** When it was set. */
  setAt = Number.NEGATIVE_INFINITY;
  keepsProcessAlive = false;
  readonly ring: () => void;
  readonly #time: VirtualTime;

  constructor(ring: () => void, time: VirtualTime) {
    this.ring = ring;
    this.#time = time;
  }

  /** When it will really ring: with a granularity, up to that much before or after. */
  get ringsAt(): number {
    if (this.granularityMs === 0 || this.at <= this.setAt || this.at === never) return this.at;
    const steps = Math.ceil((this.at - this.setAt) / this.granularityMs);
    return this.setAt + steps * this.granularityMs - this.earlyBy;
  }

  get isArmed(): boolean {
    return this.at !== never;
  }

  set(at: number, keepsProcessAlive: boolean): void {
    this.at = at;
    this.setAt = this.#time.time;
    this.keepsProcessAlive = keepsProcessAlive;
  }

  clear(): void {
    this.at = never;
    this.keepsProcessAlive = false;
  }
}

/** Where a socket is, as the server knows it. `unwanted`: it was opened although its dial had been given up. */
export type Place = 'idle' | 'lent' | 'checking' | 'unwanted' | 'closing' | 'gone';

export class FakeSocket {
  readonly id: number;
  readonly bornAt: number;
  readonly #world: VirtualWorld;
  place: Place;
  pooled: PooledConnection<FakeSocket> | undefined = undefined;
  uses = 0;
  /** When it entered its present place. */
  since: number;
  /** What the world did to it that must end its life. */
  doomedBy = new Set<DiscardReason>();
  reason: DiscardReason | undefined = undefined;
  checkIsOwed = false;
  checkBegunAt = Number.NaN;
  closeIsOwed = false;

  constructor(world: VirtualWorld, id: number, place: Place) {
    this.#world = world;
    this.id = id;
    this.place = place;
    this.bornAt = world.time.time;
    this.since = this.bornAt;
  }

  moveTo(place: Place): void {
    this.place = place;
    this.since = this.#world.due;
  }

  get isLive(): boolean {
    return this.place === 'idle' || this.place === 'lent' || this.place === 'checking';
  }

  /** The close that the pool asked for is done. May come late, after the pool destroyed the socket. */
  finishClosing(): void {
    if (!this.closeIsOwed) return;
    this.closeIsOwed = false;
    this.#world.server.gone(this);
    this.#world.pool.closed(this.pooled as PooledConnection<FakeSocket>);
  }

  /** The answer to the check that the pool asked for. May come late, after the pool gave up on it. */
  answerCheck(error?: Error): void {
    if (!this.checkIsOwed) return;
    this.checkIsOwed = false;
    if (this.place === 'checking') {
      if (error === undefined) this.moveTo('idle');
      else this.doomedBy.add('failed_check');
    }
    this.#world.pool.checked(this.pooled as PooledConnection<FakeSocket>, error);
  }

  /** The connection fails by itself. */
  breakDown(error = new Error('connection lost')): void {
    if (this.isLive) this.doomedBy.add('broken');
    this.#world.pool.broken(this.pooled as PooledConnection<FakeSocket>, error);
  }
}

export class FakeDial {
  readonly number: number;
  readonly dial: Dial<FakeSocket>;
  readonly startedAt: number;
  readonly #world: VirtualWorld;
  state: 'opening' | 'abandoned' | 'lost' | 'answered' = 'opening';
  abandonedAt = Number.NaN;
  socket: FakeSocket | undefined = undefined;

  constructor(world: VirtualWorld, number: number, dial: Dial<FakeSocket>) {
    this.#world = world;
    this.number = number;
    this.dial = dial;
    this.startedAt = world.time.time;
  }

  /** Answers with a connection, unless it was answered before. */
  succeed(): void {
    if (this.state === 'answered') return;
    const { server, pool } = this.#world;
    const socket = server.open(this.state === 'opening' ? 'idle' : 'unwanted');
    if (this.state === 'opening') server.failuresInARow = 0;
    this.state = 'answered';
    this.socket = socket;
    server.dials.delete(this);
    pool.dialed(this.dial, socket);
    if (socket.place === 'unwanted')
      this.#world.contradict(`the late connection ${socket.id} was not closed`);
  }

  /** Answers with an error, unless it was answered before. */
  fail(error = new Error('connection refused')): void {
    if (this.state === 'answered') return;
    const { server, pool } = this.#world;
    if (this.state === 'opening') server.noteFailure();
    this.state = 'answered';
    server.dials.delete(this);
    pool.dialFailed(this.dial, error);
  }

  succeedAfter(delay: number): void {
    this.#world.time.plan(this.#world.time.time + delay, () => this.succeed());
  }

  failAfter(delay: number, error?: Error): void {
    this.#world.time.plan(this.#world.time.time + delay, () => this.fail(error));
  }
}

/** How the server behaves. Each may answer at once, plan an answer, or leave it owing. */
export interface Manners {
  onDial(dial: FakeDial): void;
  onAbandon(dial: FakeDial): void;
  onClose(socket: FakeSocket): void;
  onCheck(socket: FakeSocket): void;
}

export const dialMs = 10;

/** A server that opens in 10 ms, closes in 1 ms, passes every check, and stops a dial as soon as it is told to. */
export function wellBehaved(world: VirtualWorld): Manners {
  return {
    onDial: (dial) => dial.succeedAfter(dialMs),
    onAbandon: (dial) => dial.failAfter(0, new Error('stopped')),
    onClose: (socket) => world.time.plan(world.time.time + 1, () => socket.finishClosing()),
    onCheck: (socket) => world.time.plan(world.time.time + 1, () => socket.answerCheck()),
  };
}

/** Is told of what happens at the moment at which it happens, in the middle of the engine's decisions. */
export interface Witness {
  dialBegun(dial: FakeDial): void;
  discarded(socket: FakeSocket, reason: DiscardReason): void;
  lent(lease: FakeLease, caller: Caller | undefined): void;
  failed(caller: Caller, error: Error): void;
}

/** The physical truth: every socket that is being opened, is open, or is being closed. */
export class FakeServer implements Dialer<FakeSocket> {
  readonly #world: VirtualWorld;
  manners: Manners;
  /** Those that have not been answered. */
  readonly dials = new Set<FakeDial>();
  readonly sockets = new Set<FakeSocket>();
  readonly discards = new Map<DiscardReason, number>();
  dialed = 0;
  opened = 0;
  closed = 0;
  failures = 0;
  /** Dials given up by a draining pool when their time was up as well: failed or not wanted, both are true. */
  arguableFailures = 0;
  failuresInARow = 0;
  lastFailureAt = Number.NEGATIVE_INFINITY;
  /** The most there ever was at once. */
  peak = 0;

  constructor(world: VirtualWorld) {
    this.#world = world;
    this.manners = wellBehaved(world);
  }

  get opening(): number {
    let count = 0;
    for (const dial of this.dials) if (dial.state === 'opening') count++;
    return count;
  }

  /** Being closed, and dials given up whose socket may still exist. */
  get closing(): number {
    let count = 0;
    for (const dial of this.dials) if (dial.state === 'abandoned') count++;
    for (const socket of this.sockets) if (socket.place === 'closing') count++;
    return count;
  }

  get live(): number {
    return this.countAt('idle') + this.countAt('lent') + this.countAt('checking');
  }

  get total(): number {
    return this.opening + this.live + this.closing;
  }

  countAt(place: Place): number {
    let count = 0;
    for (const socket of this.sockets) if (socket.place === place) count++;
    return count;
  }

  // What the pool asks.

  dial(dial: Dial<FakeSocket>): void {
    const fake = new FakeDial(this.#world, ++this.dialed, dial);
    this.dials.add(fake);
    this.peak = Math.max(this.peak, this.total);
    this.#world.witness?.dialBegun(fake);
    this.manners.onDial(fake);
  }

  abandon(dial: Dial<FakeSocket>): void {
    const fake = this.find(dial);
    if (fake.state !== 'opening') {
      this.#world.contradict(`dial ${fake.number} was abandoned while it was ${fake.state}`);
      return;
    }
    fake.state = 'abandoned';
    const isOverdue = this.#world.due >= fake.startedAt + this.#world.policy.dialTimeout;
    fake.abandonedAt = isOverdue ? this.#world.due : this.#world.now;
    if (isOverdue) {
      if (this.#world.pool.state === 'draining') this.arguableFailures++;
      else this.noteFailure();
    }
    this.manners.onAbandon(fake);
  }

  close(pooled: PooledConnection<FakeSocket>): void {
    const socket = this.#discard(pooled);
    if (socket === undefined) return;
    socket.moveTo('closing');
    socket.closeIsOwed = true;
    this.manners.onClose(socket);
  }

  destroy(pooled: PooledConnection<FakeSocket>): void {
    const socket = pooled.connection;
    if (socket.place !== 'closing') this.#discard(pooled);
    this.gone(socket);
  }

  check(pooled: PooledConnection<FakeSocket>): void {
    const socket = pooled.connection;
    socket.pooled = pooled;
    if (socket.place !== 'idle')
      this.#world.contradict(`socket ${socket.id} is checked while ${socket.place}`);
    socket.moveTo('checking');
    socket.checkIsOwed = true;
    socket.checkBegunAt = this.#world.time.coarse();
    this.manners.onCheck(socket);
  }

  // What the world does.

  open(place: 'idle' | 'unwanted'): FakeSocket {
    const socket = new FakeSocket(this.#world, ++this.opened, place);
    this.sockets.add(socket);
    return socket;
  }

  gone(socket: FakeSocket): void {
    if (socket.place === 'gone') return;
    socket.moveTo('gone');
    this.sockets.delete(socket);
    this.closed++;
  }

  noteFailure(): void {
    this.failures++;
    this.failuresInARow++;
    this.lastFailureAt = this.#world.time.time;
  }

  /** Dials given up for so long that the pool stops counting on their answer. */
  loseOverdue(): void {
    for (const dial of this.dials) {
      if (dial.state !== 'abandoned') continue;
      if (dial.abandonedAt + this.#world.policy.closeTimeout <= this.#world.due) dial.state = 'lost';
    }
  }

  find(dial: Dial<FakeSocket>): FakeDial {
    for (const fake of this.dials) if (fake.dial === dial) return fake;
    throw new Error('The engine speaks of a dial that is not under way.');
  }

  #discard(pooled: PooledConnection<FakeSocket>): FakeSocket | undefined {
    const socket = pooled.connection;
    const { reason } = pooled;
    socket.pooled = pooled;
    if (socket.place === 'closing' || socket.place === 'gone') {
      this.#world.contradict(`socket ${socket.id} is closed while it is ${socket.place}`);
      return undefined;
    }
    if (reason === undefined) {
      this.#world.contradict(`socket ${socket.id} is closed without a reason`);
      return socket;
    }
    socket.reason = reason;
    this.discards.set(reason, (this.discards.get(reason) ?? 0) + 1);
    this.#world.witness?.discarded(socket, reason);
    return socket;
  }
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
    if (!this.isOver && this.socket.place === 'lent') {
      this.isOver = true;
      leases.delete(this);
      if (error !== undefined) this.socket.doomedBy.add('released_with_error');
      // A socket that is closed by this says so before the call returns.
      this.socket.moveTo('idle');
    }
    pool.release(this.pooled, this.generation, error);
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
    this.lease = this.#world.noteLent(pooled, this);
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
  /** What can't be true at the same time. Anything in here is a bug. */
  readonly contradictions: string[] = [];
  checkouts = 0;
  drains = 0;
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

  /** What is due by this time is on time: a little more than now, while an alarm rings that can't be set exactly. */
  get due(): number {
    if (this.#ringingFor === never) return this.time.time;
    return Math.max(this.time.time, this.#ringingFor) + this.alarm.granularityMs;
  }

  contradict(message: string): void {
    this.contradictions.push(message);
  }

  /** `tryTake()`, as a lease. */
  take(holder?: unknown): FakeLease | undefined {
    const pooled = this.pool.tryTake(holder);
    return pooled === undefined ? undefined : this.noteLent(pooled, undefined);
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

  noteLent(pooled: PooledConnection<FakeSocket>, caller: Caller | undefined): FakeLease {
    const socket = pooled.connection;
    socket.pooled = pooled;
    if (socket.place !== 'idle') this.contradict(`socket ${socket.id} is lent while it is ${socket.place}`);
    socket.moveTo('lent');
    socket.uses++;
    this.checkouts++;
    const lease = new FakeLease(this, pooled);
    this.leases.add(lease);
    this.witness?.lent(lease, caller);
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
