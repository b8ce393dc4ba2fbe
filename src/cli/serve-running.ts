/** A pooler that runs, and what signals do to it. */

import { diffConfig, formatDiff } from '../pooler/config/config-diff.js';
import { ConfigError } from '../pooler/config/config-problems.js';
import { type ConfigRequest, loadConfig } from '../pooler/config/load-config.js';
import type { PoolerConfig } from '../pooler/config/pooler-config.js';
import type { Terminal } from './terminal.js';

export interface RunningPooler {
  /** Where it listens, for people. */
  readonly addresses: readonly string[];
  reload(config: PoolerConfig): Promise<unknown>;
  /** Settles when it is over. A second call may bring the deadline forward. */
  shutdown(options: { readonly deadlineMs: number }): Promise<void>;
  /** Settles when it has ended by itself, as after SHUTDOWN on the console. */
  readonly stopped?: Promise<void> | undefined;
}

/** What the pooler can ask of whoever runs it. */
export interface PoolerHost {
  /** The configuration as it is now, for RELOAD on the console. Throws what is wrong with it. */
  readConfig(): PoolerConfig;
}

export type StartPooler = (config: PoolerConfig, host: PoolerHost) => Promise<RunningPooler>;

type SignalName = 'SIGHUP' | 'SIGTERM' | 'SIGINT' | 'SIGQUIT';

/** As `process` has it. */
export interface SignalSource {
  on(signal: SignalName, listener: () => void): unknown;
  off(signal: SignalName, listener: () => void): unknown;
}

export interface ServingPlan {
  readonly request: ConfigRequest;
  readonly config: PoolerConfig;
  readonly terminal: Terminal;
  readonly signals: SignalSource;
}

export class Serving {
  /** Settles when the pooler is no more. */
  readonly stopped: Promise<void>;
  readonly #plan: ServingPlan;
  readonly #listeners: readonly [SignalName, () => void][];
  #config: PoolerConfig;
  #pooler: RunningPooler | undefined;
  #isStopping = false;
  /** One reload after the other, in the order of the signals. */
  #reloads: Promise<void> = Promise.resolve();
  #succeed!: () => void;
  #fail!: (error: unknown) => void;

  constructor(plan: ServingPlan) {
    this.#plan = plan;
    this.#config = plan.config;
    this.stopped = new Promise((resolve, reject) => {
      this.#succeed = resolve;
      this.#fail = reject;
    });
    this.#listeners = [
      ['SIGHUP', () => this.#reload()],
      ['SIGTERM', () => this.#shutDown(false)],
      ['SIGINT', () => this.#shutDown(false)],
      ['SIGQUIT', () => this.#shutDown(true)],
    ];
  }

  async start(startPooler: StartPooler): Promise<void> {
    const { terminal, signals } = this.#plan;
    const pooler = await startPooler(this.#config, { readConfig: () => this.#readConfig() });
    this.#pooler = pooler;
    for (const [signal, listener] of this.#listeners) signals.on(signal, listener);
    this.#endWith(pooler.stopped);
    for (const address of pooler.addresses) terminal.out(`headgate: listening on ${address}\n`);
  }

  /** Restart-only settings keep the value that they have. */
  #readConfig(): PoolerConfig {
    const { terminal, request } = this.#plan;
    const { config, warnings } = loadConfig(request);
    for (const warning of warnings) terminal.err(`headgate: ${warning}\n`);
    const diff = diffConfig(this.#config, config);
    terminal.err(`headgate: reloaded: ${formatDiff(diff).join('\n  ')}\n`);
    this.#config = diff.config;
    return diff.config;
  }

  #reload(): void {
    this.#reloads = this.#reloads.then(async () => {
      if (this.#isStopping) return;
      try {
        await this.#pooler?.reload(this.#readConfig());
      } catch (error) {
        const why = error instanceof ConfigError ? error.message : String(error);
        this.#plan.terminal.err(`headgate: not reloaded, the configuration stays as it was: ${why}\n`);
      }
    });
  }

  /** The second time it is at once. */
  #shutDown(atOnce: boolean): void {
    const { terminal } = this.#plan;
    const deadlineMs = atOnce || this.#isStopping ? 0 : this.#config.timeouts.shutdownTimeout;
    const wait = deadlineMs === 0 ? 'at once' : 'when transactions have ended; a second signal stops at once';
    terminal.err(`headgate: stopping ${wait}\n`);
    this.#isStopping = true;
    this.#endWith((this.#pooler as RunningPooler).shutdown({ deadlineMs }));
  }

  /** The first of them to settle is the end. */
  #endWith(over: Promise<void> | undefined): void {
    const deaf = () => {
      for (const [signal, listener] of this.#listeners) this.#plan.signals.off(signal, listener);
    };
    over?.finally(deaf).then(this.#succeed, this.#fail);
  }
}
