/** `headgate dsql-local`: Aurora DSQL on this machine, until a signal ends it. */
import { resolve } from 'node:path';
import type { DsqlLocalOptions } from '../dsql-local/options.js';
import type { DsqlLocal } from '../dsql-local/start-dsql-local.js';
import { HeadgateError, PoolOptionsError } from '../kernel/errors.js';
import { localHelp } from './dsql-local-help.js';
import { type LocalRequest, readLocalFlags, usageErrorOf } from './dsql-local-options.js';
import { reportJson, reportText } from './dsql-local-report.js';
import { programName, readyJson, readyText } from './dsql-local-snippets.js';
import { makeToken } from './dsql-local-token.js';
import type { Terminal } from './terminal.js';
import { exitCodes } from './usage-error.js';

export const dsqlLocalCommand = {
  summary: 'run a stand-in for Aurora DSQL on this machine',
  help: localHelp,
  run(args: readonly string[], terminal: Terminal): number | Promise<number> {
    const [first, ...rest] = args;
    if (first !== 'token') return serve(readLocalFlags(args), terminal);
    terminal.out(`${makeToken(rest, process.env, Date.now())}\n`);
    return exitCodes.good;
  },
};

async function serve({ options, isJson, hasReport }: LocalRequest, terminal: Terminal): Promise<number> {
  const ending = new Ending(terminal);
  try {
    const dsql = await start(options, (error) => ending.troubled(error));
    const report = (): void => terminal.out((isJson ? reportJson : reportText)(dsql.report()));
    ending.onReport(report);
    if (!ending.isAsked) {
      const program = programName(process.argv, process.env['npm_command'] === 'exec');
      terminal.out(isJson ? readyJson(dsql) : readyText(dsql, program));
    }
    const failure = await ending.asked;
    if (hasReport) report();
    await dsql.stop();
    if (failure === undefined) return exitCodes.good;
    return fail(failure, terminal);
  } catch (error) {
    if (error instanceof PoolOptionsError) throw usageErrorOf(error);
    if (!isToMend(error)) throw error;
    return fail(error as Error, terminal);
  } finally {
    ending.close();
  }
}

async function start(
  { dataFolder, ...options }: DsqlLocalOptions,
  onTrouble: (error: unknown) => void,
): Promise<DsqlLocal> {
  const { startDsqlLocal } = await import('../dsql-local/start-dsql-local.js');
  const folder = dataFolder === undefined ? {} : { dataFolder: resolve(dataFolder) };
  return startDsqlLocal({ ...options, ...folder, onTrouble });
}

function fail({ message }: Error, terminal: Terminal): number {
  terminal.err(`headgate: ${message}\n`);
  return exitCodes.failed;
}

/** A port in use, no PostgreSQL, a folder that can't be used. */
function isToMend(error: unknown): boolean {
  if (error instanceof HeadgateError) return error.code !== 'HG_INVARIANT' && error.code !== 'HG_USAGE';
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return error instanceof Error && typeof code === 'string' && /^E[A-Z]+$/.test(code);
}

const endSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** One Ctrl-C comes twice, from the terminal and from npm. */
const sameSignalMs = 1_000;

/** Waits for a signal, or for the end of PostgreSQL. */
class Ending {
  /** Resolves when it is time to stop: with the reason if no signal asked for it. */
  readonly asked: Promise<Error | undefined>;
  readonly #terminal: Terminal;
  readonly #off: (() => void)[] = [];
  #askedAt: number | undefined;
  #end: (failure: Error | undefined) => void = () => {};

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.asked = new Promise((keep) => {
      this.#end = keep;
    });
    for (const signal of endSignals) this.#on(signal, () => this.#signalled());
  }

  get isAsked(): boolean {
    return this.#askedAt !== undefined;
  }

  /** Errors behind the clients' backs are told; without PostgreSQL there is nothing to go on with. */
  troubled(error: unknown): void {
    if (this.isAsked) return;
    const isOver = error instanceof HeadgateError && error.code === 'HG_CLUSTER_ENDED';
    if (isOver) {
      this.#askedAt = performance.now();
      this.#end(error);
    } else {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#terminal.err(`headgate: a session ended with an error: ${text}\n`);
    }
  }

  onReport(report: () => void): void {
    if (process.platform !== 'win32') this.#on('SIGUSR2', report);
  }

  close(): void {
    for (const off of this.#off) off();
  }

  #signalled(): void {
    const now = performance.now();
    // PostgreSQL's guard ends it together with this process.
    if (this.#askedAt !== undefined && now - this.#askedAt > sameSignalMs) process.exit(exitCodes.failed);
    this.#askedAt ??= now;
    this.#end(undefined);
  }

  #on(signal: NodeJS.Signals, listener: () => void): void {
    process.on(signal, listener);
    this.#off.push(() => process.off(signal, listener));
  }
}
