// A pool as leases see it: it wants a number of connections, takes a lease before it opens one, and gives it back when the
// socket is gone. Connections are in use now and then, and one in use can't be closed before it comes back.
import type { LeaseHolder, Leases } from '../../../src/core/leases.js';

export interface PoolWorld {
  readonly later: (delayMs: number, run: () => void) => void;
  readonly random: () => number;
  /** How long a connection stays in use, at most. */
  readonly longestLoanMs: number;
  readonly opened: () => void;
  readonly closed: () => void;
}

const closeMs = 20;
const dialMs = 30;
const retryMs = 500;

export class ModelPool implements LeaseHolder {
  readonly name: string;
  readonly #leases: Leases;
  readonly #world: PoolWorld;
  /** Demand of its callers, and connections wanted ready besides. */
  wants = 0;
  readyDemand = 0;
  claimants: number | undefined = undefined;
  /** Leases that it has: for connections that are being opened, are open, or are being closed. */
  held = 0;
  idle = 0;
  inUse = 0;
  dialing = 0;
  closing = 0;
  recalled = 0;
  isAsking = false;
  /** Its request is in the queue of the leases. */
  isWaiting = false;
  isRetrying = false;
  granted = 0;
  /** Requests that had to wait, and requests that were refused. */
  waits = 0;
  refusals = 0;
  /** When it began to want what it does not have. */
  readonly complaints: string[] = [];
  #isCalling = false;
  #hasReleased = false;

  constructor(name: string, leases: Leases, world: PoolWorld) {
    this.name = name;
    this.#leases = leases;
    this.#world = world;
  }

  get demand(): number {
    return this.wants;
  }

  get size(): number {
    return this.idle + this.inUse + this.dialing;
  }

  want(count: number, ready = 0): void {
    this.wants = count;
    this.readyDemand = ready;
    this.pump();
  }

  get #target(): number {
    return this.wants + this.readyDemand;
  }

  pump(): void {
    while (this.idle > 0 && (this.size > this.#target || this.recalled > this.closing)) this.#close();
    while (this.size < this.#target && this.#mayAsk && this.recalled === 0) {
      const wasWaiting = this.isWaiting;
      const answer = this.#call(() => this.#leases.acquire(1, this));
      this.isWaiting = false;
      this.#hasReleased = false;
      if (answer === 'granted') this.#dial();
      else if (answer instanceof Error) this.#retry();
      else if (answer === 'asking') this.isAsking = true;
      else {
        if (!wasWaiting) this.waits++;
        this.isWaiting = true;
      }
    }
  }

  get #mayAsk(): boolean {
    return !this.isAsking && !this.isRetrying && (!this.isWaiting || this.#hasReleased);
  }

  /** Someone borrows one, for a while. */
  lend(): void {
    if (this.idle === 0) return;
    this.idle--;
    this.inUse++;
    this.#world.later(this.#world.random() * this.#world.longestLoanMs, () => {
      this.inUse--;
      this.idle++;
      this.pump();
    });
  }

  /** One reaches the end of its life. */
  expireOne(): void {
    if (this.idle > 0) this.#close();
    this.pump();
  }

  leasesAvailable(): void {
    this.#told();
    this.isAsking = false;
    this.isWaiting = false;
    this.isRetrying = false;
    this.pump();
  }

  leasesGranted(count: number): number {
    this.#told();
    this.isAsking = false;
    this.isWaiting = false;
    this.isRetrying = false;
    const taken = this.size < this.#target && this.recalled === 0 ? count : 0;
    for (let n = 0; n < taken; n++) this.#dial();
    this.pump();
    return taken;
  }

  leasesDelayed(): void {
    this.#told();
    if (!this.isAsking) this.complaints.push('was delayed without having asked');
    this.isAsking = false;
    this.isWaiting = true;
    this.waits++;
  }

  leasesRefused(): void {
    this.#told();
    if (!this.isAsking && !this.isWaiting) this.complaints.push('was refused without having asked');
    this.isAsking = false;
    this.isWaiting = false;
    this.#retry();
  }

  leasesLost(): void {
    this.complaints.push('lost leases, which can only be recalled');
  }

  leasesRecalled(count: number): void {
    this.#told();
    this.recalled = count;
    this.pump();
  }

  #dial(): void {
    this.held++;
    this.granted++;
    this.dialing++;
    this.#world.opened();
    this.#world.later(dialMs, () => {
      this.dialing--;
      this.idle++;
      this.pump();
    });
  }

  #close(): void {
    this.idle--;
    this.closing++;
    this.#world.later(closeMs, () => {
      this.closing--;
      this.held--;
      if (this.recalled > 0) this.recalled--;
      this.#world.closed();
      this.#call(() => this.#leases.release(1, this));
      this.#hasReleased = true;
      this.pump();
    });
  }

  #retry(): void {
    this.refusals++;
    this.isRetrying = true;
    this.#world.later(retryMs, () => {
      this.isRetrying = false;
      this.pump();
    });
  }

  #call<T>(call: () => T): T {
    this.#isCalling = true;
    try {
      return call();
    } finally {
      this.#isCalling = false;
    }
  }

  #told(): void {
    if (this.#isCalling) this.complaints.push('was called from inside its own call');
  }
}
