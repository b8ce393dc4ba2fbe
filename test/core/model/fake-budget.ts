// A budget above the pool that keeps its own books of who owes what, and answers as it is told to.
import type { LeaseAnswer, LeaseHolder, Leases } from '../../../src/core/leases.js';
import type { VirtualWorld } from '../../support/virtual-world.js';

export const budgetExhausted = new Error('the budget is exhausted');

export class FakeBudget implements Leases {
  world!: VirtualWorld;
  size: number;
  /** How it answers where it could say yes; where it could not, a yes becomes a no. */
  answers: () => LeaseAnswer | 'throw' = () => 'granted';
  /** Called when the budget has said that it is asking, or that the request waits. */
  onAsking: () => void = () => {};
  /** Whether a request waits that can't be granted; otherwise it is refused. */
  queues: () => boolean = () => false;
  granted = 0;
  released = 0;
  lost = 0;
  refusals = 0;
  refusalsInARow = 0;
  lastRefusalAt = Number.NEGATIVE_INFINITY;
  /** An answer is owed. */
  isAsking = false;
  /** The pool knows that its request waits. */
  isWaiting = false;
  #isReleased = false;
  /** Places that are occupied without a lease, because it was taken away. */
  debt = 0;
  /** Leases that others have a better claim to, and that did not come back yet. */
  recalled = 0;
  #holder: LeaseHolder | undefined;

  constructor(size: number) {
    this.size = size;
  }

  /** Leases of the pool, as the budget counts them. */
  get held(): number {
    return this.granted - this.released - this.lost;
  }

  /** Held for a dial that has not begun. Anything but 0 and 1 is wrong. */
  get inHand(): number {
    return this.held + this.debt - this.world.server.total;
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    this.#holder = holder;
    this.#demand(count === 1, `${count} leases were asked for at once`);
    const isRepeated = this.isWaiting && this.#isReleased;
    this.#demand(!this.isAsking || isRepeated, 'a lease was asked for while an answer was owed');
    this.#demand(this.debt === 0, `a lease was asked for in debt of ${this.debt}`);
    const wish = this.answers();
    let answer = wish === 'granted' && this.held >= this.size ? budgetExhausted : wish;
    if (answer === budgetExhausted && this.queues()) answer = { reason: budgetExhausted };
    this.#isReleased = false;
    if (typeof answer === 'object' && 'reason' in answer) {
      // One wait is one failure, however often the pool asks again because it has released a lease.
      if (!this.isWaiting) this.#noteRefusal();
      this.isAsking = this.isWaiting = true;
      this.onAsking();
      return answer;
    }
    this.isAsking = this.isWaiting = false;
    if (answer === 'asking') {
      this.isAsking = true;
      this.onAsking();
    } else if (answer === 'granted') {
      this.granted++;
      if (this.recalled > 0) this.recalled--;
      this.refusalsInARow = 0;
    } else this.#noteRefusal();
    if (answer === 'throw') throw budgetExhausted;
    return answer;
  }

  release(count: number, holder: LeaseHolder): void {
    this.#demand(holder === this.#holder, 'a lease was given back by someone else');
    this.#demand(count === 1, `${count} leases were given back at once`);
    this.released += count;
    this.#isReleased = true;
    if (this.recalled > 0) this.recalled--;
    this.#demand(this.held >= 0, `more was given back than is held: ${this.held}`);
  }

  /** Tells the pool that asking again is worthwhile, whether it was asking or not. */
  tellAvailable(): void {
    this.isAsking = this.isWaiting = false;
    this.#holder?.leasesAvailable();
  }

  /** Hands a lease over, whether or not one was asked for. Whether the pool took it. */
  grant(): boolean {
    if (this.#holder === undefined || this.held >= this.size) return false;
    const { refusalsInARow } = this;
    this.isAsking = this.isWaiting = false;
    this.granted++;
    const recalledBefore = this.recalled;
    if (this.recalled > 0) this.recalled--;
    this.refusalsInARow = 0;
    const taken = this.#holder.leasesGranted(1);
    this.#demand(taken === 0 || taken === 1, `${taken} of 1 leases were taken`);
    if (taken === 1) return true;
    this.granted--;
    this.recalled = recalledBefore;
    this.refusalsInARow = Math.max(this.refusalsInARow, refusalsInARow);
    return false;
  }

  /** The request that is owed an answer waits. */
  tellDelayed(): void {
    if (!this.isAsking || this.isWaiting) return;
    this.isWaiting = true;
    this.#isReleased = false;
    this.#noteRefusal();
    this.#holder?.leasesDelayed?.(budgetExhausted);
  }

  /** The answer that is owed is no. */
  tellRefused(error = budgetExhausted): void {
    if (!this.isAsking) return;
    this.isAsking = this.isWaiting = false;
    this.#noteRefusal();
    this.#holder?.leasesRefused(error);
  }

  /** Others have some of what the pool holds. */
  lose(count: number): void {
    const { held, inHand } = this;
    const taken = Math.min(count, held);
    this.lost += taken;
    this.debt += taken - Math.min(inHand, taken);
    this.#holder?.leasesLost(count);
  }

  /** Others have a better claim to so many of what the pool holds. */
  recall(count: number): void {
    if (this.#holder === undefined) return;
    this.recalled = count;
    this.#holder.leasesRecalled?.(count);
  }

  /** A place is free: it pays for one that was taken away, or its lease comes back. */
  slotFreed(): void {
    if (this.debt > 0) this.debt--;
  }

  #noteRefusal(): void {
    this.refusals++;
    this.refusalsInARow++;
    this.lastRefusalAt = this.world.now;
  }

  #demand(truth: boolean, otherwise: string): void {
    if (!truth) this.world.contradict(`leases: ${otherwise}`);
  }
}
