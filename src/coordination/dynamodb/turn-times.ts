/** The two moments that tell which instance has the slot turn. */
export interface Turns {
  /** By the server's clock. */
  readonly giveBeforeMs: number;
  readonly takeBeforeMs: number;
  /** Slots for each user, by weight. An instance has no more than its callers need. */
  readonly perClaimant: number;
  readonly rotationMs: number;
}
