/** Why an id could not be made or read. */
import { HeadgateError } from '../../kernel/errors.js';

/**
 * Faults of the clock.
 *
 * - `went_back`: it shows an earlier time than the last id has.
 * - `stood_still`: it did not move while the numbers of a millisecond were used up.
 * - `out_of_range`: its time is before the epoch, or more than 41 bits after it.
 */
export type IdClockProblem = 'went_back' | 'stood_still' | 'out_of_range';

/** The clock does not allow for an id that is surely new; `reason` says why. No id was made. */
export class IdClockError extends HeadgateError {
  readonly reason: IdClockProblem;
  /** How far the clock is behind the last id, in milliseconds. */
  readonly behindMs: number;

  constructor(reason: IdClockProblem, message: string, behindMs = 0) {
    super('HG_ID_CLOCK', message);
    this.reason = reason;
    this.behindMs = behindMs;
  }
}

/** Something is no UUID. */
export class InvalidUuidError extends HeadgateError {
  constructor(message: string) {
    super('HG_INVALID_UUID', message);
  }
}
