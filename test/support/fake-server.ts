// A server without a network that keeps its own books of what exists physically. It shares no code with the engine's
// ledger, so that the two can be compared.
import type { Dial, Dialer } from '../../src/core/dialer.js';
import type { PooledConnection } from '../../src/core/pooled-connection.js';
import type { DiscardReason } from '../../src/core/reasons.js';
import type { VirtualWorld } from './virtual-world.js';

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
    const wasOpening = this.state === 'opening';
    if (wasOpening) server.noteFailure();
    this.state = 'answered';
    server.dials.delete(this);
    pool.dialFailed(this.dial, error);
    if (wasOpening) this.#world.witness?.dialFailed(this);
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
function wellBehaved(world: VirtualWorld): Manners {
  return {
    onDial: (dial) => dial.succeedAfter(dialMs),
    onAbandon: (dial) => dial.failAfter(0, new Error('stopped')),
    onClose: (socket) => world.time.plan(world.time.time + 1, () => socket.finishClosing()),
    onCheck: (socket) => world.time.plan(world.time.time + 1, () => socket.answerCheck()),
  };
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
    fake.abandonedAt = this.#world.due;
    if (isOverdue) {
      if (this.#world.pool.state === 'draining') this.arguableFailures++;
      else this.noteFailure();
      this.#world.witness?.dialFailed(fake);
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
