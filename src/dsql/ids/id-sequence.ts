/**
 * Which time and number the next id gets. Decides only: what has to be waited for, others wait for.
 *
 * Times never decrease. While the clock is behind the last id, ids go on in that id's millisecond as long as it has numbers.
 */
import type { NodeGrant } from '../../coordination/node-ids.js';
import { IdClockError } from './errors.js';

export const sequenceBits = 12;
export const nodeBits = 10;
const largestSequence = 2 ** sequenceBits - 1;
const largestTime = 2 ** 41 - 1;

export interface SequenceSettings {
  /** Times of ids count from here: milliseconds since 1970. */
  readonly epochMs: number;
  /** A clock that is further behind the last id is refused. */
  readonly maxClockBackMs: number;
}

export class IdSequence {
  readonly #settings: SequenceSettings;
  #holding = 0;
  /** Time of the last id, or of ids that another generator may have made. */
  #timeMs = Number.NEGATIVE_INFINITY;
  #number = largestSequence;

  constructor(settings: SequenceSettings) {
    this.#settings = settings;
  }

  /** Time of the last id, in milliseconds since 1970. */
  get timeMs(): number {
    return this.#timeMs;
  }

  get number(): number {
    return this.#number;
  }

  /** 0: `timeMs` and `number` are the next id's. Above: so many milliseconds have to be waited first. Below: the grant ends too early. */
  advance(nowMs: number, grant: NodeGrant): number {
    if (grant.holding !== this.#holding) this.#begin(grant);
    const behindMs = this.#timeMs - nowMs;
    if (behindMs > this.#settings.maxClockBackMs) throw this.#wentBack(behindMs);
    const timeMs = Math.max(nowMs, this.#timeMs);
    if (timeMs > grant.untilMs) return -1;
    if (timeMs === this.#timeMs && this.#number === largestSequence) return behindMs + 1;
    this.#checkRange(timeMs);
    this.#number = timeMs === this.#timeMs ? this.#number + 1 : 0;
    this.#timeMs = timeMs;
    return 0;
  }

  /** Another node: later than its ids, and than our own. */
  #begin({ holding, afterMs }: NodeGrant): void {
    this.#holding = holding;
    this.#timeMs = Math.max(this.#timeMs, afterMs);
    this.#number = largestSequence;
  }

  #wentBack(behindMs: number): IdClockError {
    return new IdClockError(
      'went_back',
      `The clock is ${behindMs} ms behind the last id, more than maxClockBack (${this.#settings.maxClockBackMs} ms). ` +
        'No id is made, since it might exist. Look at the time synchronisation of this machine; ids go on when the clock has caught up.',
      behindMs,
    );
  }

  #checkRange(timeMs: number): void {
    const { epochMs } = this.#settings;
    const time = timeMs - epochMs;
    if (time >= 0 && time <= largestTime) return;
    const [from, to] = [epochMs, epochMs + largestTime].map((ms) => new Date(ms).toISOString());
    throw new IdClockError(
      'out_of_range',
      `The clock shows ${new Date(timeMs).toISOString()}; ids of this epoch go from ${from} to ${to}. Set the clock, or choose another epoch.`,
    );
  }
}
