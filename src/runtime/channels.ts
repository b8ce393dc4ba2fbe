/**
 * Messages that pools publish through `node:diagnostics_channel`, so that metrics and traces need no import of Headgate:
 * `diagnostics_channel.subscribe('headgate:pool:discarded', (message) => ...)`.
 */
import { type Channel, channel } from 'node:diagnostics_channel';
import type { PoolState } from '../core/pool-counts.js';
import type { FillProgress, PoolListener } from '../core/pool-listener.js';
import type { PooledConnection } from '../core/pooled-connection.js';
import type { DiscardReason, RefillCause } from '../core/reasons.js';
import type { StuckReport } from '../core/stuck-report.js';
import type { WaitCause } from '../core/wait-cause.js';
import { CallerContext, contextOf } from './async-context.js';
import { type StuckWords, stuckText } from './stuck-warning.js';
import { systemClock } from './system.js';
import { warn } from './warn.js';

/** Every message names its pool; times are milliseconds. */
export interface PoolMessage {
  /** The Pool or PromisePool. */
  readonly pool: object;
  readonly poolName: string;
}

/** A message about one connection. */
export interface ConnectionMessage extends PoolMessage {
  readonly connection: unknown;
  /** Counts the connections of the pool, from 1. */
  readonly connectionId: number;
}

/** The messages by the name of their channel. */
export interface PoolChannels {
  'headgate:pool:opened': ConnectionMessage & { readonly dialMs: number };
  'headgate:pool:dial-failed': PoolMessage & {
    readonly error: Error;
    readonly failuresInARow: number;
    readonly dialMs: number;
  };
  'headgate:pool:refill-failed': PoolMessage & {
    readonly cause: RefillCause;
    readonly error: Error;
    readonly failuresInARow: number;
  };
  'headgate:pool:acquired': ConnectionMessage & { readonly waitMs: number };
  'headgate:pool:released': ConnectionMessage & { readonly useMs: number };
  'headgate:pool:discarded': ConnectionMessage & {
    readonly reason: DiscardReason;
    /** Remaining lifetime; Infinity without a maximum lifetime. */
    readonly remainingMs: number;
  };
  'headgate:pool:closed': ConnectionMessage & { readonly reason: DiscardReason };
  'headgate:pool:timeout': PoolMessage & { readonly waitMs: number };
  'headgate:pool:empty': PoolMessage;
  'headgate:pool:fill': PoolMessage & FillProgress;
  'headgate:pool:top-up': PoolMessage & {
    readonly count: number;
    readonly size: number;
    readonly target: number;
  };
  'headgate:pool:leak': ConnectionMessage & { readonly heldMs: number; readonly takenAt: string };
  'headgate:pool:state': PoolMessage & { readonly state: PoolState };
  'headgate:pool:stuck': PoolMessage & {
    /** The waiting call: callers in the queue, `ready()`, or `end()`. */
    readonly waits: 'callers' | 'ready' | 'end';
    readonly waitedMs: number;
    readonly cause: WaitCause;
    /** The text of the process warning. */
    readonly text: string;
  };
}

const opened = channel('headgate:pool:opened');
const dialFailed = channel('headgate:pool:dial-failed');
const refillFailed = channel('headgate:pool:refill-failed');
const acquired = channel('headgate:pool:acquired');
const released = channel('headgate:pool:released');
const discarded = channel('headgate:pool:discarded');
const closed = channel('headgate:pool:closed');
const timeout = channel('headgate:pool:timeout');
const empty = channel('headgate:pool:empty');
const fill = channel('headgate:pool:fill');
const topUp = channel('headgate:pool:top-up');
const leak = channel('headgate:pool:leak');
const state = channel('headgate:pool:state');
const stuck = channel('headgate:pool:stuck');

/** True if a subscriber learns of each release. */
export function areReleasesPublished(): boolean {
  return released.hasSubscribers;
}

/** The context for the messages about a caller that goes into the queue; undefined while nobody subscribes to them. */
export function contextForMessages(): CallerContext | undefined {
  return acquired.hasSubscribers || timeout.hasSubscribers ? new CallerContext() : undefined;
}

/** Publishes the events of one pool's engine. Costs next to nothing without subscribers. */
export class ChannelPublisher<C> implements PoolListener<C> {
  readonly #pool: object;
  readonly #poolName: string;
  readonly #shown: (connection: C) => unknown;

  /** `shown`: returns the connection to show in messages, where the engine's is a wrapper. */
  constructor(
    pool: object,
    poolName: string,
    shown: (connection: C) => unknown = (connection) => connection,
  ) {
    this.#pool = pool;
    this.#poolName = poolName;
    this.#shown = shown;
  }

  get wantsAcquires(): boolean {
    return acquired.hasSubscribers;
  }

  get wantsReleases(): boolean {
    return released.hasSubscribers;
  }

  acquired(connection: PooledConnection<C>, waitMs: number, caller: object | undefined): void {
    const publish = (): void => this.#publish(acquired, connection, { waitMs });
    const context = contextOf(caller);
    if (context === undefined) publish();
    else context.runInAsyncScope(publish);
  }

  released(connection: PooledConnection<C>, useMs: number): void {
    this.#publish(released, connection, { useMs });
  }

  opened(connection: PooledConnection<C>, dialMs: number): void {
    this.#publish(opened, connection, { dialMs });
  }

  dialFailed(error: Error, failuresInARow: number, dialMs: number): void {
    this.#publish(dialFailed, undefined, { error, failuresInARow, dialMs });
  }

  refillFailed(cause: RefillCause, error: Error, failuresInARow: number): void {
    this.#publish(refillFailed, undefined, { cause, error, failuresInARow });
  }

  discarded(connection: PooledConnection<C>, reason: DiscardReason): void {
    if (!discarded.hasSubscribers) return;
    this.#publish(discarded, connection, { reason, remainingMs: connection.expiresAt - systemClock.now() });
  }

  closed(connection: PooledConnection<C>): void {
    this.#publish(closed, connection, { reason: connection.reason });
  }

  timedOut(waitMs: number, caller: object): void {
    if (!timeout.hasSubscribers) return;
    const publish = (): void => this.#publish(timeout, undefined, { waitMs });
    const context = contextOf(caller);
    if (context === undefined) publish();
    else context.runInAsyncScope(publish);
  }

  foundEmpty(): void {
    this.#publish(empty, undefined, {});
  }

  filling(progress: FillProgress): void {
    this.#publish(fill, undefined, progress);
  }

  toppingUp(count: number, size: number, target: number): void {
    this.#publish(topUp, undefined, { count, size, target });
  }

  leaked(connection: PooledConnection<C>, heldMs: number): void {
    this.#publish(leak, connection, { heldMs, takenAt: describeHolder(connection.holder) });
  }

  stateChanged(newState: PoolState): void {
    this.#publish(state, undefined, { state: newState });
  }

  /** Warns the process, too: a pool that makes callers wait for long must be noticed without a listener. */
  stuck(report: StuckReport<C>): void {
    const text = stuckText(this.#poolName, report, this.stuckWords());
    warn('HG_POOL_STUCK', text);
    const { waits, waitedMs, cause } = report;
    this.#publish(stuck, undefined, { waits, waitedMs, cause, text });
  }

  /** Texts about connections in use, for a warning. */
  protected stuckWords(): StuckWords<C> {
    return { describe: () => '', placesHint: 'Set leakThreshold to learn where connections are taken.' };
  }

  #publish(to: Channel, connection: PooledConnection<C> | undefined, details: object): void {
    if (!to.hasSubscribers) return;
    const pool = { pool: this.#pool, poolName: this.#poolName };
    const which = connection && {
      connection: this.#shown(connection.connection),
      connectionId: connection.id,
    };
    to.publish({ ...pool, ...which, ...details });
  }
}

/** The call stack at the moment of the checkout, as text. */
function describeHolder(holder: unknown): string {
  if (!(holder instanceof Error)) return 'unknown';
  return (holder.stack ?? '').split('\n').slice(1).join('\n');
}
