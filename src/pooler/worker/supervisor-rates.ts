/**
 * Rates of a worker: each permit to open a connection comes from the supervisor, which has one bucket for all workers. An
 * engine asks without waiting, so it is told to ask again in a moment.
 */
import type { RateLimiter } from '../../core/rate-limiter.js';
import type { ConnectionRates } from '../budgets/connection-rates.js';

/** Messages to and from the supervisor. */
export interface RateLink {
  readonly clock: { now(): number };
  /** Resolves with 0 for a permit, or with the milliseconds to wait. */
  ask(server: string, isUrgent: boolean): Promise<number>;
  /** The server has accepted a connection, or refuses connections because they are opened too fast. */
  dialed(server: string, isTooFast: boolean): void;
}

/** An answer takes about this long. */
const pollMs = 1;
/** A permit that is not used for this long expires: later it would allow one connection more than the bucket. */
const permitMs = 250;
/** Pause after a failed request. */
const retryMs = 100;

export class SupervisorRates implements ConnectionRates {
  readonly #link: RateLink;
  readonly #rates = new Map<string, SupervisorRate>();

  constructor(link: RateLink) {
    this.#link = link;
  }

  limiterOf(server: string): RateLimiter {
    const rate = this.#rates.get(server) ?? new SupervisorRate(server, this.#link);
    this.#rates.set(server, rate);
    return rate;
  }
}

class SupervisorRate implements RateLimiter {
  readonly #server: string;
  readonly #link: RateLink;
  #isAsking = false;
  /** Time until which the granted permit may be used. */
  #permitUntil = Number.NEGATIVE_INFINITY;
  #retryAt = Number.NEGATIVE_INFINITY;

  constructor(server: string, link: RateLink) {
    this.#server = server;
    this.#link = link;
  }

  take(_now: number, isUrgent = false): number {
    // The clock that answers are noted by: an engine's time may be older.
    const now = this.#link.clock.now();
    if (now < this.#permitUntil) {
      this.#permitUntil = Number.NEGATIVE_INFINITY;
      return 0;
    }
    if (now < this.#retryAt) return this.#retryAt - now;
    if (!this.#isAsking) this.#ask(isUrgent);
    return pollMs;
  }

  refused(): void {
    this.#permitUntil = Number.NEGATIVE_INFINITY;
    this.#link.dialed(this.#server, true);
  }

  opened(): void {
    this.#link.dialed(this.#server, false);
  }

  #ask(isUrgent: boolean): void {
    const { clock } = this.#link;
    this.#isAsking = true;
    this.#link.ask(this.#server, isUrgent).then(
      (waitMs) => {
        this.#isAsking = false;
        if (waitMs > 0) this.#retryAt = clock.now() + waitMs;
        else this.#permitUntil = clock.now() + permitMs;
      },
      () => {
        this.#isAsking = false;
        this.#retryAt = clock.now() + retryMs;
      },
    );
  }
}
