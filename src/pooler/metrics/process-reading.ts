/** Present metrics of the process. */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '../../runtime/system.js';
import type { RunState } from '../console/pooler-view.js';
import type { LoginTally } from './login-tally.js';

export interface ProcessReading {
  readonly version: string;
  readonly state: RunState | 'shutting_down';
  readonly startedAtMs: number;
  readonly clients: number;
  readonly clientLimit: number;
  readonly loggingIn: number;
  readonly consoles: number;
  /** Pools of users and databases. */
  readonly pools: number;
  readonly logins: LoginTally;
  readonly memory: NodeJS.MemoryUsage;
  readonly cpuMicros: number;
  /** Median, 99th percentile and longest, in seconds. */
  readonly loopDelay: Readonly<Record<string, number>>;
}

/** More frequent readers get the same values again, so that no reader takes values from another. */
const shortestWindowMs = 10_000;
const resolutionMs = 20;
const perSecond = 1_000_000_000;

/** Delay of the event loop, measured while it may be read. */
export class LoopDelay {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });
  #since = systemClock.now();

  start(): void {
    this.#histogram.enable();
  }

  stop(): void {
    this.#histogram.disable();
  }

  /** Delay during the last seconds, without the timer's own interval. */
  read(): Readonly<Record<string, number>> {
    const histogram = this.#histogram;
    const late = (nanoseconds: number): number =>
      Math.max(0, nanoseconds / perSecond - resolutionMs / 1_000) || 0;
    const delay = {
      p50: late(histogram.percentile(50)),
      p99: late(histogram.percentile(99)),
      max: late(histogram.max),
    };
    const now = systemClock.now();
    if (now - this.#since >= shortestWindowMs) {
      this.#since = now;
      histogram.reset();
    }
    return delay;
  }
}
