/** The kind of claim of a pool to one more lease of a budget, which determines its place in the queue. */

/** The smaller comes first. */
export const Rank = {
  /** A lease that was asked back for it has come. */
  due: 0,
  /** The user has less than its promised minimum. */
  promised: 1,
  /** The user has nothing. */
  nothing: 2,
  belowShare: 3,
  /** The user has its share, but this pool less than its part of it. */
  belowPart: 4,
  wish: 5,
} as const;
export type Rank = (typeof Rank)[keyof typeof Rank];
export const ranks: readonly Rank[] = Object.values(Rank);
