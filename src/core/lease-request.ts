/**
 * The one request that a holder has at a budget.
 *
 *     none --ask--> asking --delayed--> waiting --answered--> none
 *                   asking --answered--> none
 *
 * A budget can't grant a lease from inside the call that releases it. A holder that releases one while its request waits therefore
 * asks again, once, and keeps its place.
 */
import type { LeaseAnswer, LeaseHolder, Leases, LeaseWait } from './leases.js';

export class LeaseRequest {
  readonly #leases: Leases;
  readonly #holder: LeaseHolder;
  #state: 'none' | 'asking' | 'waiting' = 'none';
  /** A lease was released since the request began to wait. */
  #hasReleased = false;

  constructor(leases: Leases, holder: LeaseHolder) {
    this.#leases = leases;
    this.#holder = holder;
  }

  /** Asks for one lease. True: granted. False: the budget will answer. Otherwise the reason; a wait is returned once. */
  ask(): boolean | LeaseWait | Error {
    if (this.#state === 'asking' || (this.#state === 'waiting' && !this.#hasReleased)) return false;
    const wasWaiting = this.#state === 'waiting';
    const answer = this.#acquire();
    this.#hasReleased = false;
    this.#state = 'none';
    if (answer === 'granted') return true;
    if (answer instanceof Error) return answer;
    this.#state = answer === 'asking' ? 'asking' : 'waiting';
    return answer === 'asking' || wasWaiting ? false : answer;
  }

  /** A budget may be foreign code: an exception counts as a refusal. */
  #acquire(): LeaseAnswer {
    try {
      return this.#leases.acquire(1, this.#holder);
    } catch (thrown) {
      return thrown instanceof Error ? thrown : new Error(String(thrown));
    }
  }

  /** The request waits in the budget's queue now. */
  delayed(): void {
    this.#state = 'waiting';
    this.#hasReleased = false;
  }

  /** Granted, refused or void. */
  answered(): void {
    this.#state = 'none';
  }

  /** The holder has released a lease. */
  released(): void {
    this.#hasReleased = true;
  }
}
