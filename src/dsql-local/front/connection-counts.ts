/** Connections and logins since the start or the last reset, for tests of an application and for the control port. */
import type { LoginEvent } from './login.js';

export interface ConnectionCounts {
  /** Connections that have a place now, those that are logging in among them. */
  readonly open: number;
  /** The most that had a place at once. */
  readonly peak: number;
  /** Logins that succeeded. */
  readonly accepted: number;
  /** Logins that failed, by SQLSTATE. */
  readonly refused: Readonly<Record<string, number>>;
}

export class LoginCounter {
  accepted = 0;
  readonly #refused = new Map<string, number>();

  add({ refusal }: LoginEvent): void {
    if (refusal === undefined) this.accepted += 1;
    else this.#refused.set(refusal.code, (this.#refused.get(refusal.code) ?? 0) + 1);
  }

  reset(): void {
    this.accepted = 0;
    this.#refused.clear();
  }

  /** By SQLSTATE. */
  get refused(): Record<string, number> {
    return Object.fromEntries(this.#refused);
  }
}
