// A server without a network that keeps its own books of what exists physically. It shares no code with the engine's
// ledger, so that the two can be compared.
import type { DialFailureCause } from '../../src/core/breaker.js';
import type { Dial, Dialer } from '../../src/core/dialer.js';
import type { PooledConnection } from '../../src/core/pooled-connection.js';
import type { DiscardReason } from '../../src/core/reasons.js';
import type { VirtualWorld } from './virtual-world.js';

/** Where a socket is, as the server knows it. `unwanted`: it was opened although its dial had been given up. */
export type Place = 'idle' | 'in_use' | 'checking' | 'unwanted' | 'closing' | 'gone';

export class FakeSocket {
  readonly id: number;
  readonly bornAt: number;
  readonly #world: VirtualWorld;
  place: Place;
  pooled: PooledConnection<FakeSocket> | undefined = undefined;
  uses = 0;
  /** When it entered its present place. */
  since: number;
  /** The fault that must end its life. */
  doomedBy = new Set<DiscardReason>();
  reason: DiscardReason | undefined = undefined;
  checkIsOwed = false;
  /** The pool is being told the outcome of its check. */
  answersCheck = false;
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
    return this.place === 'idle' || this.place === 'in_use' || this.place === 'checking';
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
    this.answersCheck = true;
    this.#world.pool.checked(this.pooled as PooledConnection<FakeSocket>, error);
    this.answersCheck = false;
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
    if (this.state === 'opening') server.noteSuccess(this.#world.time.time - this.startedAt);
    this.state = 'answered';
    this.socket = socket;
    server.dials.delete(this);
    pool.dialed(this.dial, socket);
    if (socket.place === 'unwanted')
      this.#world.contradict(`the late connection ${socket.id} was not closed`);
  }

  /** Answers with an error, unless it was answered before. */
  fail(error = new Error('connection refused'), cause?: DialFailureCause): void {
    if (this.state === 'answered') return;
    const { server } = this.#world;
    const wasOpening = this.state === 'opening';
    const heldSlot = this.state !== 'lost';
    this.state = 'answered';
    server.dials.delete(this);
    if (heldSlot) server.slotFreed();
    this.#tellFailure(wasOpening, error, cause);
  }

  /** Failed for a reason that has passed: asks for another dial in its place, and fails where none is allowed. */
  failForNow(error = new Error('the token has expired')): void {
    if (this.state !== 'opening') {
      this.fail(error);
      return;
    }
    const { server, pool } = this.#world;
    this.state = 'answered';
    server.dials.delete(this);
    server.slotFreed();
    // Counted before it is accepted: the second one may begin from inside the call.
    server.secondChances++;
    server.owedChances++;
    if (pool.dialAgain(this.dial)) return;
    server.secondChances--;
    server.owedChances--;
    this.#tellFailure(true, error, 'connection_open');
  }

  #tellFailure(wasOpening: boolean, error: Error, cause: DialFailureCause | undefined): void {
    const { server, pool } = this.#world;
    if (wasOpening) server.noteFailure(cause);
    pool.dialFailed(this.dial, error, ...(cause === undefined ? [] : [cause]));
    if (wasOpening) this.#world.witness?.dialFailed(this);
  }

  succeedAfter(delay: number): void {
    this.#world.time.plan(this.#world.time.time + delay, () => this.succeed());
  }

  failAfter(delay: number, error?: Error, cause?: DialFailureCause): void {
    this.#world.time.plan(this.#world.time.time + delay, () => this.fail(error, cause));
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
  /** Dials that have not been answered. */
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
  /** By what they failed for: in all, since the last success, and the last of them. */
  readonly failuresBy = {
    rate_limit: { count: 0, inARow: 0, lastAt: Number.NEGATIVE_INFINITY },
    token_provider: { count: 0, inARow: 0, lastAt: Number.NEGATIVE_INFINITY },
    connection_open: { count: 0, inARow: 0, lastAt: Number.NEGATIVE_INFINITY },
  } satisfies Record<DialFailureCause, object>;
  /** Dials in whose place another was made, those of them that are yet to be made, and dials in nobody's place. */
  secondChances = 0;
  owedChances = 0;
  firstDials = 0;
  longestDialMs = 0;
  /** The most there ever was at once. */
  peak = 0;
  /** Is called when a place is free again, before the pool knows. */
  slotFreed: () => void = () => {};

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
    return this.countAt('idle') + this.countAt('in_use') + this.countAt('checking');
  }

  get total(): number {
    return this.opening + this.live + this.closing;
  }

  countAt(place: Place): number {
    let count = 0;
    for (const socket of this.sockets) if (socket.place === place) count++;
    return count;
  }

  // Calls of the pool.

  dial(dial: Dial<FakeSocket>): void {
    const fake = new FakeDial(this.#world, ++this.dialed, dial);
    this.dials.add(fake);
    if (this.owedChances > 0) this.owedChances--;
    else this.firstDials++;
    this.#world.returning = undefined;
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

  // Acts of the world.

  open(place: 'idle' | 'unwanted'): FakeSocket {
    const socket = new FakeSocket(this.#world, ++this.opened, place);
    this.sockets.add(socket);
    return socket;
  }

  gone(socket: FakeSocket): void {
    if (socket.place === 'gone') return;
    // One whose dial was lost has had no place of its own for some time.
    if (socket.place !== 'unwanted') this.slotFreed();
    socket.moveTo('gone');
    this.sockets.delete(socket);
    this.closed++;
  }

  noteSuccess(dialMs: number): void {
    this.failuresInARow = 0;
    for (const kind of Object.values(this.failuresBy)) kind.inARow = 0;
    this.longestDialMs = Math.max(this.longestDialMs, dialMs);
  }

  noteFailure(cause: DialFailureCause = 'connection_open'): void {
    this.failures++;
    this.failuresInARow++;
    this.lastFailureAt = this.#world.time.time;
    const kind = this.failuresBy[cause];
    kind.count++;
    kind.inARow++;
    kind.lastAt = this.lastFailureAt;
  }

  /** Dials given up for so long that the pool stops counting on their answer. */
  loseOverdue(): void {
    for (const dial of this.dials) {
      if (dial.state !== 'abandoned') continue;
      if (dial.abandonedAt + this.#world.policy.closeTimeout > this.#world.due) continue;
      dial.state = 'lost';
      this.slotFreed();
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
    this.#world.returning = undefined;
    return socket;
  }
}
