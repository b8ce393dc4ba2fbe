/** `headgate serve`: reads the configuration, runs the pooler, and passes signals on to it. */
import type { Environment } from '../kernel/environment.js';
import { HeadgateError } from '../kernel/errors.js';
import { headgateVersion } from '../observe/version.js';
import { ConfigError } from '../pooler/config/config-problems.js';
import { explainConfig, formatExplanation, summarize } from '../pooler/config/explain.js';
import { importReport } from '../pooler/config/import-report.js';
import { type ConfigRequest, type LoadedConfig, loadConfig } from '../pooler/config/load-config.js';
import type { PoolerConfig } from '../pooler/config/pooler-config.js';
import { versionText } from '../pooler/console/driver-settings.js';
import { beDaemon, isDaemon, tellDaemonReady } from './daemon.js';
import { fleetVariables } from './fleet-variables.js';
import { LogFile } from './log-file.js';
import { wrongUsage } from './options.js';
import { otelVariables } from './otel-variables.js';
import { PidFile } from './pid-file.js';
import { becomeUser } from './run-as.js';
import { readFlags, type ServeFlags } from './serve-flags.js';
import { serveHelp } from './serve-help.js';
import { type RunningPooler, Serving, type SignalSource, type StartPooler } from './serve-running.js';
import type { Terminal } from './terminal.js';
import { exitCodes } from './usage-error.js';

/** How long a pooler that has stopped waits for a reader of its log. */
const logReaderMs = 1_000;

/** The command's surroundings, handed in so that a test can give them. */
export interface ServeWorld {
  readonly startPooler: StartPooler;
  readonly signals: SignalSource;
  readonly environment: Environment;
  readonly folder: string;
}

export const serveCommand = {
  summary: 'run the pooler',
  help: serveHelp,
  run(args: readonly string[], terminal: Terminal): Promise<number> {
    return serve(args, terminal, {
      startPooler: async (config, host) => (await import('./serve-pooler.js')).startPooler(config, host),
      signals: process,
      environment: process.env,
      folder: process.cwd(),
    });
  },
};

export async function serve(args: readonly string[], terminal: Terminal, world: ServeWorld): Promise<number> {
  const flags = readFlags(args);
  if (flags.version) {
    terminal.out(`${versionText(headgateVersion)}\n`);
    return exitCodes.good;
  }
  if (flags.mistakes.length > 0) throw wrongUsage(flags.mistakes);
  const { environment, folder } = world;
  const ofFleet = fleetVariables(environment);
  const ofOtel = otelVariables(environment);
  const otherVariables = new Map([...ofFleet.otherVariables, ...ofOtel.otherVariables]);
  for (const warning of [...ofFleet.warnings, ...ofOtel.warnings]) terminal.err(`headgate: ${warning}\n`);
  const request = { ...requestOf(flags), environment, otherVariables, folder };
  // The command that waits for the daemon has said it.
  const loaded = load(request, flags.quiet || isDaemon(), terminal);
  if (loaded === undefined) return exitCodes.failed;
  if (flags.explain) terminal.out(formatExplanation(explainConfig(loaded)));
  if (flags.check) {
    const problems = [
      ...(await import('../pooler/process/check-serving.js')).servingProblems(loaded.config),
      ...(await fleetProblems(loaded.config)),
    ];
    if (problems.length > 0) return refuse(problems, terminal);
    if (flags.connect && !(await connectsEverywhere(loaded.config, world, terminal))) return exitCodes.failed;
    const lines = summarize(loaded.config).map((line) => `  ${line}\n`);
    terminal.out(`the configuration is good\n${lines.join('')}`);
  }
  if (flags.check || flags.explain) return exitCodes.good;
  if (flags.daemon && !isDaemon()) return beDaemon(loaded.config, terminal);
  return run(request, loaded, flags.quiet || flags.daemon, terminal, world);
}

function requestOf({ configFile, pgbouncerIni, options }: ServeFlags): ConfigRequest {
  return { configFile, pgbouncerIni, flags: options };
}

async function fleetProblems(config: PoolerConfig): Promise<string[]> {
  try {
    const { prepareFleet } = await import('./serve-fleet.js');
    await prepareFleet(config, () => {});
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

/** A line for each database and user. False if a login to one of them fails for every user. */
async function connectsEverywhere(
  config: PoolerConfig,
  { environment }: ServeWorld,
  terminal: Terminal,
): Promise<boolean> {
  const { checkConnections } = await import('../pooler/process/check-connections.js');
  const { iamTokens } = await import('./iam-tokens.js');
  let areAllGood = true;
  for await (const { database, user, server, ms, error, advice } of checkConnections(
    config,
    iamTokens({ environment }),
  )) {
    if (error === undefined) {
      terminal.out(`${database} as ${user} at ${server}: logged in, ${ms} ms\n`);
      continue;
    }
    areAllGood = false;
    const what = advice === undefined ? '' : ` ${advice}`;
    terminal.err(`headgate: ${database} as ${user} at ${server}: ${error.message}${what}\n`);
  }
  return areAllGood;
}

function refuse(problems: readonly string[], terminal: Terminal): number {
  for (const problem of problems) terminal.err(`headgate: ${problem}\n`);
  return exitCodes.failed;
}

/** Reports problems and returns undefined where there are any. */
function load(request: ConfigRequest, isQuiet: boolean, terminal: Terminal): LoadedConfig | undefined {
  try {
    const loaded = loadConfig(request);
    if (isQuiet) return loaded;
    if (loaded.imported !== undefined)
      for (const line of importReport(loaded.imported)) terminal.err(`headgate: ${line}\n`);
    for (const warning of loaded.warnings) terminal.err(`headgate: ${warning}\n`);
    return loaded;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    terminal.err(`headgate: ${error.message}\n`);
    if (request.configFile === undefined && request.pgbouncerIni === undefined && request.flags?.size === 0)
      terminal.err('headgate: give --config FILE or --pgbouncer-ini FILE; headgate serve --help says more\n');
    return undefined;
  }
}

async function run(
  request: ConfigRequest,
  { config }: LoadedConfig,
  isQuiet: boolean,
  terminal: Terminal,
  world: ServeWorld,
): Promise<number> {
  const pidFile = config.admin.pidFile === undefined ? undefined : new PidFile(config.admin.pidFile);
  const file = new LogFile();
  try {
    pidFile?.refuseIfTaken();
    file.use(config.logging.file);
    const serving = new Serving({ request, config, terminal, isQuiet, file, signals: world.signals });
    await serving.start(async (...parts) => {
      const pooler = await world.startPooler(...parts);
      await noteStart(pooler, pidFile, config.admin.runAs, file);
      return pooler;
    });
    tellDaemonReady();
    await serving.stopped;
    return exitCodes.good;
  } catch (error) {
    if (!isToMend(error)) throw error;
    terminal.err(`headgate: can't run: ${(error as Error).message}\n`);
    return exitCodes.failed;
  } finally {
    pidFile?.remove();
    file.close();
    terminal.leaveLog?.(logReaderMs);
  }
}

/** Not before it listens: one that can't is none that runs. */
async function noteStart(
  pooler: RunningPooler,
  pidFile: PidFile | undefined,
  user: string | undefined,
  log: LogFile,
): Promise<void> {
  try {
    pidFile?.write();
    const sockets = pooler.addresses.filter((address) => address.startsWith('/'));
    becomeUser(user, { log, sockets });
  } catch (error) {
    await pooler.shutdown({ deadlineMs: 0, mode: 'immediate' });
    throw error;
  }
}

/** A port that is taken, a folder that is not there, a file that can't be used: the user's to mend. */
function isToMend(error: unknown): boolean {
  if (error instanceof HeadgateError) return error.code !== 'HG_INVARIANT';
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return error instanceof Error && typeof code === 'string' && /^E[A-Z]+$/.test(code);
}
