// A row of the table of differences in docs/from-pgbouncer.md, and how a test shows it.
import type pg from 'pg';
import type { TestDatabase } from '../../../support/postgres.js';
import type { Side, Versions } from './side-by-side.js';

export interface Difference {
  /** First cell of the row. */
  readonly row: string;
  /** A sentence. */
  readonly title: string;
  /**
   * Versions of PgBouncer with the behaviour that the row names. None: PgBouncer is not needed, since only Headgate's side is shown.
   */
  readonly versions?: Versions;
  /** False where the system lacks what it takes. */
  readonly isPossible?: boolean;
  show(db: TestDatabase): Promise<void>;
}

/** `served`, or the error. */
export function outcomeOf(act: () => Promise<unknown>): Promise<string> {
  return act().then(
    () => 'served',
    (error: Error) => error.message,
  );
}

/** Resolves when the connection has ended. */
export function endOf(client: pg.Client): Promise<void> {
  return new Promise((resolve) => client.once('end', () => resolve()));
}

export async function pairOf(side: Side): Promise<[pg.Client, pg.Client]> {
  return [await side.connect(), await side.connect()];
}
