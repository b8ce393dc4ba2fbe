/**
 * The pooler in several processes: workers serve clients, and the supervisor keeps what they share. It listens, counts slots
 * and clients, passes on messages between workers, and replaces workers that die. No query passes through it.
 */

import { EventLog } from '../../dashboard/event-log.js';
import type { DialOptions } from '../../net/connect-transport.js';
import { headgateVersion } from '../../observe/version.js';
import { LocalRates, ratesOf } from '../budgets/connection-rates.js';
import { quotasOf } from '../budgets/quotas.js';
import { ServerBudgets } from '../budgets/server-budgets.js';
import { ShareLog } from '../budgets/share-log.js';
import { Authenticator, AuthenticatorMemory } from '../clients/login/authenticator.js';
import { clientTlsOf, ServerTlsContexts } from '../clients/login/tls-contexts.js';
import { diffConfig } from '../config/config-diff.js';
import { serverTlsFor } from '../config/pool-settings.js';
import { databaseFor, type PoolerConfig } from '../config/pooler-config.js';
import type { Endpoint as MetricsEndpoint } from '../config/special-kinds.js';
import { ServingError } from '../errors.js';
import { noLog, type PoolerLog } from '../log.js';
import { AllWorkersControls } from '../messages/all-workers-controls.js';
import { WorkerCallError } from '../messages/calls.js';
import { encodeConfig } from '../messages/config-codec.js';
import type { ControlMessage } from '../messages/control-message.js';
import { MergedView } from '../messages/merged-view.js';
import { MetricsServer } from '../metrics/metrics-server.js';
import { OtlpExporter } from '../metrics/otlp-exporter.js';
import { otlpTargetOf } from '../metrics/otlp-target.js';
import type { PoolerHost } from '../process/pooler.js';
import { hasPage, PoolerPage, rememberingLog } from '../process/pooler-page.js';
import type { ShutdownOptions } from '../process/pooler-shutdown.js';
import { giveToGroup } from '../process/socket-group.js';
import { ClientAcceptor } from './client-acceptor.js';
import { ClientPlacement } from './client-placement.js';
import { ClientPlaces } from './client-places.js';
import { clientPoolOf, workersFor } from './client-pool.js';
import { ConsoleCommands } from './console-commands.js';
import { readSocketTable } from './kernel-sockets.js';
import { OrphanCare } from './orphan-care.js';
import { SlotBroker } from './slot-broker.js';
import { SupervisorReadings } from './supervisor-readings.js';
import type { WorkerProcess } from './worker-process.js';
import { WorkerQuestions } from './worker-questions.js';
import { WorkerSet } from './worker-set.js';

export interface SupervisorOptions {
  /** Number of workers. */
  readonly workers: number;
  /** Program of a worker, which calls `runWorker()`. */
  readonly entry: URL;
}

/** Time beyond its deadline that a worker may take to close its connections, before it is killed. */
const closeTimeoutMs = 10_000;
const processQuestionMs = 1_500;
const longestMs = 2 ** 31 - 1;

/** Resolves once the pooler serves. Rejects if it can't start: a port is in use, or a file is unusable. */
export async function startSupervisor(
  config: PoolerConfig,
  host: PoolerHost,
  options: SupervisorOptions,
): Promise<Supervisor> {
  const supervisor = new Supervisor(config, host, options);
  await supervisor.open();
  return supervisor;
}

export class Supervisor {
  readonly stopped: Promise<void>;
  readonly #options: SupervisorOptions;
  readonly #host: PoolerHost;
  readonly #log: PoolerLog;
  readonly #door: ClientAcceptor;
  readonly #metrics: MetricsServer;
  readonly #otlp: OtlpExporter | undefined;
  readonly #page: PoolerPage | undefined;
  readonly #readings: SupervisorReadings;
  readonly #questions: WorkerQuestions;
  readonly #slots: SlotBroker;
  readonly #clients: ClientPlaces;
  readonly #controls: ConsoleCommands;
  readonly #orphans: OrphanCare;
  readonly #serverTls = new ServerTlsContexts();
  readonly #workers: WorkerSet;
  /** `changes` of the console commands when the worker was started. */
  readonly #learned = new WeakMap<WorkerProcess, number>();
  #config: PoolerConfig;
  #deadline: NodeJS.Timeout | undefined;
  #tellStopped!: () => void;

  /** Made by `startSupervisor()`. */
  constructor(config: PoolerConfig, host: PoolerHost, options: SupervisorOptions) {
    this.#config = config;
    this.#host = host;
    this.#options = options;
    const events = new EventLog();
    const log = host.log ?? noLog;
    this.#log = hasPage(config) ? rememberingLog(log, events) : log;
    this.#serverTls.use(usable(config));
    this.#door = new ClientAcceptor({
      log: this.#log,
      config: () => this.#config,
      poolOf: (user, database) => clientPoolOf(this.#config, user, database),
      placement: new ClientPlacement((pool, newcomers) => workersFor(this.#slots.budgets, pool, newcomers)),
    });
    this.#page = hasPage(config) ? this.#makePage(events) : undefined;
    this.#metrics = new MetricsServer(
      {
        state: () => (this.#workers.isEnding ? 'shutting_down' : this.#controls.state),
        families: () => this.#readings.metrics(),
      },
      () => this.#config.observability.metricsAllowedHosts,
      this.#page,
    );
    const target = otlpTargetOf(config, headgateVersion);
    this.#otlp =
      target && new OtlpExporter(target, { families: () => this.#readings.metrics(), log: this.#log });
    const shareLog = new ShareLog(this.#log);
    this.#slots = new SlotBroker(
      new ServerBudgets(
        quotasOf(config),
        (budget, rebalance) => shareLog.rebalanced(budget, rebalance),
        host.fleet,
      ),
    );
    const rates = new LocalRates(ratesOf(config));
    this.#clients = new ClientPlaces(() => this.#config);
    this.#controls = new ConsoleCommands({
      size: options.workers,
      workers: () => this.#workers.serving,
      everyWorker: () => this.#workers.all,
      slots: this.#slots,
      shareLog,
      fleet: () => host.fleet?.stats() ?? [],
      reload: () => this.#reloadFromHost(),
      applyConfig: (next) => this.reload(next),
      ending: () => this.#stopTaking(),
    });
    const shared = { workers: () => this.#workers, controls: this.#controls, rates };
    this.#readings = new SupervisorReadings({
      ...{ ...shared, host, shareLog, slots: this.#slots },
      config: () => this.#config,
    });
    this.#questions = new WorkerQuestions({ ...shared, size: options.workers });
    this.#orphans = new OrphanCare({
      log: this.#log,
      tlsFor: (database) => this.#tlsFor(database),
      knownServer: (ends) => this.#slots.knownServers.of(ends),
      readSocketTable,
      whichAreThere: ({ host, port, path }, processIds) =>
        this.#firstNumbers('there', { host, port, path, processIds }),
      whichPortsAreThere: (question) => this.#firstNumbers('ports', question),
    });
    this.#workers = new WorkerSet({
      size: options.workers,
      log: this.#log,
      partsOf: (number) => ({
        entry: options.entry,
        slotsOf: (send) => this.#slots.slotsOf(number, send),
        clients: this.#clients.placesOfWorker(),
        questions: this.#questions.questionsOf(number),
        learned: (server, capacity) => this.#slots.budgets.learned(server, capacity),
        dialed: (server, isTooFast) => this.#questions.dialed(server, isTooFast),
        taken: (worker, ticket) => this.#door.taken(worker, ticket),
        clientsGone: (tickets) => this.#door.gone(tickets),
      }),
      began: (worker) => this.#began(worker),
      ready: (worker) => this.#ready(worker),
      ended: (worker) => this.#ended(worker),
      emptied: () => this.#finish(),
    });
    this.stopped = new Promise((resolve) => {
      this.#tellStopped = resolve;
    });
  }

  /** Addresses it listens on, for display. */
  get addresses(): readonly string[] {
    return this.#door.addresses;
  }

  /** Port of the metrics, once it is open; undefined without one. */
  get metricsPort(): number | undefined {
    return this.#metrics.port;
  }

  /** Path of the page on the metrics address; undefined without a page. */
  get pagePath(): string | undefined {
    return this.#page && `/${this.#page.fragment}`;
  }

  #makePage(events: EventLog): PoolerPage {
    return new PoolerPage({
      name: 'headgate',
      version: headgateVersion,
      config: () => this.#config,
      digests: (top) => this.#readings.digests(top),
      facts: () => this.#readings.facts(),
      view: async (wanted) =>
        new MergedView(
          { version: headgateVersion, config: this.#config, isShuttingDown: this.#workers.isEnding },
          await this.#controls.look(wanted),
          this.#door.endpoints,
        ),
      controls: new AllWorkersControls((control, signal = new AbortController().signal) =>
        this.#controls.obey(control, signal),
      ),
      log: this.#log,
      events,
    });
  }

  /** The present configuration. */
  get config(): PoolerConfig {
    return this.#config;
  }

  /** As PAUSE on the console. */
  pause(): void {
    if (this.#controls.state === 'active') this.#obey({ verb: 'pause' });
  }

  resume(): void {
    this.#obey({ verb: 'resume' });
  }

  /** Runs a command whose caller can't wait for it. */
  #obey(control: ControlMessage): void {
    this.#controls
      .obey(control, new AbortController().signal)
      .catch((error: unknown) =>
        this.#log('error', 'command failed', { command: control.verb, error: String(error) }),
      );
  }

  /** Resolves when all workers have started; on failure none is left. */
  async open(): Promise<void> {
    await this.#listen(this.#config);
    try {
      await this.#workers.startAll();
    } catch (error) {
      this.#door.close();
      this.#metrics.close();
      throw error;
    }
    this.#otlp?.start();
  }

  async #listen(config: PoolerConfig): Promise<void> {
    const { metricsListen } = config.observability;
    const { group } = config.unixSocket;
    try {
      if (metricsListen !== undefined) await this.#openMetrics(metricsListen);
      await this.#door.open(config);
      if (group !== undefined) giveToGroup(this.#door.endpoints, group);
    } catch (error) {
      this.#door.close();
      this.#metrics.close();
      throw error;
    }
  }

  async #openMetrics(at: MetricsEndpoint): Promise<void> {
    try {
      await this.#metrics.open(at);
      this.#page?.start(this.#metrics.port as number);
    } catch (error) {
      const { message } = error as Error;
      throw new ServingError(`Metrics can't be had at ${at.host}:${at.port}: ${message}`, error);
    }
  }

  // ---- workers ----------------------------------------------------------------------------------------------------

  #began(worker: WorkerProcess): void {
    const { state, paused, disabled, changes } = this.#controls;
    this.#learned.set(worker, changes);
    worker.begin({
      worker: worker.number,
      workers: this.#options.workers,
      config: encodeConfig(this.#config),
      state,
      paused: [...paused],
      disabled: [...disabled],
      endpoints: this.#door.endpoints,
    });
  }

  /** Console commands given while the worker started did not reach it. */
  #ready(worker: WorkerProcess): boolean {
    if (this.#learned.get(worker) !== this.#controls.changes) return false;
    this.#door.joined(worker);
    return true;
  }

  /** Returns the number of slots that the worker has left behind. */
  #ended(worker: WorkerProcess): number {
    this.#door.left(worker);
    const left = worker.slots.close();
    const held = left.reduce((sum, pool) => sum + pool.held, 0);
    if (held > 0) void this.#orphans.take(worker.number, left);
    return held;
  }

  // ---- remains of dead workers ------------------------------------------------------------------------------------

  #tlsFor(database: string): DialOptions['tls'] {
    const known = databaseFor(this.#config, database);
    return known && this.#serverTls.tlsOf(serverTlsFor(this.#config, known));
  }

  /** The answer of the first worker that has one. */
  async #firstNumbers(what: 'there' | 'ports', question: object): Promise<ReadonlySet<number> | undefined> {
    for (const { calls } of this.#workers.serving) {
      const answer = await calls.ask(what, question, { timeoutMs: processQuestionMs }).catch(() => undefined);
      if (Array.isArray(answer)) return new Set(answer as number[]);
    }
    return undefined;
  }

  // ---- another configuration --------------------------------------------------------------------------------------

  async #reloadFromHost(): Promise<void> {
    const { readConfig } = this.#host;
    if (readConfig === undefined)
      throw new ServingError('No configuration to reload: the pooler has no source to read it from.');
    await this.reload(readConfig.call(this.#host));
  }

  /** Applies another configuration in all workers. Rejects, and changes nothing, if it can't be used. */
  async reload(next: PoolerConfig): Promise<void> {
    const { config } = diffConfig(this.#config, next);
    this.#serverTls.use(usable(config));
    this.#config = config;
    this.#controls.changes++;
    this.#slots.budgets.change(quotasOf(config));
    const body = { config: encodeConfig(config) };
    const workers = this.#workers.serving;
    const outcomes = await Promise.allSettled(workers.map(({ calls }) => calls.ask('reload', body)));
    // A worker that has ended meanwhile is replaced by one that starts with the new configuration.
    const failed = outcomes.find(
      (outcome) => outcome.status === 'rejected' && !(outcome.reason instanceof WorkerCallError),
    );
    if (failed?.status === 'rejected') throw failed.reason;
  }

  // ---- shutdown ---------------------------------------------------------------------------------------------------

  /**
   * Accepts no more clients, lets transactions end, and resolves when all workers have ended. A second call may set an earlier
   * deadline.
   */
  shutdown({ deadlineMs, mode = 'wait_for_servers' }: ShutdownOptions): Promise<void> {
    this.#stopTaking();
    for (const worker of this.#workers.all) worker.shutdown(deadlineMs, mode);
    clearTimeout(this.#deadline);
    const longest = Math.min(longestMs, deadlineMs + closeTimeoutMs);
    this.#deadline = setTimeout(() => this.#workers.kill(), longest).unref();
    return this.stopped;
  }

  #stopTaking(): void {
    this.#door.keepUnixOnly();
    this.#workers.end();
  }

  #finish(): void {
    this.#door.close();
    this.#page?.close();
    this.#metrics.close();
    this.#otlp?.stop();
    clearTimeout(this.#deadline);
    this.#slots.stop();
    void this.#endFleet();
  }

  /** Returns this pooler's leases to the others. */
  async #endFleet(): Promise<void> {
    await this.#host.fleet?.end();
    this.#tellStopped();
  }
}

/** Throws if a pooler could not be started with this configuration. Returns its TLS contexts for servers. */
function usable(config: PoolerConfig): ReturnType<ServerTlsContexts['prepare']> {
  clientTlsOf(config.clientTls);
  new Authenticator(config, new AuthenticatorMemory(), async () => undefined);
  const configs = Array.from(config.databases.values(), (database) => serverTlsFor(config, database));
  return new ServerTlsContexts().prepare(configs);
}
