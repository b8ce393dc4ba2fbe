/** The pooler: listens, accepts clients, and shuts down in good order. */
import type { Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { ClassCounts } from '../../core/class-waiters.js';
import type { PoolStats } from '../../core/pool-stats.js';
import { EventLog } from '../../dashboard/event-log.js';
import type { ShownPool } from '../../dashboard/pool-source.js';
import { type Endpoint, showEndpoint } from '../../net/endpoint.js';
import { Listeners } from '../../net/listeners.js';
import { systemClock } from '../../runtime/system.js';
import type { BackendKey } from '../../wire/session-messages.js';
import type { Fleet } from '../budgets/fleet.js';
import type { ReadAhead } from '../clients/read-ahead.js';
import { shuttingDown } from '../clients/session-errors.js';
import { consoleDatabases, type PoolerConfig } from '../config/pooler-config.js';
import { endpointsOf, keepAliveOf, tuningOf } from '../config/socket-settings.js';
import type { Endpoint as MetricsEndpoint } from '../config/special-kinds.js';
import type { PoolerView, ShutdownMode } from '../console/pooler-view.js';
import { ServingError } from '../errors.js';
import { noLog, type PoolerLog } from '../log.js';
import { type FamilyReading, readFamilies, readShares } from '../metrics/family-readings.js';
import { fleetReadings } from '../metrics/fleet-families.js';
import { readHost } from '../metrics/host-families.js';
import { MetricsServer } from '../metrics/metrics-server.js';
import { LoopDelay } from '../metrics/process-reading.js';
import type { BackendPool } from '../servers/backend-pool.js';
import type { MakeIamToken } from '../servers/iam-login.js';
import type { PoolTallySnapshot } from '../servers/pool-tally.js';
import { ClientLogins } from './client-login.js';
import { ConsoleControls } from './console-controls.js';
import { ConsoleView } from './console-view.js';
import { Housekeeping } from './housekeeping.js';
import { readPools, readProcess, stateOf } from './metric-readings.js';
import { type Digest, DigestReader } from './page-digest.js';
import { hasPage, PoolerPage, rememberingLog } from './pooler-page.js';
import type { PoolerFacts } from './pooler-source.js';
import { PoolerState, sendAway, type Visitor } from './pooler-state.js';
import type { Assumed, SharedParts } from './shared-parts.js';
import { giveToGroup } from './socket-group.js';
import { statsDetails } from './stats-line.js';

/** Services of the program that runs the pooler. */
export interface PoolerHost {
  /** Reads the present configuration, for RELOAD on the console. Throws if it is wrong. */
  readConfig?(): PoolerConfig;
  readonly log?: PoolerLog;
  /** Number of log lines that could not be written. */
  lostLogLines?(): number;
  /** Metrics of the program around the pooler, in Prometheus' format, for `/metrics`. */
  moreMetrics?(): Promise<string>;
  readonly makeIamToken?: MakeIamToken;
  /** Limits shared with other poolers, which each server connection needs leave of. Ended with the pooler. */
  readonly fleet?: Fleet | undefined;
  /** Set for one of several processes, which gets its clients from another. */
  readonly shared?: SharedParts;
}

/** One pool in `stats()`. */
export interface ServedPoolStats extends PoolStats {
  readonly database: string;
  readonly user: string;
  readonly tally: PoolTallySnapshot;
  readonly classes: ClassCounts;
}

export interface PoolerStats {
  readonly clients: number;
  readonly waiting: number;
  readonly pinned: number;
  readonly pools: readonly ServedPoolStats[];
}

export interface ShutdownOptions {
  /** Time until all remaining clients are disconnected, in a transaction or not. */
  readonly deadlineMs: number;
  /** `wait_for_clients`: all clients may stay until they disconnect. Default: only those may that keep a server beyond a transaction. */
  readonly mode?: ShutdownMode;
}

const longestMs = 2 ** 31 - 1;
/** Poll interval for the consoles' answers. */
const pollMs = 20;
/** Limit for closing pools, including cleaning after the last clients. */
const closeTimeoutMs = 5_000;
/** Limit for closing pools in an immediate shutdown. */
const hastyCloseMs = 500;

/** Resolves once the pooler listens. Rejects if it can't start: a port is in use, or a file is unusable. */
export async function startPooler(config: PoolerConfig, host: PoolerHost = {}): Promise<Pooler> {
  const pooler = new Pooler(config, host);
  await pooler.open();
  return pooler;
}

export class Pooler {
  /** Settles when the pooler has ended, for whatever reason. */
  readonly stopped: Promise<void>;
  readonly #state: PoolerState;
  readonly #host: PoolerHost;
  readonly #admissions: ClientLogins;
  readonly #listeners: Listeners;
  readonly #statekeeping: Housekeeping;
  readonly #view: ConsoleView;
  readonly #metrics: MetricsServer;
  readonly #loop = new LoopDelay();
  readonly #controls: ConsoleControls;
  readonly #startedAt = Date.now();
  readonly #digests: DigestReader;
  readonly #page: PoolerPage | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #deadlineAt = Number.POSITIVE_INFINITY;
  #isOver = false;
  #tellStopped!: () => void;

  /** Made by `startPooler()`. */
  constructor(config: PoolerConfig, host: PoolerHost) {
    this.#host = host;
    const isAlone = host.shared === undefined;
    const events = new EventLog();
    const log = isAlone && hasPage(config) ? rememberingLog(host.log ?? noLog, events) : host.log;
    this.#state = new PoolerState(config, { ...host, ...(log && { log }) });
    this.#digests = new DigestReader(this.#state);
    this.stopped = new Promise((resolve) => {
      this.#tellStopped = resolve;
    });
    this.#deadline = undefined;
    const controls = new ConsoleControls(this.#state, {
      reload: async () => this.#reloadFromHost(),
      applyConfig: (changed) => this.#state.change(changed),
      shutdown: (mode) => this.#shutdownFor(mode),
    });
    this.#view = new ConsoleView(this.#state, () => this.#listeners.endpoints);
    this.#page = isAlone && hasPage(config) ? this.#makePage(events, controls) : undefined;
    this.#metrics = new MetricsServer(
      {
        state: () => stateOf(this.#state),
        families: () => this.readMetrics(),
        more: host.moreMetrics,
      },
      this.#page,
    );
    const here = { view: this.#view, controls };
    const tools = host.shared?.consoleOf(here) ?? here;
    const admissions = new ClientLogins(this.#state, (role) => ({ role, ...tools }));
    this.#admissions = admissions;
    this.#controls = controls;
    this.#statekeeping = new Housekeeping(this.#state, () => this.#periodEnded());
    this.#listeners = new Listeners({
      endpoints: host.shared === undefined ? endpointsOf(config) : [],
      backlog: config.listen.backlog,
      reusePort: config.listen.reusePort,
      keepAlive: keepAliveOf(config.tcp),
      tuning: tuningOf(config.tcp),
      connected: (transport, _endpoint, hasRoom) => admissions.connected(transport, hasRoom),
      troubled: (trouble) =>
        trouble.reason === 'no_such_address'
          ? this.#state.log('warn', trouble.error.message)
          : this.#state.log('error', `accepting connections: ${trouble.reason}`),
    });
  }

  /** Addresses it listens on, for display. */
  get addresses(): readonly string[] {
    return this.#listeners.endpoints.map(showEndpoint);
  }

  /** The TCP port it listens on; undefined without one. */
  get port(): number | undefined {
    return this.#listeners.endpoints.find(({ kind }) => kind === 'tcp')?.port;
  }

  /** Port of the metrics, once it is open; undefined without one. */
  get metricsPort(): number | undefined {
    return this.#metrics.port;
  }

  /** Path of the page on the metrics address; undefined without a page. */
  get pagePath(): string | undefined {
    return this.#page && `/${this.#page.fragment}`;
  }

  #makePage(events: EventLog, controls: ConsoleControls): PoolerPage {
    return new PoolerPage({
      name: 'headgate',
      version: this.#view.version,
      config: () => this.#state.config,
      digests: (top) => [this.readDigest(top)],
      facts: () => this.#facts(),
      view: () => this.#view,
      controls,
      log: this.#state.log,
      events,
    });
  }

  /** Shows a pool of this program beside the pooler, where there is a page. */
  showPool(pool: ShownPool): void {
    this.#page?.show(pool);
  }

  /** Digest of this process for the page, with at most `top` rows of each list. */
  readDigest(top: number): Digest {
    return this.#digests.read(top);
  }

  #facts(): PoolerFacts {
    const state = this.#state;
    return {
      state: state.isShuttingDown ? 'draining' : state.state,
      pausedDatabases: [...state.pausedDatabases],
      budgets: state.budgets.stats(),
      rebalances: state.shareLog.changes,
      fleet: state.fleet?.stats() ?? [],
      rates: state.rateStats(),
      workers: [
        {
          ...{ number: 1, processId: process.pid, restarts: 0, startedAt: this.#startedAt },
          state: state.isShuttingDown ? 'ending' : 'ready',
        },
      ],
    };
  }

  /** Reads all metrics. */
  async readMetrics(): Promise<FamilyReading[]> {
    const { budgets, shareLog, shared } = this.#state;
    const own = [
      ...(await readFamilies(
        readProcess(this.#state, this.#view.version, this.#loop),
        readPools(this.#state),
        this.#state.config.observability.metricsMaxPools,
      )),
      ...fleetReadings(this.#state.fleet?.stats() ?? []),
    ];
    // With several processes, the supervisor keeps the budgets.
    if (shared !== undefined) return own;
    const shares = readShares({
      budgets: budgets.stats(),
      changes: shareLog.counts,
      most: this.config.observability.metricsMaxPools,
    });
    return [...own, ...shares, ...readHost({ lostLogLines: this.#host.lostLogLines?.() ?? 0 })];
  }

  async open(): Promise<void> {
    const { metricsListen } = this.#state.config.observability;
    if (metricsListen !== undefined) this.#loop.start();
    if (metricsListen !== undefined && this.#host.shared === undefined)
      await this.#openMetrics(metricsListen);
    const { group } = this.#state.config.unixSocket;
    try {
      await this.#listeners.open();
      if (group !== undefined) giveToGroup(this.#listeners.endpoints, group);
    } catch (error) {
      this.#listeners.close();
      this.#metrics.close();
      throw error;
    }
    this.#statekeeping.start();
  }

  /** The present configuration. */
  get config(): PoolerConfig {
    return this.#state.config;
  }

  #periodEnded(): void {
    this.#view.periodEnded();
    const { config, log, sessions } = this.#state;
    if (!config.logging.stats) return;
    const { waiting } = this.stats();
    log('info', 'numbers of the last period', {
      clients: sessions.size,
      waiting,
      ...statsDetails(this.#view.stats()),
    });
  }

  get isShuttingDown(): boolean {
    return this.#state.isShuttingDown;
  }

  /** As PAUSE and RESUME on the console, without waiting for the result. */
  pause(): void {
    if (this.#state.state === 'active')
      this.#controls.pause(undefined, new AbortController().signal).catch(() => {});
  }

  resume(): void {
    this.#controls.resume(undefined);
  }

  // ---- as one of several processes ----------------------------------------------------------------------------------

  /** Nothing is left to do, and no client is accepted, not even to the console. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Takes over a client that another process has accepted and read the first bytes of. */
  adopt(socket: Socket, endpoint: Endpoint, readAhead?: ReadAhead): void {
    this.#listeners.adopt(socket, endpoint, (transport, _endpoint, hasRoom) =>
      this.#admissions.connected(transport, hasRoom, readAhead),
    );
  }

  /** Applies console commands given before this process was started. */
  assume({ state, paused, disabled }: Assumed): void {
    this.#state.state = state;
    for (const database of paused) this.#state.pausedDatabases.add(database);
    for (const database of disabled) this.#state.disabledDatabases.add(database);
  }

  /** Resolves when everything possible about this key is done here. */
  async cancel(key: BackendKey): Promise<void> {
    await this.#state.keys.find(key)?.cancel();
  }

  get pools(): Iterable<BackendPool> {
    return this.#state.pools.pools();
  }

  async #openMetrics(at: MetricsEndpoint): Promise<void> {
    try {
      await this.#metrics.open(at);
      this.#page?.start(this.#metrics.port as number);
    } catch (error) {
      throw new ServingError(
        `Metrics can't be had at ${at.host}:${at.port}: ${(error as Error).message}`,
        error,
      );
    }
  }

  /**
   * Applies another configuration. Clients are disconnected only where it no longer leads to their pool. Rejects and changes
   * nothing if the configuration can't be used.
   */
  async reload(config: PoolerConfig): Promise<void> {
    this.#state.change(config);
  }

  #reloadFromHost(): void {
    const { readConfig } = this.#host;
    if (readConfig === undefined)
      throw new ServingError('There is no configuration that could be read again.');
    this.#state.change(readConfig.call(this.#host));
  }

  /** Views for the console. */
  get view(): PoolerView {
    return this.#view;
  }

  stats(): PoolerStats {
    const { sessions, pools } = this.#state;
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
        classes: countsOf(pool.classes),
        ...pool.stats(),
      })),
    };
  }

  // ---- shutdown ---------------------------------------------------------------------------------------------------

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
    if (mode !== 'wait_for_clients')
      for (const session of state.sessions) session.endWithoutServer(shuttingDown);
    if (isFirst) {
      this.#listeners.keepUnixOnly();
      for (const visitor of state.visitors) if (isLoggingIn(visitor)) sendAway(visitor, shuttingDown);
      state.onceEmpty(() => this.#closePools());
    }
    return this.stopped;
  }

  /** Shutdown from the console, whose client stays until everything else has ended. */
  #shutdownFor(mode: ShutdownMode): Promise<void> {
    return this.shutdown({ deadlineMs: mode === 'immediate' ? 0 : longestMs, mode });
  }

  #endNow(): void {
    for (const session of this.#state.sessions) session.kill(shuttingDown);
    for (const visitor of this.#state.visitors) sendAway(visitor, shuttingDown);
    // Pools may be draining already, with a later deadline.
    for (const pool of this.#state.pools.pools()) pool.drain(systemClock.now() + hastyCloseMs, () => {});
  }

  /** Closes the pools, which have no clients any more. Connections that do not close in good order are destroyed. */
  #closePools(): void {
    this.#statekeeping.stop();
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
    this.#listeners.close();
    this.#page?.close();
    this.#metrics.close();
    this.#loop.stop();
    this.#state.close();
    await this.#consolesAnswered();
    this.#isOver = true;
    for (const console of this.#state.consoles.keys()) console.kill(shuttingDown);
    for (const visitor of this.#state.visitors) sendAway(visitor, shuttingDown);
    // Return this pooler's leases to the others.
    await this.#host.fleet?.end();
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
function isLoggingIn({ loginScope, database = '' }: Visitor): boolean {
  return loginScope !== undefined && !consoleDatabases.includes(database);
}

function countsOf({ regularLent, reservedLent, regularPart, reservedPart }: ClassCounts): ClassCounts {
  return { regularLent, reservedLent, regularPart, reservedPart };
}
