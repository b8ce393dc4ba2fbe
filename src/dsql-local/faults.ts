/** What goes wrong on demand, so that an application can be seen to cope with it. */
import type { ErrorFields } from '../wire/error-fields.js';
import type { CommitFault } from './session/settings.js';

/** Each is off unless set. Shares are between 0 and 1. */
export interface FaultSettings {
  /** New connections are answered with 53400, as if the rate were exceeded. */
  readonly refuseConnections?: boolean | undefined;
  /** New connections are told that the cluster is waking up, for so many milliseconds from now. */
  readonly wakingMs?: number | undefined;
  /** All tokens have expired. */
  readonly expireTokens?: boolean | undefined;
  /** Milliseconds before each answer. */
  readonly latencyMs?: number | undefined;
  /** The share of COMMITs that fail with OC000. */
  readonly conflictShare?: number | undefined;
  /** The share of COMMITs that fail with `server unavailable` before they took effect. */
  readonly unavailableBeforeCommit?: number | undefined;
  /** The share of COMMITs that take effect and are answered with `server unavailable`. */
  readonly unavailableAfterCommit?: number | undefined;
}

const waking: ErrorFields = {
  severity: 'FATAL',
  code: '08006',
  message: 'unable to accept connection, waking up cluster, please retry later',
};

const rateExceeded: ErrorFields = {
  severity: 'FATAL',
  code: '53400',
  message: 'Unable to accept connection, rate exceeded.',
};

export class Faults {
  readonly #now: () => number;
  #settings: FaultSettings = {};
  #awakeAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number) {
    this.#now = now;
  }

  get settings(): FaultSettings {
    return this.#settings;
  }

  /** Replaces all faults by these. */
  set(settings: FaultSettings): void {
    this.#settings = { ...settings };
    this.#awakeAt =
      settings.wakingMs === undefined ? Number.NEGATIVE_INFINITY : this.#now() + settings.wakingMs;
  }

  get areTokensExpired(): boolean {
    return this.#settings.expireTokens === true;
  }

  get latencyMs(): number {
    return this.#settings.latencyMs ?? 0;
  }

  connection(): ErrorFields | undefined {
    if (this.#now() < this.#awakeAt) return waking;
    return this.#settings.refuseConnections === true ? rateExceeded : undefined;
  }

  commit(): CommitFault | undefined {
    const { conflictShare = 0, unavailableBeforeCommit = 0, unavailableAfterCommit = 0 } = this.#settings;
    if (conflictShare + unavailableBeforeCommit + unavailableAfterCommit === 0) return undefined;
    let drawn = Math.random();
    if (drawn < conflictShare) return 'conflict';
    drawn -= conflictShare;
    if (drawn < unavailableBeforeCommit) return 'unavailable_before';
    drawn -= unavailableBeforeCommit;
    return drawn < unavailableAfterCommit ? 'unavailable_after' : undefined;
  }
}
