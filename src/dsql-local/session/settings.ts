/** Limits of DSQL's transactions, each of which a test can make smaller. */
export interface TransactionLimits {
  /** Rows that one transaction may change. */
  readonly rows: number;
  /** Bytes that it may change, checked at COMMIT. */
  readonly bytes: number;
  readonly ageMs: number;
}

export const usualLimits: TransactionLimits = { rows: 3_000, bytes: 10 * 1_048_576, ageMs: 300_000 };

/** Faults of COMMIT on demand. */
export type CommitFault = 'conflict' | 'unavailable_before' | 'unavailable_after';

/** The stand-in around a session, as the session sees it. */
export interface SessionHooks {
  /** Milliseconds, from any start. */
  now(): number;
  /** Asked at each COMMIT. */
  commitFault(): CommitFault | undefined;
  /** Milliseconds to wait before each request is answered. */
  latencyMs(): number;
  /** A session ended because of an error that is not its client's. */
  troubled(error: unknown): void;
  /** The dialect has judged a statement: for the report. */
  judged(sql: string, refusal: { readonly code: string; readonly message: string } | undefined): void;
  /** A judged statement was refused because of its transaction or of a limit: for the report. */
  refused(sql: string, refusal: { readonly code: string; readonly message: string }): void;
}
