// A TCP proxy between the pooler and PostgreSQL, each of whose connections can be reset, held up, or cut in the middle of a
// message. It says of each of PostgreSQL's sessions, by its client port, whether the way to it still exists.
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';

export type Direction = 'to server' | 'to pooler';

/** How a connection is ended that has been cut: with a reset, or with what looks like a goodbye. */
export type Ending = 'reset' | 'goodbye';

export class FaultProxy {
  readonly host = '127.0.0.1';
  readonly port: number;
  /** New connections are reset at once. */
  refusesNew = false;
  /** New connections, cancel requests among them, are held up for so long. */
  stallsNewMs = 0;
  /** Requests to cancel are held up for so long, whoever has given up on them meanwhile. */
  stallsCancelsMs = 0;
  readonly #listener: net.Server;
  readonly #links = new Set<ProxyLink>();
  readonly #lostPorts = new Set<number>();

  private constructor(listener: net.Server, target: { host: string; port: number }) {
    this.#listener = listener;
    this.port = (listener.address() as AddressInfo).port;
    listener.on('connection', (pooler) => this.#accept(pooler, target));
  }

  static async start(target: { host: string; port: number }): Promise<FaultProxy> {
    const listener = net.createServer({ allowHalfOpen: true, pauseOnConnect: true });
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    return new FaultProxy(listener, target);
  }

  get links(): readonly ProxyLink[] {
    return [...this.#links].filter(({ isOpen }) => isOpen);
  }

  /**
   * Whether the connection with this port at PostgreSQL's end was cut here, so that the pooler has lost it, or is held up
   * here, so that PostgreSQL can't know whether the pooler has it still.
   */
  isLost(serverPort: number): boolean {
    return this.#lostPorts.has(serverPort);
  }

  #accept(pooler: Socket, target: { host: string; port: number }): void {
    if (this.refusesNew) {
      pooler.resetAndDestroy();
      return;
    }
    const server = net.connect({ ...target, allowHalfOpen: true, noDelay: true });
    pooler.setNoDelay();
    const link = new ProxyLink(pooler, server, {
      lost: () => {
        if (server.localPort !== undefined) this.#lostPorts.add(server.localPort);
      },
      found: () => this.#lostPorts.delete(server.localPort as number),
      cancelStallMs: () => this.stallsCancelsMs,
    });
    this.#links.add(link);
    // The port may be another connection's one day.
    server.on('connect', () => {
      if (!link.isStalled) this.#lostPorts.delete(server.localPort as number);
    });
    pooler.on('close', () => this.#links.delete(link));
    if (this.stallsNewMs > 0) link.stallFor(this.stallsNewMs);
  }

  async stop(): Promise<void> {
    for (const link of this.#links) link.cut('reset');
    this.#listener.close();
    await once(this.#listener, 'close');
  }
}

interface LinkKeeper {
  /** PostgreSQL and the pooler do not hear of each other, from now on or for a while. */
  readonly lost: () => void;
  readonly found: () => void;
  readonly cancelStallMs: () => number;
}

/** So long after a link was held up, an end of it that has gone meanwhile is noticed at the other. */
const noticeMs = 50;
const cancelCode = 80_877_102;

class ProxyLink {
  readonly #pooler: Socket;
  readonly #server: Socket;
  readonly #keeper: LinkKeeper;
  /** Bytes that may yet pass, by direction. */
  readonly #allowance = { 'to server': Number.POSITIVE_INFINITY, 'to pooler': Number.POSITIVE_INFINITY };
  #ending: Ending = 'reset';
  #isStalled = false;
  #isCut = false;
  /** Bytes that are on their way arrive, whatever the pooler does. */
  #isOnItsOwn = false;

  constructor(pooler: Socket, server: Socket, keeper: LinkKeeper) {
    this.#pooler = pooler;
    this.#server = server;
    this.#keeper = keeper;
    this.#pass(pooler, server, 'to server');
    this.#pass(server, pooler, 'to pooler');
    pooler.resume();
  }

  get isStalled(): boolean {
    return this.#isStalled;
  }

  get isOpen(): boolean {
    return !this.#pooler.destroyed;
  }

  /** For the report on one that should not be there. */
  toString(): string {
    const marks = [this.#isStalled && 'stalled', this.#isCut && 'cut', this.#isOnItsOwn && 'a late cancel'];
    const ends = `pooler ${this.#pooler.readyState}, server ${this.#server.readyState}`;
    return `${ends}${marks.filter(Boolean).map((mark) => `, ${mark}`)}`;
  }

  #pass(from: Socket, to: Socket, direction: Direction): void {
    from.on('data', (chunk: Buffer) => {
      if (direction === 'to server' && this.#holdsUp(chunk)) return;
      const left = this.#allowance[direction];
      if (chunk.length > left) {
        if (left > 0) to.write(chunk.subarray(0, left), () => this.cut(this.#ending));
        else this.cut(this.#ending);
        this.#allowance[direction] = 0;
        return;
      }
      this.#allowance[direction] -= chunk.length;
      if (!to.write(chunk)) {
        from.pause();
        to.once('drain', () => this.#resume(from));
      }
    });
    const isFollowed = (): boolean => from === this.#server || !this.#isOnItsOwn;
    from.on('end', () => isFollowed() && to.end());
    from.on('error', () => {});
    from.on('close', () => isFollowed() && to.destroy());
  }

  /** A request to cancel that comes later than it should, but comes. */
  #holdsUp(chunk: Buffer): boolean {
    const stallMs = this.#keeper.cancelStallMs();
    if (stallMs === 0 || chunk.length < 16 || chunk.readInt32BE(4) !== cancelCode) return false;
    this.#isOnItsOwn = true;
    setTimeout(() => this.#server.end(chunk), stallMs);
    return true;
  }

  #resume(socket: Socket): void {
    if (!this.#isStalled) socket.resume();
  }

  /** Nothing passes for so long. */
  stallFor(milliseconds: number): void {
    this.#isStalled = true;
    this.#keeper.lost();
    this.#pooler.pause();
    this.#server.pause();
    setTimeout(() => {
      this.#isStalled = false;
      this.#pooler.resume();
      this.#server.resume();
      setTimeout(() => {
        if (!this.#isCut && !this.#pooler.destroyed && !this.#isStalled) this.#keeper.found();
      }, noticeMs);
    }, milliseconds);
  }

  /** So many more bytes pass in one direction, and then it is cut. */
  cutAfter(direction: Direction, bytes: number, ending: Ending): void {
    this.#ending = ending;
    this.#allowance[direction] = bytes;
  }

  cut(ending: Ending): void {
    if (this.#isCut) return;
    this.#isCut = true;
    this.#keeper.lost();
    for (const socket of [this.#pooler, this.#server]) {
      if (ending === 'reset') socket.resetAndDestroy();
      else socket.destroy();
    }
  }
}
