/** A pooler that runs, and what signals do to it. */

import { formatDuration } from '../kernel/duration.js';
import { transportKind } from '../net/native-streams.js';
import { headgateVersion } from '../observe/version.js';
import { diffConfig, formatDiff } from '../pooler/config/config-diff.js';
import { ConfigError, describeAsPgBouncer, describeAsTlsProblem } from '../pooler/config/config-problems.js';
import { type ConfigRequest, type LoadedConfig, loadConfig } from '../pooler/config/load-config.js';
import type { PoolerConfig } from '../pooler/config/pooler-config.js';
import { endpoint } from '../pooler/config/special-kinds.js';
import { versionText } from '../pooler/console/driver-settings.js';
import type { ShutdownMode } from '../pooler/console/pooler-view.js';
import type { PoolerLog } from '../pooler/log.js';
import type { LogFile } from './log-file.js';
import { serveLog } from './serve-log.js';
import { openSystemLogOf } from './system-log.js';
import type { Terminal } from './terminal.js';

export interface RunningPooler {
  /** Where it listens, for people. */
  readonly addresses: readonly string[];
  /** The configuration in use. */
  readonly config?: PoolerConfig | undefined;
  /** Where metrics are; undefined without any. */
  readonly metricsPort?: number | undefined;
  /** Of the page, after the address of the metrics, with what is needed to log in; undefined without a page. */
  readonly pagePath?: string | undefined;
  reload(config: PoolerConfig): Promise<unknown>;
  /** As on the console. */
  pause?(): void;
  resume?(): void;
  /** Settles when it is over. A second call may bring the deadline forward. */
  shutdown(options: { readonly deadlineMs: number; readonly mode?: ShutdownMode }): Promise<void>;
  /** Takes no more clients, and waits for those that it has. */
  readonly isShuttingDown?: boolean | undefined;
  /** Settles when it has ended by itself, as after SHUTDOWN on the console. */
  readonly stopped?: Promise<void> | undefined;
}

/** The process around a pooler, as the pooler sees it. */
export interface PoolerHost {
  /** The configuration as it is now, for RELOAD on the console. Throws what is wrong with it. */
  readConfig(): PoolerConfig;
  readonly log: PoolerLog;
  /** How many lines of the log could not be written. */
  lostLogLines(): number;
}

export type StartPooler = (config: PoolerConfig, host: PoolerHost) => Promise<RunningPooler>;

type SignalName = 'SIGHUP' | 'SIGTERM' | 'SIGINT' | 'SIGQUIT' | 'SIGUSR1' | 'SIGUSR2';

/** As `process` has it. */
export interface SignalSource {
  on(signal: SignalName, listener: () => void): unknown;
  off(signal: SignalName, listener: () => void): unknown;
}

export interface ServingPlan {
  readonly request: ConfigRequest;
  readonly config: PoolerConfig;
  readonly terminal: Terminal;
  /** Says nothing on the terminal. */
  readonly isQuiet?: boolean;
  readonly file?: LogFile;
  readonly signals: SignalSource;
}

export class Serving {
  /** Settles when the pooler has ended. */
  readonly stopped: Promise<void>;
  readonly #plan: ServingPlan;
  readonly #listeners: readonly [SignalName, () => void][];
  readonly #log: PoolerLog;
  /** Of those that were read, the last one. */
  #last: PoolerConfig;
  #pooler: RunningPooler | undefined;
  #isStopping = false;
  /** One reload after the other, in the order of the signals. */
  #reloads: Promise<void> = Promise.resolve();
  #succeed!: () => void;
  #fail!: (error: unknown) => void;

  constructor(plan: ServingPlan) {
    this.#plan = plan;
    this.#last = plan.config;
    const { terminal, isQuiet = false, file } = plan;
    this.#log = serveLog(
      { terminal, isQuiet, ...(file && { file }), usesSystemLog: openSystemLogOf(plan.config) },
      () => this.#config,
    );
    this.stopped = new Promise((resolve, reject) => {
      this.#succeed = resolve;
      this.#fail = reject;
    });
    this.#listeners = [
      ['SIGHUP', () => this.#reload()],
      ['SIGTERM', () => this.#shutDown(this.#config.admin.sigtermMode)],
      ['SIGINT', () => this.#shutDown('wait_for_servers')],
      ['SIGQUIT', () => this.#shutDown('immediate')],
      ...(process.platform === 'win32' ? [] : this.#pauses),
    ];
  }

  /** There are no such signals on Windows. */
  get #pauses(): [SignalName, () => void][] {
    return [
      ['SIGUSR1', () => this.#pause()],
      ['SIGUSR2', () => this.#resume()],
    ];
  }

  /** SET on the console may have changed it. */
  get #config(): PoolerConfig {
    return this.#pooler?.config ?? this.#last;
  }

  async start(startPooler: StartPooler): Promise<void> {
    const { terminal, signals } = this.#plan;
    const pooler = await startPooler(this.#config, {
      readConfig: () => this.#readConfig(),
      log: this.#log,
      lostLogLines: () => terminal.lost ?? 0,
    });
    this.#pooler = pooler;
    this.#log('info', 'transport chosen', { transport: transportKind() });
    for (const [signal, listener] of this.#listeners) signals.on(signal, listener);
    this.#endWith(pooler.stopped);
    const out = this.#plan.isQuiet === true ? () => {} : (text: string) => terminal.out(text);
    for (const address of pooler.addresses) {
      out(`headgate: listening on ${address}\n`);
      if (this.#isPgBouncer) this.#log('info', `listening on ${address}`);
    }
    if (this.#isPgBouncer) this.#log('info', `process up: ${versionText(headgateVersion)}`);
    const { metricsListen } = this.#config.observability;
    if (metricsListen !== undefined) {
      const at = endpoint.show({ ...metricsListen, port: pooler.metricsPort ?? metricsListen.port });
      out(`headgate: metrics at http://${at}/metrics\n`);
      if (pooler.pagePath !== undefined) out(`headgate: page at http://${at}${pooler.pagePath}\n`);
      else if (this.#config.observability.page)
        this.#log(
          'warn',
          'the page is not served: others can reach metrics_listen, and no page_password is set',
        );
    }
  }

  /** Restart-only settings keep the value that they have. */
  #readConfig(): PoolerConfig {
    const { config, warnings } = this.#loadConfig();
    this.#plan.file?.use(config.logging.file);
    for (const warning of warnings) this.#log('warn', warning);
    const diff = diffConfig(this.#config, config);
    for (const line of formatDiff(diff)) this.#log('info', `reload: ${line}`);
    this.#last = diff.config;
    return diff.config;
  }

  #loadConfig(): LoadedConfig {
    try {
      return loadConfig(this.#plan.request);
    } catch (error) {
      // A RELOAD of the console says, as PgBouncer does, to look here.
      if (this.#isPgBouncer && error instanceof ConfigError)
        for (const problem of error.problems) {
          const ofTls = describeAsTlsProblem(problem);
          this.#log(ofTls === undefined ? 'warn' : 'error', ofTls ?? describeAsPgBouncer(problem));
        }
      throw error;
    }
  }

  get #isPgBouncer(): boolean {
    return this.#plan.config.admin.compatibility === 'pgbouncer';
  }

  #reload(): void {
    this.#reloads = this.#reloads.then(async () => {
      if (this.#isStopping) return;
      try {
        await this.#pooler?.reload(this.#readConfig());
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        this.#log('error', 'not reloaded, the configuration stays as it was');
        for (const line of why.split('\n')) this.#log('error', `  ${line}`);
      }
    });
  }

  #pause(): void {
    if (this.#isStopping) {
      this.#log('info', 'got SIGUSR1 while shutting down, ignoring');
      return;
    }
    this.#log('info', 'pausing: clients wait until SIGUSR2, or RESUME on the console');
    this.#pooler?.pause?.();
  }

  #resume(): void {
    if (this.#isStopping || this.#pooler?.isShuttingDown === true) {
      this.#log('info', 'got SIGUSR2 while shutting down, ignoring');
      return;
    }
    this.#log('info', 'resuming');
    this.#pooler?.resume?.();
  }

  /** The second time it is at once. */
  #shutDown(wanted: ShutdownMode): void {
    const mode = this.#isStopping ? 'immediate' : wanted;
    const deadlineMs = mode === 'immediate' ? 0 : this.#config.timeouts.shutdownTimeout;
    this.#log('info', `stopping ${deadlineMs === 0 ? 'at once' : waits(mode, deadlineMs)}`);
    this.#isStopping = true;
    this.#endWith((this.#pooler as RunningPooler).shutdown({ deadlineMs, mode }));
  }

  /** The first of them to settle is the end. */
  #endWith(over: Promise<void> | undefined): void {
    const deaf = () => {
      for (const [signal, listener] of this.#listeners) this.#plan.signals.off(signal, listener);
    };
    over?.finally(deaf).then(this.#succeed, this.#fail);
  }
}

function waits(mode: ShutdownMode, deadlineMs: number): string {
  const what = mode === 'wait_for_clients' ? 'all clients have left' : 'transactions have ended';
  return `when ${what}, after ${formatDuration(deadlineMs)} in any case; a second signal stops at once`;
}
