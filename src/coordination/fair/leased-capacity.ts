/**
 * The capacity of a budget that is itself leased from one above: of a machine's share of a cluster's budget, say. It asks for
 * more when someone waits, gives back what was free for a while, and shrinks when leases are lost or recalled.
 */
import type { LeaseHolder, Leases } from '../../core/leases.js';
import type { Alarm, AlarmFactory, Clock } from '../../kernel/clock.js';

/** The budget whose capacity it is. */
export interface LeasedBudget {
  resize(capacity: number): void;
  /** Leases that are held; and members that wait. */
  readonly held: number;
  readonly waiting: number;
}

export interface LeasedCapacityParts {
  readonly name: string;
  readonly source: Leases;
  /** Never more than this. */
  readonly most: number;
  /** What was free for so long is given back. */
  readonly spareMs: number;
  /** After a refusal it is asked again then, unless it is told before that it is worth it. */
  readonly retryMs: number;
  readonly clock: Clock;
  readonly alarm: AlarmFactory;
}

export class LeasedCapacity implements LeaseHolder {
  readonly name: string;
  readonly #parts: LeasedCapacityParts;
  readonly #alarm: Alarm;
  readonly #budget: LeasedBudget;
  #most: number;
  #leased = 0;
  #recalled = 0;
  #isAsking = false;
  #retryAt = 0;
  /** Since when there has been something free. */
  #spareSince = Number.POSITIVE_INFINITY;

  constructor(parts: LeasedCapacityParts, budget: LeasedBudget) {
    this.#parts = parts;
    this.name = parts.name;
    this.#most = parts.most;
    this.#budget = budget;
    this.#alarm = parts.alarm(() => this.look());
  }

  /** Leases of the source. */
  get leased(): number {
    return this.#leased;
  }

  change(most: number): void {
    this.#most = most;
    this.look();
  }

  /** Someone waits, or something was given back. */
  look(): void {
    const { held, waiting } = this.#budget;
    if (waiting > 0) this.#ask(waiting);
    this.#giveBack(held, waiting);
  }

  #ask(waiting: number): void {
    const { source, clock, retryMs } = this.#parts;
    const now = clock.now();
    for (let free = this.#leased - this.#budget.held; free < waiting; free++) {
      if (this.#isAsking || this.#leased >= this.#most || now < this.#retryAt) break;
      const answer = source.acquire(1, this);
      if (answer === 'granted') this.#leased++;
      else if (answer === 'asking') this.#isAsking = true;
      else {
        this.#retryAt = now + retryMs;
        this.#alarm.set(this.#retryAt, false);
      }
    }
    this.#budget.resize(this.#leased);
  }

  /** What is asked back goes as soon as it is free; the rest when it was free for a while. */
  #giveBack(held: number, waiting: number): void {
    const { source, clock, spareMs } = this.#parts;
    const now = clock.now();
    const free = Math.max(0, this.#leased - held);
    const owed = Math.max(this.#recalled, this.#leased - this.#most);
    if (free === 0 || waiting > 0) this.#spareSince = Number.POSITIVE_INFINITY;
    else if (this.#spareSince === Number.POSITIVE_INFINITY) {
      this.#spareSince = now;
      this.#alarm.set(now + spareMs, false);
    }
    const isSpare = now >= this.#spareSince + spareMs;
    const count = isSpare ? free : Math.min(free, owed);
    if (count === 0) return;
    this.#leased -= count;
    this.#recalled = Math.max(0, this.#recalled - count);
    this.#spareSince = Number.POSITIVE_INFINITY;
    // Smaller first: nobody may be given what is not there any more.
    this.#budget.resize(this.#leased - this.#recalled);
    source.release(count, this);
  }

  // ---- what the source says ---------------------------------------------------------------------------------------

  leasesAvailable(): void {
    this.#isAsking = false;
    this.#retryAt = 0;
    this.look();
  }

  leasesRefused(): void {
    this.#isAsking = false;
    this.#retryAt = this.#parts.clock.now() + this.#parts.retryMs;
    this.#alarm.set(this.#retryAt, false);
  }

  leasesLost(count: number): void {
    this.#leased = Math.max(0, this.#leased - count);
    this.#recalled = Math.min(this.#recalled, this.#leased);
    this.#budget.resize(Math.max(0, this.#leased - this.#recalled));
  }

  leasesRecalled(count: number): void {
    this.#recalled = Math.min(count, this.#leased);
    this.#budget.resize(this.#leased - this.#recalled);
    this.look();
  }

  stop(): void {
    this.#alarm.clear();
  }
}
