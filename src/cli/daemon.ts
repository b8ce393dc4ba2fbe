/** `-d`: the pooler goes on in the background, and the command ends when it listens, or with what was in the way. */
import { spawn } from 'node:child_process';
import type { PoolerConfig } from '../pooler/config/pooler-config.js';
import type { Terminal } from './terminal.js';
import { exitCodes, UsageError } from './usage-error.js';

/** Set for the process in the background. */
const variable = 'HEADGATE_IS_DAEMON';

const isInBackground = process.env[variable] === '1';
// Not an option, and nothing for the processes that this one starts.
delete process.env[variable];

export function isDaemon(): boolean {
  return isInBackground;
}

/** To the command that waits for it. */
export function tellDaemonReady(): void {
  if (!isDaemon()) return;
  process.send?.('ready');
  if (process.connected) process.disconnect();
}

/** Starts this command once more, detached from the terminal. Answers the exit code. */
export function beDaemon({ logging }: PoolerConfig, terminal: Terminal): Promise<number> {
  if (logging.file === undefined && !logging.syslog)
    throw new UsageError('a daemon needs logfile or syslog: its log has no other place to go');
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...process.env, [variable]: '1' },
  });
  return new Promise((resolve) => {
    child.stderr?.on('data', (text) => terminal.err(String(text)));
    child.once('message', () => {
      child.disconnect();
      child.stderr?.destroy();
      child.unref();
      resolve(exitCodes.good);
    });
    child.once('close', (code) => resolve(code ?? exitCodes.failed));
    child.once('error', (error) => {
      terminal.err(`headgate: the background process could not be started: ${error.message}\n`);
      resolve(exitCodes.failed);
    });
  });
}
