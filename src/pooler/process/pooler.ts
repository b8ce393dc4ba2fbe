/** The pooler: listens, accepts clients, and shuts down in good order. */
import type { Socket } from 'node:net';
import type { ClassCounts } from '../../core/class-waiters.js';
import type { PoolStats } from '../../core/pool-stats.js';
import { EventLog } from '../../dashboard/event-log.js';
import type { ShownPool } from '../../dashboard/pool-source.js';
import { type Endpoint, showEndpoint } from '../../net/endpoint.js';
import { Listeners } from '../../net/listeners.js';
import { Pauses } from '../../runtime/pauses.js';
import type { BackendKey } from '../../wire/session-messages.js';
import type { Fleet } from '../budgets/fleet.js';
import type { ReadAhead } from '../clients/read-ahead.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import { endpointsOf, keepAliveOf, tuningOf } from '../config/socket-settings.js';
import type { Endpoint as MetricsEndpoint } from '../config/special-kinds.js';
import type { PoolerView } from '../console/pooler-view.js';
import { ServingError } from '../errors.js';
import { noLog, type PoolerLog } from '../log.js';
import type { FamilyReading } from '../metrics/family-reading.js';
import { readProcessFamilies, readShares } from '../metrics/family-readings.js';
import { fleetReadings } from '../metrics/fleet-families.js';
import { readHost } from '../metrics/host-families.js';
import { MetricsServer } from '../metrics/metrics-server.js';
import { OtlpExporter } from '../metrics/otlp-exporter.js';
import { otlpTargetOf } from '../metrics/otlp-target.js';
import { type PoolReading, readPool } from '../metrics/pool-reading.js';
import { LoopDelay } from '../metrics/process-reading.js';
import type { BackendPool } from '../servers/backend-pool.js';
import type { MakeIamToken } from '../servers/iam-login.js';
import type { PoolTallySnapshot } from '../servers/pool-tally.js';
import { ClientLogins } from './client-login.js';
import { ConsoleControls } from './console-controls.js';
import { ConsoleView } from './console-view.js';
import { Housekeeping } from './housekeeping.js';
import { readClients, readProcess, stateOf } from './metric-readings.js';
import { type Digest, DigestReader } from './page-digest.js';
import { hasPage, PoolerPage, rememberingLog } from './pooler-page.js';
import { PoolerShutdown, type ShutdownOptions } from './pooler-shutdown.js';
import { mostQuietUsers, type PoolerFacts } from './pooler-source.js';
import { PoolerState } from './pooler-state.js';
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

/** Resolves once the pooler listens. Rejects if it can't start: a port is in use, or a file is unusable. */
export async function startPooler(config: PoolerConfig, host: PoolerHost = {}): Promise<Pooler> {
  const pooler = new Pooler(config, host);
  await pooler.open();
  return pooler;
}

export class Pooler {
  readonly #state: PoolerState;
  readonly #host: PoolerHost;
  readonly #admissions: ClientLogins;
  readonly #listeners: Listeners;
  readonly #statekeeping: Housekeeping;
  readonly #view: ConsoleView;
  readonly #metrics: MetricsServer;
  readonly #otlp: OtlpExporter | undefined;
  readonly #loop = new LoopDelay();
  readonly #controls: ConsoleControls;
  readonly #startedAt = Date.now();
  readonly #digests: DigestReader;
  readonly #page: PoolerPage | undefined;
  readonly #end: PoolerShutdown;

  /** Made by `startPooler()`. */
  constructor(config: PoolerConfig, host: PoolerHost) {
    this.#host = host;
    const isAlone = host.shared === undefined;
    const events = new EventLog();
    const log = isAlone && hasPage(config) ? rememberingLog(host.log ?? noLog, events) : host.log;
    this.#state = new PoolerState(config, { ...host, ...(log && { log }) });
    this.#digests = new DigestReader(this.#state);
    this.#end = new PoolerShutdown(this.#state, {
      takesNoMore: () => this.#listeners.keepUnixOnly(),
      stopping: () => this.#statekeeping.stop(),
      closes: () => this.#close(),
    });
    const controls = new ConsoleControls(this.#state, {
      reload: async () => this.#reloadFromHost(),
      applyConfig: (changed) => this.#state.change(changed),
      shutdown: (mode) => this.#end.shutdownFor(mode),
    });
    this.#view = new ConsoleView(this.#state, () => this.#listeners.endpoints);
    this.#page = isAlone && hasPage(config) ? this.#makePage(events, controls) : undefined;
    this.#metrics = new MetricsServer(
      {
        state: () => stateOf(this.#state),
        families: () => this.readMetrics(),
        more: host.moreMetrics,
      },
      () => this.#state.config.observability.metricsAllowedHosts,
      this.#page,
    );
    const here = { view: this.#view, controls };
    const target = isAlone ? otlpTargetOf(config, this.#view.version) : undefined;
    this.#otlp =
      target && new OtlpExporter(target, { families: () => this.readMetrics(), log: this.#state.log });
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
          ? this.#state.log('warn', 'address not available', { error: trouble.error.message })
          : this.#state.log('error', 'accepting connections disturbed', { reason: trouble.reason }),
    });
  }

  /** Settles when the pooler has ended, for whatever reason. */
  get stopped(): Promise<void> {
    return this.#end.stopped;
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
      digests: async (top) => [await this.readDigest(top)],
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
  readDigest(top: number): Promise<Digest> {
    return this.#digests.read(top);
  }

  #facts(): PoolerFacts {
    const state = this.#state;
    return {
      state: state.isShuttingDown ? 'draining' : state.state,
      pausedDatabases: [...state.pausedDatabases],
      budgets: state.budgets.busyStats(mostQuietUsers),
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
    const { budgets, shareLog, shared, config, series, pools, fleet } = this.#state;
    const pauses = new Pauses();
    await pauses.pause();
    const clients = await readClients(this.#state, pauses);
    const most = config.observability.metricsMaxPools;
    const read = (pool: BackendPool): PoolReading => readPool(pool, clients.get(pool));
    const ofPools = await series.read(pools.pools(), most, read, pauses);
    const present = readProcess(this.#state, this.#view.version, this.#loop);
    await pauses.afterLongStep();
    const ofProcess = await readProcessFamilies(present, pauses);
    const own = [...ofProcess, ...ofPools, ...fleetReadings(fleet?.stats() ?? [])];
    // With several processes, the supervisor keeps the budgets.
    if (shared !== undefined) return own;
    const ofShares = { budgets: budgets.stats(most), changes: shareLog.counts, most };
    const shares = await readShares(ofShares, pauses);
    return [...own, ...shares, ...readHost({ lostLogLines: this.#host.lostLogLines?.() ?? 0 })];
  }

  async open(): Promise<void> {
    const { metricsListen, otlpEndpoint } = this.#state.config.observability;
    if (metricsListen !== undefined || otlpEndpoint !== undefined) this.#loop.start();
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
    this.#otlp?.start();
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
    log('info', 'statistics of the last period', {
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
    return this.#end.isOver;
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
      throw new ServingError('No configuration to reload: the pooler has no source to read it from.');
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
  shutdown(options: ShutdownOptions): Promise<void> {
    return this.#end.shutdown(options);
  }

  #close(): void {
    this.#listeners.close();
    this.#page?.close();
    this.#metrics.close();
    this.#otlp?.stop();
    this.#loop.stop();
  }
}

function countsOf({ regularInUse, reservedInUse, regularPart, reservedPart }: ClassCounts): ClassCounts {
  return { regularInUse, reservedInUse, regularPart, reservedPart };
}
