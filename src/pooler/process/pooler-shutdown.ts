/**
 * The end of a pooler: accepts no more clients, lets transactions end, and closes everything when no client is left, or at the
 * deadline.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../runtime/system.js';
import { shutDown, shuttingDown } from '../clients/session-errors.js';
import { consoleDatabases } from '../config/pooler-config.js';
import type { ShutdownMode } from '../console/pooler-view.js';
import { endLogin, type PendingClient } from './pending-clients.js';
import type { PoolerState } from './pooler-state.js';

export interface ShutdownOptions {
  /** Time until all remaining clients are disconnected, in a transaction or not. */
  readonly deadlineMs: number;
  /** `wait_for_clients`: all clients may stay until they disconnect. Default: only those may that keep a server beyond a transaction. */
  readonly mode?: ShutdownMode;
}

const longestMs = 2 ** 31 - 1;
/** Poll interval for the consoles' answers. */
const pollMs = 20;
/** Interval at which PgBouncer looks whether a client has a server. */
const watchMs = 333;
/** Limit for closing pools, including cleaning after the last clients. */
const closeTimeoutMs = 5_000;
/** Limit for closing pools in an immediate shutdown. */
const hastyCloseMs = 500;

/** Parts of the pooler besides its state. */
export interface EndingParts {
  /** Accepts clients of the console only. */
  takesNoMore(): void;
  /** No client is left: periodic work ends. */
  stopping(): void;
  /** Closes all that listens. */
  closes(): void;
}

export class PoolerShutdown {
  /** Settles when the pooler has ended, for whatever reason. */
  readonly stopped: Promise<void>;
  readonly #state: PoolerState;
  readonly #parts: EndingParts;
  #deadline: NodeJS.Timeout | undefined;
  /** Looks for servers in use, during a shutdown that waits for them. */
  #watch: NodeJS.Timeout | undefined;
  #deadlineAt = Number.POSITIVE_INFINITY;
  #isOver = false;
  #tellStopped!: () => void;

  constructor(state: PoolerState, parts: EndingParts) {
    this.#state = state;
    this.#parts = parts;
    this.stopped = new Promise((resolve) => {
      this.#tellStopped = resolve;
    });
  }

  /** Nothing is left to do, and no client is accepted, not even to the console. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Accepts no more clients, lets transactions end, and resolves when nothing is left. A second call may set an earlier deadline. */
  shutdown({ deadlineMs, mode = 'wait_for_servers' }: ShutdownOptions): Promise<void> {
    const state = this.#state;
    const at = systemClock.now() + deadlineMs;
    const isFirst = !state.isShuttingDown;
    state.isShuttingDown = true;
    if (at < this.#deadlineAt) {
      this.#deadlineAt = at;
      clearTimeout(this.#deadline);
      this.#deadline = setTimeout(() => this.#endNow(), deadlineMs);
    }
    if (state.isPgBouncer) {
      if (mode === 'wait_for_servers') this.#waitForServers();
    } else if (mode !== 'wait_for_clients')
      for (const session of state.sessions) session.endWithoutServer(shuttingDown);
    if (isFirst) {
      this.#parts.takesNoMore();
      for (const pending of state.pendingClients) if (isLoggingIn(pending)) endLogin(pending, shuttingDown);
      state.onceEmpty(() => this.#closePools());
    }
    return this.stopped;
  }

  /** Shutdown from the console, whose client stays until everything else has ended. */
  shutdownFor(mode: ShutdownMode): Promise<void> {
    return this.shutdown({ deadlineMs: mode === 'immediate' ? 0 : longestMs, mode });
  }

  /** As PgBouncer: idle clients stay until they ask for a server, and all of them go once no client has one. */
  #waitForServers(): void {
    const { pools, sessions } = this.#state;
    for (const pool of pools.pools()) pool.pause();
    const look = (): void => {
      for (const session of sessions) session.endOnDemand(shuttingDown);
      if ([...sessions].some(({ backend, replication }) => backend !== undefined || replication !== 'none'))
        return;
      clearInterval(this.#watch);
      this.#endNow();
    };
    this.#watch ??= setInterval(look, watchMs);
  }

  #endNow(): void {
    for (const session of this.#state.sessions) session.kill(shutDown);
    for (const pending of this.#state.pendingClients) endLogin(pending, shuttingDown);
    // Pools may be draining already, with a later deadline.
    for (const pool of this.#state.pools.pools()) pool.drain(systemClock.now() + hastyCloseMs, () => {});
  }

  /** Closes the pools, which have no clients any more. Connections that do not close in good order are destroyed. */
  #closePools(): void {
    this.#parts.stopping();
    const pools = [...this.#state.pools.pools()];
    let left = pools.length;
    if (left === 0) void this.#finish();
    for (const pool of pools) {
      pool.drain(systemClock.now() + closeTimeoutMs, () => {
        if (--left === 0) void this.#finish();
      });
    }
  }

  async #finish(): Promise<void> {
    clearTimeout(this.#deadline);
    clearInterval(this.#watch);
    this.#parts.closes();
    this.#state.close();
    await this.#consolesAnswered();
    this.#isOver = true;
    for (const console of this.#state.consoles.keys()) console.kill(shuttingDown);
    for (const pending of this.#state.pendingClients) endLogin(pending, shuttingDown);
    // Return this pooler's leases to the others.
    await this.#state.fleet?.end();
    this.#tellStopped();
  }

  /** Waits until console clients have their answers, which await this shutdown or that of other processes. */
  async #consolesAnswered(): Promise<void> {
    const { consoles } = this.#state;
    const isAwaited = (): boolean => [...consoles.keys()].some(({ isRunning }) => isRunning);
    // This may run within the console command that asks for it.
    await nextTurn();
    while (isAwaited() && systemClock.now() < this.#deadlineAt) await sleep(pollMs);
  }
}

/** A login to a database. The console stays open. */
function isLoggingIn({ loginScope, database = '' }: PendingClient): boolean {
  return loginScope !== undefined && !consoleDatabases.includes(database);
}
