/** What metrics say of the process at one moment. */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '../../runtime/system.js';
import type { RunState } from '../console/pooler-view.js';
import type { PoolerState } from '../process/pooler-state.js';
import type { LoginTally } from './login-tally.js';

export interface ProcessReading {
  readonly version: string;
  readonly state: RunState | 'shutting_down';
  readonly startedAtMs: number;
  readonly clients: number;
  readonly clientLimit: number;
  readonly loggingIn: number;
  readonly consoles: number;
  readonly logins: LoginTally;
  readonly memory: NodeJS.MemoryUsage;
  readonly cpuMicros: number;
  /** By quantile, in seconds. */
  readonly loopDelay: Readonly<Record<string, number>>;
}

export function stateOf({ isShuttingDown, state }: PoolerState): ProcessReading['state'] {
  return isShuttingDown ? 'shutting_down' : state;
}

export function readProcess(pooler: PoolerState, version: string, loop: LoopDelay): ProcessReading {
  const { user, system } = process.cpuUsage();
  return {
    version,
    state: stateOf(pooler),
    startedAtMs: Date.now() - process.uptime() * 1_000,
    clients: pooler.sessions.size,
    clientLimit: pooler.config.limits.maxClientConn,
    loggingIn: pooler.visitors.size,
    consoles: pooler.consoles.size,
    logins: pooler.logins,
    memory: process.memoryUsage(),
    cpuMicros: user + system,
    loopDelay: loop.read(),
  };
}

/** Who asks more often sees the same times again, and whoever else asks loses none. */
const shortestWindowMs = 10_000;
const resolutionMs = 20;
const perSecond = 1_000_000_000;

/** How late the event loop is, measured while somebody may ask for it. */
export class LoopDelay {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });
  #since = systemClock.now();

  start(): void {
    this.#histogram.enable();
  }

  stop(): void {
    this.#histogram.disable();
  }

  /** Of the last seconds; what the timer itself takes is not counted. */
  read(): Readonly<Record<string, number>> {
    const histogram = this.#histogram;
    const late = (nanoseconds: number): number =>
      Math.max(0, nanoseconds / perSecond - resolutionMs / 1_000) || 0;
    const delay = {
      '0.5': late(histogram.percentile(50)),
      '0.99': late(histogram.percentile(99)),
      '1': late(histogram.max),
    };
    const now = systemClock.now();
    if (now - this.#since >= shortestWindowMs) {
      this.#since = now;
      histogram.reset();
    }
    return delay;
  }
}
