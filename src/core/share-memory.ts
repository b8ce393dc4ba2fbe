/** What an allocator remembers of a user from one time to the next. */

export class Memory {
  share = 0;
  isActive = false;
  /** Its place in the line: the round of its last turn and, as a fraction below 1/2, its place in that round. */
  servedIn = 0;
  /** Rounds in a row in which its share was too large, and the largest that was fair meanwhile. */
  tooLargeFor = 0;
  largestFair = 0;
  /** What it needed when its share was last no larger than fair. */
  needThen = 0;
  /** The last call in which it was named. */
  seenIn = 0;
}
