/**
 * Splits one budget between regular work and reserved work (transactions and other work that keeps a connection), by the
 * demand of both. The ratio is the target under pressure: while both want more than there is, each gets its part. Either
 * may use the part that the other does not need.
 */
import { OptionReader } from '../kernel/option-reader.js';

export interface ClassSplitOptions {
  /** The part of the budget that reserved work has a claim to, from 0 to 1. Default 0.2. */
  readonly reservedRatio?: number | undefined;
}

export const splitReasons = [
  /** Both demands fit; what is left over is split by the ratio. */
  'demand_fits',
  /** Both want more than their part. */
  'by_ratio',
  /** Reserved work uses what regular work does not need. */
  'lent_to_reserved',
  /** Regular work uses what reserved work does not need. */
  'lent_to_regular',
] as const;

/** The reason for a split, in one word. */
export type SplitReason = (typeof splitReasons)[number];

export interface ClassShares {
  readonly regular: number;
  readonly reserved: number;
  readonly reason: SplitReason;
}

export class ClassSplit {
  readonly #ratio: number;

  constructor(options: ClassSplitOptions = {}) {
    const read = new OptionReader(options);
    const { reservedRatio: ratio = 0.2 } = options;
    const isRatio = typeof ratio === 'number' && ratio >= 0 && ratio <= 1;
    if (read.has('reservedRatio') && !isRatio)
      read.problem('reservedRatio', `must be a number from 0 to 1, not ${String(ratio)}`);
    read.refuseUnknown();
    read.throwIfAnyProblem();
    this.#ratio = ratio;
  }

  /**
   * Whole numbers that add up to the capacity. A class with a demand has at least one, as soon as there are two; a class
   * without has none while the other needs everything.
   */
  split(capacity: number, regularDemand: number, reservedDemand: number): ClassShares {
    checkWhole('capacity', capacity);
    checkWhole('regularDemand', regularDemand);
    checkWhole('reservedDemand', reservedDemand);
    const spare = capacity - regularDemand - reservedDemand;
    if (spare >= 0) return shares(capacity, reservedDemand + Math.round(spare * this.#ratio), 'demand_fits');
    const target = this.#target(capacity);
    if (reservedDemand < target) return shares(capacity, reservedDemand, 'lent_to_regular');
    if (regularDemand < capacity - target)
      return shares(capacity, capacity - regularDemand, 'lent_to_reserved');
    return shares(capacity, target, 'by_ratio');
  }

  /** Connections for reserved work when both classes want everything. */
  #target(capacity: number): number {
    const target = Math.round(capacity * this.#ratio);
    return capacity < 2 ? target : Math.min(capacity - 1, Math.max(1, target));
  }
}

function shares(capacity: number, reserved: number, reason: SplitReason): ClassShares {
  return { regular: capacity - reserved, reserved, reason };
}

function checkWhole(name: string, value: number): void {
  if (Number.isSafeInteger(value) && value >= 0) return;
  throw new RangeError(`${name} must be a whole number of at least 0, not ${value}.`);
}
