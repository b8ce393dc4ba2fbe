/** Faults on demand, so that an application can be seen to cope with them. */
import { OptionReader } from '../kernel/option-reader.js';
import type { ErrorFields } from '../wire/error-fields.js';
import type { CommitFault } from './session/settings.js';

/** Each is off unless set. Shares are from 0 to 1; those of COMMIT add up to 1 at most. */
export interface FaultSettings {
  /** New connections are answered with 53400, as if the rate were exceeded. */
  readonly refuseConnections?: boolean | undefined;
  /** The share of new connections that are answered with 53400. */
  readonly refuseShare?: number | undefined;
  /** For so many milliseconds from now, new connections are told that the cluster is waking up. */
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

/** Longer than any timer of Node's can be. */
const longestMs = 0x7fff_ffff;
/** The sum of shares such as 0.1 + 0.2 + 0.7 is not exactly 1. */
const roundingError = 1e-9;

/** Throws a `PoolOptionsError` with all that is wrong. Faults that are not set are left out of the answer. */
export function readFaults(settings: unknown): FaultSettings {
  const isObject = typeof settings === 'object' && settings !== null && !Array.isArray(settings);
  const read = new OptionReader(isObject ? settings : {});
  if (!isObject) read.problem('faults', 'must be an object with the names of faults');
  const faults = {
    refuseConnections: read.boolean('refuseConnections', false),
    refuseShare: read.share('refuseShare', 0),
    wakingMs: read.integer('wakingMs', 0, { min: 0, max: longestMs }),
    expireTokens: read.boolean('expireTokens', false),
    latencyMs: read.integer('latencyMs', 0, { min: 0, max: longestMs }),
    conflictShare: read.share('conflictShare', 0),
    unavailableBeforeCommit: read.share('unavailableBeforeCommit', 0),
    unavailableAfterCommit: read.share('unavailableAfterCommit', 0),
  };
  const sum = faults.conflictShare + faults.unavailableBeforeCommit + faults.unavailableAfterCommit;
  if (sum > 1 + roundingError)
    read.problem(
      'conflictShare',
      `must not add up with unavailableBeforeCommit and unavailableAfterCommit to more than 1; the sum is ${Number(sum.toFixed(9))}`,
    );
  read.refuseUnknown();
  read.throwIfAnyProblem('the faults');
  return Object.fromEntries(Object.entries(faults).filter(([, value]) => value !== false && value !== 0));
}

export class Faults {
  readonly #now: () => number;
  readonly #random: () => number;
  #settings: FaultSettings = {};
  #awakeAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number, random: () => number = Math.random) {
    this.#now = now;
    this.#random = random;
  }

  get settings(): FaultSettings {
    return this.#settings;
  }

  /** Replaces all faults by these. Throws a `PoolOptionsError`, and then changes nothing. */
  set(settings: unknown): void {
    const next = readFaults(settings);
    this.#settings = next;
    this.#awakeAt = next.wakingMs === undefined ? Number.NEGATIVE_INFINITY : this.#now() + next.wakingMs;
  }

  get areTokensExpired(): boolean {
    return this.#settings.expireTokens === true;
  }

  get latencyMs(): number {
    return this.#settings.latencyMs ?? 0;
  }

  connection(): ErrorFields | undefined {
    if (this.#now() < this.#awakeAt) return waking;
    const { refuseConnections = false, refuseShare = 0 } = this.#settings;
    return refuseConnections || this.#random() < refuseShare ? rateExceeded : undefined;
  }

  commit(): CommitFault | undefined {
    const { conflictShare = 0, unavailableBeforeCommit = 0, unavailableAfterCommit = 0 } = this.#settings;
    if (conflictShare + unavailableBeforeCommit + unavailableAfterCommit === 0) return undefined;
    let drawn = this.#random();
    if (drawn < conflictShare) return 'conflict';
    drawn -= conflictShare;
    if (drawn < unavailableBeforeCommit) return 'unavailable_before';
    drawn -= unavailableBeforeCommit;
    return drawn < unavailableAfterCommit ? 'unavailable_after' : undefined;
  }
}
