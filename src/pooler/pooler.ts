/** The pooler: listens, lets clients in, and stops in good order. */
import type { PoolStats } from '../core/pool-stats.js';
import { systemClock } from '../runtime/system.js';
import type { PoolerView, ShutdownMode } from './admin/pooler-view.js';
import { Admissions } from './admissions.js';
import type { PoolTallySnapshot } from './backend/pool-tally.js';
import type { PoolerConfig } from './config/pooler-config.js';
import { ConsoleControls } from './console-controls.js';
import { ConsoleView } from './console-view.js';
import { ServingError } from './errors.js';
import { House } from './house.js';
import { Housekeeping } from './housekeeping.js';
import type { MakeIamToken } from './pool-book.js';
import { noLog, type PoolerLog } from './pooler-log.js';
import { shuttingDown } from './session/session-errors.js';
import { endpointsOf, keepAliveOf } from './socket-settings.js';
import { showEndpoint } from './transport/endpoint.js';
import { Listeners } from './transport/listeners.js';

/** What the pooler can ask of whoever runs it. */
export interface PoolerHost {
  /** The configuration as it is now, for RELOAD on the console. Throws what is wrong with it. */
  readConfig?(): PoolerConfig;
  readonly log?: PoolerLog;
  readonly makeIamToken?: MakeIamToken;
}

/** One pool in `stats()`. */
export interface ServedPoolStats extends PoolStats {
  readonly database: string;
  readonly user: string;
  readonly tally: PoolTallySnapshot;
}

export interface PoolerStats {
  readonly clients: number;
  readonly waiting: number;
  readonly pinned: number;
  readonly pools: readonly ServedPoolStats[];
}

export interface ShutdownOptions {
  /** Transactions that are not over by then are ended. */
  readonly deadlineMs: number;
  /** `wait_for_clients`: those that do nothing stay until they leave or the deadline is there. Default: they are sent away. */
  readonly mode?: ShutdownMode;
}

const longestMs = 2 ** 31 - 1;
/** Cleaning after the last clients included. */
const closeTimeoutMs = 5_000;

/** Listens when it resolves. Rejects with what is wrong: a port that is taken, a file that can't be used. */
export async function startPooler(config: PoolerConfig, host: PoolerHost = {}): Promise<Pooler> {
  const pooler = new Pooler(config, host);
  await pooler.open();
  return pooler;
}

export class Pooler {
  /** Settles when it has ended, whoever ended it. */
  readonly stopped: Promise<void>;
  readonly #house: House;
  readonly #host: PoolerHost;
  readonly #listeners: Listeners;
  readonly #housekeeping: Housekeeping;
  readonly #view: ConsoleView;
  #deadline: NodeJS.Timeout | undefined;
  #deadlineAt = Number.POSITIVE_INFINITY;
  #tellStopped!: () => void;

  /** Made by `startPooler()`. */
  constructor(config: PoolerConfig, host: PoolerHost) {
    this.#host = host;
    this.#house = new House(config, host.log ?? noLog, host.makeIamToken);
    this.stopped = new Promise((resolve) => {
      this.#tellStopped = resolve;
    });
    this.#deadline = undefined;
    const controls = new ConsoleControls(this.#house, {
      reload: async () => this.#reloadFromHost(),
      applyConfig: (changed) => this.#house.change(changed),
      shutdown: (mode) => this.#shutdownFor(mode),
    });
    this.#view = new ConsoleView(this.#house, () => this.#listeners.endpoints);
    const admissions = new Admissions(this.#house, (role) => ({ role, view: this.#view, controls }));
    this.#housekeeping = new Housekeeping(this.#house, () => this.#view.periodEnded());
    this.#listeners = new Listeners({
      endpoints: endpointsOf(config),
      backlog: config.listen.backlog,
      reusePort: config.listen.reusePort,
      keepAlive: keepAliveOf(config.tcp),
      connected: (transport, _endpoint, hasRoom) => admissions.connected(transport, hasRoom),
      troubled: (trouble) => this.#house.log('error', `accepting connections: ${trouble.reason}`),
    });
  }

  /** Where it listens, for people. */
  get addresses(): readonly string[] {
    return this.#listeners.endpoints.map(showEndpoint);
  }

  /** The TCP port that it has got; undefined without one. */
  get port(): number | undefined {
    return this.#listeners.endpoints.find(({ kind }) => kind === 'tcp')?.port;
  }

  async open(): Promise<void> {
    await this.#listeners.open();
    this.#housekeeping.start();
  }

  /** Works with another configuration; nobody is dropped. Rejects, and goes on as before, if it can't be used. */
  async reload(config: PoolerConfig): Promise<void> {
    this.#house.change(config);
  }

  #reloadFromHost(): void {
    const { readConfig } = this.#host;
    if (readConfig === undefined)
      throw new ServingError('There is no configuration that could be read again.');
    this.#house.change(readConfig.call(this.#host));
  }

  /** What the console shows. */
  get view(): PoolerView {
    return this.#view;
  }

  stats(): PoolerStats {
    const { sessions, pools } = this.#house;
    let waiting = 0;
    let pinned = 0;
    for (const { state, pin } of sessions) {
      if (state === 'waiting') waiting++;
      if (pin !== undefined) pinned++;
    }
    return {
      clients: sessions.size,
      waiting,
      pinned,
      pools: Array.from(pools.pools(), (pool) => ({
        database: pool.database,
        user: pool.user,
        tally: pool.tally.snapshot(),
        ...pool.stats(),
      })),
    };
  }

  // ---- the end ----------------------------------------------------------------------------------------------------

  /** Takes no more clients, lets transactions end, and resolves when nothing is left. A second call may be more impatient. */
  shutdown({ deadlineMs, mode = 'wait_for_servers' }: ShutdownOptions): Promise<void> {
    const house = this.#house;
    const at = systemClock.now() + deadlineMs;
    const isFirst = !house.isShuttingDown;
    house.isShuttingDown = true;
    if (at < this.#deadlineAt) {
      this.#deadlineAt = at;
      clearTimeout(this.#deadline);
      this.#deadline = setTimeout(() => this.#endNow(), deadlineMs);
    }
    if (isFirst) {
      this.#listeners.pause();
      if (mode !== 'wait_for_clients')
        for (const session of house.sessions) session.endWhenIdle(shuttingDown);
      house.onceEmpty(() => this.#closePools());
    }
    return this.stopped;
  }

  /** From the console, which stays until nobody else is waited for. */
  #shutdownFor(mode: ShutdownMode): Promise<void> {
    return this.shutdown({ deadlineMs: mode === 'immediate' ? 0 : longestMs, mode });
  }

  #endNow(): void {
    for (const session of this.#house.sessions) session.end(shuttingDown);
    for (const { transport } of this.#house.visitors) transport.destroy();
  }

  /** Nobody needs them any more; what does not close in good order is destroyed. */
  #closePools(): void {
    this.#housekeeping.stop();
    clearTimeout(this.#deadline);
    const pools = [...this.#house.pools.pools()];
    let left = pools.length;
    if (left === 0) this.#finish();
    for (const pool of pools) {
      pool.drain(systemClock.now() + closeTimeoutMs, () => {
        if (--left === 0) this.#finish();
      });
    }
  }

  #finish(): void {
    this.#listeners.close();
    for (const console of this.#house.consoles.keys()) console.end(shuttingDown);
    for (const { transport } of this.#house.visitors) transport.destroy();
    this.#tellStopped();
  }
}
