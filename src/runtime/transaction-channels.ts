/**
 * The messages that retrying transactions publish through `node:diagnostics_channel`, beside the channels of pools. Each
 * message names the pool, so that metrics and traces need no import of Headgate.
 */
import { type Channel, channel } from 'node:diagnostics_channel';
import type { PoolMessage } from './channels.js';

/** A message about one transaction; attempts count from 1, times are milliseconds. */
export interface TransactionMessage extends PoolMessage {
  /** The name that the caller gave to this kind of transaction. */
  readonly operation: string;
}

/** The messages by the name of their channel. `errorClass` is the result of `classifyError` of `headgate/dsql`. */
export interface TransactionChannels {
  'headgate:transaction:conflict': TransactionMessage & {
    /** `data` (OC000) or `schema` (OC001). */
    readonly conflict: string;
    readonly attempt: number;
  };
  'headgate:transaction:retry': TransactionMessage & {
    /** The attempt that failed. */
    readonly attempt: number;
    readonly errorClass: string;
    readonly backoffMs: number;
  };
  /** Followed by `headgate:transaction:failed`. */
  'headgate:transaction:exhausted': TransactionMessage & {
    /** The limit that was reached: `attempts`, `time` or `budget`. */
    readonly reason: string;
    readonly attempts: number;
  };
  'headgate:transaction:committed': TransactionMessage & {
    readonly attempts: number;
    /** Duration of the whole call, with all attempts and waits. */
    readonly durationMs: number;
  };
  'headgate:transaction:failed': TransactionMessage & {
    readonly attempts: number;
    readonly durationMs: number;
    readonly errorClass: string;
  };
}

const conflicted = channel('headgate:transaction:conflict');
const retried = channel('headgate:transaction:retry');
const gaveUp = channel('headgate:transaction:exhausted');
const committed = channel('headgate:transaction:committed');
const failed = channel('headgate:transaction:failed');

/** Publishes the events of the transactions of one pool. Costs next to nothing without subscribers. */
export class TransactionPublisher {
  readonly #pool: object;
  readonly #poolName: string;

  constructor(pool: object, poolName: string) {
    this.#pool = pool;
    this.#poolName = poolName;
  }

  conflict(operation: string, conflict: string, attempt: number): void {
    this.#publish(conflicted, { operation, conflict, attempt });
  }

  retryScheduled(operation: string, backoffMs: number, errorClass: string, attempt: number): void {
    this.#publish(retried, { operation, attempt, errorClass, backoffMs });
  }

  exhausted(operation: string, reason: string, attempts: number): void {
    this.#publish(gaveUp, { operation, reason, attempts });
  }

  committed(operation: string, durationMs: number, attempts: number): void {
    this.#publish(committed, { operation, attempts, durationMs });
  }

  failed(operation: string, errorClass: string, durationMs: number, attempts: number): void {
    this.#publish(failed, { operation, attempts, durationMs, errorClass });
  }

  #publish(to: Channel, details: object): void {
    if (to.hasSubscribers) to.publish({ pool: this.#pool, poolName: this.#poolName, ...details });
  }
}
