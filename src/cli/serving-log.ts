/** The log of a pooler's life: start, reload, pause and shutdown, as events with fields or in PgBouncer's words. */
import { formatDuration } from '../kernel/duration.js';
import { headgateVersion } from '../observe/version.js';
import type { ConfigChange } from '../pooler/config/config-diff.js';
import {
  ConfigError,
  describeAsPgBouncer,
  describeAsTlsProblem,
  describeProblem,
} from '../pooler/config/config-problems.js';
import { reloadTexts } from '../pooler/config/option.js';
import { versionText } from '../pooler/console/driver-settings.js';
import type { ShutdownMode } from '../pooler/console/pooler-view.js';
import type { PoolerLog } from '../pooler/log.js';

export interface ServingLog {
  listening(addresses: readonly string[]): void;
  reloadStarted(): void;
  /** The configuration has problems; `reloadFailed` follows where a signal asked for the reload. */
  configRefused(error: unknown): void;
  configRead(changes: readonly ConfigChange[], warnings: readonly string[]): void;
  reloaded(): void;
  reloadFailed(error: unknown): void;
  paused(): void;
  resumed(): void;
  /** A signal without an effect while the pooler shuts down. */
  ignored(signal: string): void;
  shutdownStarted(signal: string, mode: ShutdownMode, deadlineMs: number, isSecond: boolean): void;
}

export function eventLog(log: PoolerLog): ServingLog {
  return {
    listening(addresses) {
      for (const address of addresses) log('info', 'listening', { address });
    },
    reloadStarted() {},
    configRefused() {},
    configRead: (changes, warnings) => logConfigRead(log, changes, warnings),
    reloaded: () => log('info', 'configuration reloaded'),
    reloadFailed: (error) =>
      log('error', 'reload failed', { kept: 'former configuration', ...detailsOf(error) }),
    paused: () => log('info', 'paused', { signal: 'SIGUSR1', resume: 'SIGUSR2, or RESUME on the console' }),
    resumed: () => log('info', 'resumed', { signal: 'SIGUSR2' }),
    ignored: (signal) => log('info', 'signal ignored', { signal, reason: 'shutting_down' }),
    shutdownStarted(signal, mode, deadlineMs) {
      const deadline = mode === 'immediate' ? undefined : formatDuration(deadlineMs);
      log('info', 'shutdown started', { signal, mode, deadline });
    },
  };
}

export function pgbouncerServingLog(log: PoolerLog): ServingLog {
  return {
    ...eventLog(log),
    listening(addresses) {
      for (const address of addresses) log('info', `listening on ${address}`);
      log('info', `process up: ${versionText(headgateVersion)}`);
    },
    reloadStarted: () => log('info', 'got SIGHUP, re-reading config'),
    configRefused(error) {
      if (!(error instanceof ConfigError)) return;
      for (const problem of error.problems) {
        const ofTls = describeAsTlsProblem(problem);
        log(ofTls === undefined ? 'warn' : 'error', ofTls ?? describeAsPgBouncer(problem));
      }
    },
    reloaded() {},
    reloadFailed(error) {
      // Its problems are logged already.
      const details = error instanceof ConfigError ? undefined : detailsOf(error);
      log('warn', 'config file loading failed', details);
    },
    paused: () => log('info', 'got SIGUSR1, pausing all activity'),
    resumed: () => log('info', 'got SIGUSR2, continuing from PAUSE'),
    ignored: (signal) => log('info', `got ${signal} while shutting down, ignoring`),
    shutdownStarted(signal, mode, _deadlineMs, isSecond) {
      const when = isSecond ? `${signal} while shutting down` : signal;
      log('info', `got ${when}, ${shutdownTexts[mode]}`);
    },
  };
}

const shutdownTexts: Readonly<Record<ShutdownMode, string>> = {
  immediate: 'fast exit',
  wait_for_servers: 'shutting down, waiting for all servers connections to be released',
  wait_for_clients: 'shutting down, waiting for all clients disconnect',
};

function logConfigRead(log: PoolerLog, changes: readonly ConfigChange[], warnings: readonly string[]): void {
  for (const warning of warnings) log('warn', 'configuration doubtful', { warning });
  log('info', 'configuration read', { changes: changes.length });
  for (const { path, from, to, effect, why } of changes)
    log('info', 'setting changed', {
      setting: path,
      from,
      to,
      effect: reloadTexts[effect].word,
      reason: why,
    });
}

function detailsOf(error: unknown): { problems?: number; error: string } {
  if (!(error instanceof ConfigError))
    return { error: error instanceof Error ? error.message : String(error) };
  return { problems: error.problems.length, error: error.problems.map(describeProblem).join('; ') };
}
