/**
 * One transaction of a client, and what decides at its COMMIT.
 *
 * direct -> detached (a row was locked or changed by another: the tables are copied, and it goes on with the copies)
 * direct, detached -> doomed (another has committed what it conflicts with: COMMIT fails)
 */
import type { Change } from './changes.js';
import type { Claim } from './claims.js';

/** A table that the transaction goes on with as a copy. */
export interface Copy {
  readonly schema: string;
  readonly name: string;
}

/** `data`: OC000, `schema`: OC001. */
export type Conflict = 'data' | 'schema';

export class Transaction {
  /** Commits before the transaction's snapshot was taken; undefined until its first statement. */
  snapshot: number | undefined;
  /** The catalog's version at that time. */
  catalog = 0;
  readonly beganAt: number;
  isReadOnly: boolean;
  /** Begun by the stand-in around a statement or a batch of them, and not by the client. */
  isImplicit: boolean;
  /** Changes that are made in the tables. */
  direct: Change[] = [];
  /** Changes that are made in copies, or will be: COMMIT makes them in the tables. */
  detached: Change[] = [];
  /** Texts of SET and the like, which have to be run again when PostgreSQL's transaction is begun anew. */
  readonly settings: string[] = [];
  readonly copies = new Map<number, Copy>();
  /** Tables that FOR UPDATE or FOR KEY SHARE named, and the transaction ids that may hold locks there. */
  readonly lockedTables = new Map<string, { readonly schema: string | undefined; readonly name: string }>();
  readonly lockerIds = new Set<string>();
  /** Claims of such locks, as far as they were asked for. */
  readonly lockClaims: Claim[] = [];
  /** Why COMMIT will fail. */
  doom: Conflict | undefined;
  /** PostgreSQL's transaction was begun anew at the same snapshot, and the changes are not in its copies yet. */
  isEvicted = false;
  /** How often PostgreSQL's transaction was begun anew; portals of an earlier one are gone. */
  evictions = 0;
  hasDdl = false;
  /** Ends the turn to commit, which the transaction has had since its last statement. */
  endTurn: (() => void) | undefined;
  hasDml = false;
  rows = 0;
  bytes = 0;

  constructor(beganAt: number, isImplicit: boolean, isReadOnly: boolean) {
    this.beganAt = beganAt;
    this.isImplicit = isImplicit;
    this.isReadOnly = isReadOnly;
  }

  /** All of them, in their order. */
  get changes(): Change[] {
    return [...this.direct, ...this.detached];
  }

  get isDetached(): boolean {
    return this.copies.size > 0;
  }

  /** True if COMMIT can be PostgreSQL's own, without anything to do before. */
  get isPlain(): boolean {
    return this.copies.size === 0 && this.detached.length === 0 && this.doom === undefined && !this.isEvicted;
  }
}
