/** Requests to an allocator and its answers. A wrong number is refused: it would affect the shares of all users. */
import type { ShareReason } from './share-reasons.js';

/** A user with a part in the budget. */
export interface ShareUser {
  /** Names it from one time to the next. */
  readonly key: string;
  /** Number of connections it has a use for. */
  readonly demand: number;
  /** Twice the weight gets twice the share. From 0.000001 to 1000000. */
  readonly weight: number;
  /** Promised to it while it is active. Default 0. */
  readonly minimum?: number | undefined;
  /** The user never gets more, and no more is promised to it. Default: no limit. */
  readonly maximum?: number | undefined;
  /** An inactive user has no share, and its promise rests. */
  readonly isActive: boolean;
  /**
   * Start of the time without a slot, for the slot turns taken when there are more users than slots: the smallest number
   * comes first. -Infinity keeps its turn from ending. Left out: the allocator counts rounds.
   */
  readonly waitingSince?: number | undefined;
  /** The user's current share. Default: the share last given. */
  readonly share?: number | undefined;
}

export interface ShareRequest {
  readonly capacity: number;
  /** All users, in any order. A user that is no longer listed is forgotten. */
  readonly users: readonly ShareUser[];
  /** False for a computation between two rounds: no turn ends, and no share comes nearer to shrinking. Default true. */
  readonly isRound?: boolean | undefined;
}

export interface ShareChange {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly reason: ShareReason;
}

export interface ShareResult {
  /** The share of every user in the request. 0 means that the user waits for its slot turn or is inactive; it never means refused. */
  readonly shares: ReadonlyMap<string, number>;
  /** Shares that have changed, and why, in the order of the request. */
  readonly changes: readonly ShareChange[];
  /** Capacity in no share: the headroom, and the rest above all maxima. Shares and this add up to the capacity. */
  readonly leftOver: number;
  /** Need of active users beyond their shares, all together. */
  readonly unmet: number;
  /** Active users without a share. */
  readonly queued: number;
  /** If not all minimums could be kept: the sum promised, and how much of it was given, by weight. */
  readonly brokenPromise: { readonly promised: number; readonly given: number } | undefined;
}

/** Largest capacity: sums over users stay exact up to it. */
const mostCapacity = 1_000_000_000;
const lightest = 1e-6;
const heaviest = 1e6;

export function checkCapacity(capacity: number): void {
  if (isWhole(capacity, 0) && capacity <= mostCapacity) return;
  throw new RangeError(`capacity must be a whole number from 0 to ${mostCapacity}, not ${capacity}.`);
}

export function checkUser(user: ShareUser): void {
  const { key, demand, weight, minimum, maximum, waitingSince, share } = user;
  if (!isWhole(demand, 0)) refuse(key, 'demand', 'a whole number of at least 0', demand);
  if (!(weight >= lightest && weight <= heaviest))
    refuse(key, 'weight', `a number from 0.000001 to ${heaviest}`, weight);
  if (minimum !== undefined && !isWhole(minimum, 0))
    refuse(key, 'minimum', 'a whole number of at least 0', minimum);
  if (maximum !== undefined && !isWhole(maximum, 1) && maximum !== Infinity)
    refuse(key, 'maximum', 'a whole number of at least 1', maximum);
  if (waitingSince !== undefined && Number.isNaN(waitingSince))
    refuse(key, 'waitingSince', 'a number', waitingSince);
  if (share !== undefined && !isWhole(share, 0)) refuse(key, 'share', 'a whole number of at least 0', share);
}

function isWhole(value: number, least: number): boolean {
  return Number.isSafeInteger(value) && value >= least;
}

function refuse(key: string, field: keyof ShareUser, wanted: string, value: unknown): never {
  throw new RangeError(`The ${field} of user '${key}' must be ${wanted}, not ${String(value)}.`);
}
