// A holder that behaves as a pool does: it wants a number of connections, has one request at a time, and asks again only when it is told
// to, when it has given one back, or after a backoff.
import type { LeaseHolder, Leases } from '../../src/core/leases.js';

/** How a holder treats leases that it is granted. */
export type Mood = 'eager' | 'uninterested';

export class ModelHolder implements LeaseHolder {
  readonly name: string;
  readonly #leases: Leases;
  /** Plans the next attempt after a refusal. Without it, the holder waits to be told. */
  readonly #retryLater: ((attempt: () => void) => void) | undefined;
  wants = 0;
  held = 0;
  isAsking = false;
  /** Its request is in the queue of the leases. */
  isWaiting = false;
  /** Was refused, and has not been told anything since. */
  isRefused = false;
  mood: Mood = 'eager';
  /** Whether it says how much it needs. */
  tellsDemand = false;
  granted = 0;
  released = 0;
  lost = 0;
  /** How often it was told that it is worth asking again. */
  tellings = 0;
  /** How often it was handed leases. */
  grants = 0;
  readonly refusals: Error[] = [];
  /** Why its requests had to wait, one for each. */
  readonly delays: Error[] = [];
  /** Breaches of the contract. Anything in here is a bug. */
  readonly complaints: string[] = [];
  /** Runs when it was told something and has noted it, before it does anything else. */
  onTold: ((what: 'available' | 'granted' | 'delayed' | 'refused' | 'lost') => void) | undefined;
  #isCalling = false;
  #hasGivenBack = false;
  #isPumping = false;
  #pumpAgain = false;

  constructor(name: string, leases: Leases, retryLater?: (attempt: () => void) => void) {
    this.name = name;
    this.#leases = leases;
    this.#retryLater = retryLater;
  }

  get demand(): number | undefined {
    return this.tellsDemand ? this.wants : undefined;
  }

  want(count: number): void {
    this.wants = count;
    this.pump();
  }

  /** A connection is gone; another takes its place if it is still wanted. */
  replaceOne(): void {
    if (this.held === 0) return;
    this.giveBack(1);
    this.pump();
  }

  giveBack(count: number): void {
    this.held -= count;
    this.released += count;
    this.isRefused = false;
    this.#hasGivenBack = true;
    this.#call(() => this.#leases.release(count, this));
  }

  pump(): void {
    this.#pumpAgain = true;
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (this.#pumpAgain) {
      this.#pumpAgain = false;
      while (this.held > this.wants) this.giveBack(1);
      while (this.held < this.wants && this.#mayAsk) this.#ask();
    }
    this.#isPumping = false;
  }

  get #mayAsk(): boolean {
    return !this.isAsking && !this.isRefused && (!this.isWaiting || this.#hasGivenBack);
  }

  leasesAvailable(): void {
    this.#checkMoment('available');
    this.tellings++;
    this.#answered();
    this.onTold?.('available');
    if (this.mood === 'uninterested') this.wants = this.held;
    this.pump();
  }

  leasesGranted(count: number): number {
    this.#checkMoment('granted');
    this.grants++;
    this.#answered();
    this.onTold?.('granted');
    if (this.mood === 'uninterested') this.wants = this.held;
    const taken = Math.max(0, Math.min(count, this.wants - this.held));
    this.held += taken;
    this.granted += taken;
    this.pump();
    return taken;
  }

  leasesDelayed(reason: Error): void {
    this.#checkMoment('delayed');
    if (!this.isAsking) this.complaints.push('was delayed without having asked');
    this.isAsking = false;
    this.isWaiting = true;
    this.delays.push(reason);
    this.onTold?.('delayed');
  }

  #answered(): void {
    this.isAsking = false;
    this.isWaiting = false;
    this.isRefused = false;
  }

  leasesRefused(error: Error): void {
    this.#checkMoment('refused');
    if (!this.isAsking && !this.isWaiting) this.complaints.push('was refused without having asked');
    this.isAsking = false;
    this.isWaiting = false;
    this.#noteRefused(error);
    this.onTold?.('refused');
  }

  leasesLost(count: number): void {
    this.#checkMoment('lost');
    if (count > this.held) this.complaints.push(`lost ${count} of ${this.held}`);
    this.held -= count;
    this.lost += count;
    this.onTold?.('lost');
    this.pump();
  }

  #ask(): void {
    const answer = this.#call(() => this.#leases.acquire(1, this));
    const wasWaiting = this.isWaiting;
    this.#hasGivenBack = false;
    this.isWaiting = false;
    if (answer === 'granted') {
      this.held++;
      this.granted++;
    } else if (answer === 'asking') this.isAsking = true;
    else if (answer instanceof Error) this.#noteRefused(answer);
    else {
      this.isWaiting = true;
      if (!wasWaiting) this.delays.push(answer.reason);
    }
  }

  #noteRefused(error: Error): void {
    this.refusals.push(error);
    this.isRefused = true;
    this.#retryLater?.(() => {
      this.isRefused = false;
      this.pump();
    });
  }

  #checkMoment(what: string): void {
    if (this.#isCalling) this.complaints.push(`was told ${what} from inside its own call`);
  }

  #call<T>(call: () => T): T {
    this.#isCalling = true;
    try {
      return call();
    } finally {
      this.#isCalling = false;
    }
  }
}
