/** When the requests and transactions of one client began. All times are by the clock of the process. */
import { systemClock } from '../../../runtime/system.js';

export class RequestTimes {
  #askedAt = 0;
  #beganAt = 0;
  #inTransactionSince = 0;
  #idleSince = systemClock.coarse();
  #waitedSince = 0;
  /** Begin of the present or the last wait for a server. */
  waitingSince = 0;

  /** Begin of the query that runs, or the last answer. */
  get askedAt(): number {
    return this.#askedAt;
  }

  /** Begin of the transaction as the client knows it, which may be earlier than on the server. */
  get inTransactionSince(): number {
    return this.#inTransactionSince;
  }

  /** When the server last owed nothing. */
  get idleSince(): number {
    return this.#idleSince;
  }

  /** Begin of the wait of the query that runs; 0 where it did not wait. */
  get waitedSince(): number {
    return this.#waitedSince;
  }

  /** The wait for a server is over: the query that has waited runs. */
  waited(): void {
    this.#waitedSince = this.waitingSince;
  }

  /** A server that owes nothing is about to get a request. */
  asks(): void {
    this.#askedAt = systemClock.coarse();
  }

  /** The request begins a transaction on the server. `hasBegun`: the client is in that transaction already. */
  begins(hasBegun: boolean): void {
    this.#beganAt = this.#askedAt;
    if (!hasBegun) this.#inTransactionSince = this.#askedAt;
  }

  /** The request was sent at `placedAt` behind those of other clients, and runs now. The time behind them does not count. */
  adopted(placedAt: number): void {
    this.#askedAt = this.#beganAt = this.#inTransactionSince = systemClock.coarse();
    this.#waitedSince = this.#askedAt - (placedAt - this.waitingSince);
  }

  /** Notes an answer that was made up without a server. `begins`: it may begin a transaction. */
  answeredLocally(begins: boolean): void {
    this.#idleSince = systemClock.coarse();
    if (begins) this.#inTransactionSince = this.#idleSince;
  }

  /** How long the query that runs has waited before it was sent. */
  get waitMs(): number {
    return this.#waitedSince === 0 ? 0 : Math.max(0, this.#askedAt - this.#waitedSince);
  }

  /** The server is ready. Returns how long the query took. */
  answered(now: number): number {
    const ms = now - this.#askedAt;
    this.#askedAt = now;
    this.#waitedSince = 0;
    return ms;
  }

  /** The transaction is over. Returns how long it took. */
  committed(now: number): number {
    const ms = now - this.#beganAt;
    this.#beganAt = this.#inTransactionSince = now;
    return ms;
  }

  /** The server owes nothing. */
  settled(): void {
    this.#idleSince = systemClock.coarse();
  }
}
