/** Ways to treat a message. */
export const Passing = {
  /** Send the message unchanged. */
  asItIs: 1,
  /** The first piece was rewritten; send the others unchanged. */
  rewritten: 2,
  /** Do not send the message. */
  none: 3,
  /** Hold the message until everything is answered, then pass it again. */
  later: 4,
} as const;
export type Passing = (typeof Passing)[keyof typeof Passing];
