/** Control commands of the console. */
import { setTimeout as sleep } from 'node:timers/promises';
import { SqlState } from '../../wire/sql-states.js';
import type { ConnectedClient } from '../clients/relay/connected-client.js';
import { fatal, serverReplaced } from '../clients/session-errors.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { PoolerControls, ShutdownMode } from '../console/pooler-view.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { endLogin } from './pending-clients.js';
import type { PoolerState } from './pooler-state.js';

/** Controls of the process as a whole. */
export interface ProcessControls {
  reload(): Promise<void>;
  applyConfig(config: PoolerConfig): void;
  shutdown(mode: ShutdownMode): Promise<void>;
}

/** Poll interval of commands that wait. */
const pollMs = 20;

export class ConsoleControls implements PoolerControls {
  readonly #pooler: PoolerState;
  readonly #process: ProcessControls;

  constructor(pooler: PoolerState, processControls: ProcessControls) {
    this.#pooler = pooler;
    this.#process = processControls;
  }

  async pause(database: string | undefined, signal: AbortSignal): Promise<void> {
    this.#pauseNow(database);
    await until(() => this.#poolsOf(database).every(hasNothing), signal);
  }

  #pauseNow(database: string | undefined): void {
    if (database === undefined) this.#pooler.state = 'paused';
    else this.#pooler.pausedDatabases.add(database);
    for (const pool of this.#poolsOf(database)) {
      pool.pause();
      pool.reconnect();
    }
    for (const session of this.#pooler.sessions) if (session.pool.isPaused) session.poolPaused();
  }

  resume(database: string | undefined): void {
    const pooler = this.#pooler;
    if (database === undefined) {
      pooler.state = 'active';
      pooler.pausedDatabases.clear();
      pooler.resumeClients();
    } else pooler.pausedDatabases.delete(database);
    for (const pool of this.#poolsOf(database)) if (!pooler.isPaused(pool.database)) pool.resume();
  }

  disable(database: string): void {
    this.#pooler.disabledDatabases.add(database);
  }

  enable(database: string): void {
    this.#pooler.disabledDatabases.delete(database);
  }

  reconnect(database: string | undefined): void {
    for (const pool of this.#poolsOf(database)) pool.reconnect();
    if (!this.#pooler.config.pooling.serverFastClose) return;
    for (const session of this.#sessionsOf(database))
      if (session.mode === 'session') session.endWhenIdle(serverReplaced);
  }

  kill(database: string | undefined): void {
    this.#pauseNow(database);
    for (const session of this.#sessionsOf(database)) session.kill(killed);
    for (const pending of this.#pooler.pendingClients)
      if (pending.database !== undefined && (database === undefined || pending.database === database))
        endLogin(pending, killed);
  }

  killClient(id: number): boolean {
    for (const session of this.#pooler.sessions) {
      if (session.identity.id !== id) continue;
      session.kill(killed);
      return true;
    }
    for (const [session, pending] of this.#pooler.consoles) {
      if (pending.id !== id) continue;
      session.kill(killed);
      return true;
    }
    for (const pending of this.#pooler.pendingClients) {
      if (pending.id !== id) continue;
      endLogin(pending, killed);
      return true;
    }
    return false;
  }

  async waitClose(database: string | undefined, signal: AbortSignal): Promise<void> {
    await until(() => this.#poolsOf(database).every(({ leaving }) => leaving === 0), signal);
  }

  async suspend(signal: AbortSignal): Promise<void> {
    const pooler = this.#pooler;
    const { suspendTimeout } = pooler.config.timeouts;
    pooler.state = 'suspended';
    for (const session of pooler.sessions) session.suspend();
    const began = Date.now();
    const isLate = (): boolean => suspendTimeout > 0 && Date.now() - began >= suspendTimeout;
    const isFlushed = ({ transport, backend }: ConnectedClient): boolean =>
      transport.unsent === 0 && (backend?.transport.unsent ?? 0) === 0;
    await until(() => isLate() || [...pooler.sessions].every(isFlushed), signal);
    for (const session of pooler.sessions) if (!isFlushed(session)) session.kill(killed);
  }

  reload(): Promise<void> {
    return this.#process.reload();
  }

  applyConfig(config: PoolerConfig): void {
    this.#process.applyConfig(config);
  }

  async shutdown(mode: ShutdownMode, signal: AbortSignal): Promise<void> {
    let isOver = false;
    void this.#process.shutdown(mode).then(() => {
      isOver = true;
    });
    // PgBouncer answers when the shutdown begins, not when it is done.
    if (mode !== 'immediate' && this.#pooler.isPgBouncer) return;
    const isAnswered = mode !== 'immediate';
    await until(() => isOver || (isAnswered && this.#pooler.sessions.size === 0), signal);
  }

  #poolsOf(database: string | undefined): BackendPool[] {
    return [...this.#pooler.pools.pools()].filter(
      (pool) => database === undefined || pool.database === database,
    );
  }

  #sessionsOf(database: string | undefined): ConnectedClient[] {
    return [...this.#pooler.sessions].filter(
      ({ identity }) => database === undefined || identity.database === database,
    );
  }
}

const killed = fatal(SqlState.adminShutdown, 'terminating connection due to administrator command');

function hasNothing(pool: BackendPool): boolean {
  const { live, pending, closing } = pool.stats();
  return live + pending + closing + pool.leaving === 0;
}

async function until(isDone: () => boolean, signal: AbortSignal): Promise<void> {
  while (!isDone()) {
    signal.throwIfAborted();
    await sleep(pollMs, undefined, { ref: false, signal }).catch(() => {});
  }
}
