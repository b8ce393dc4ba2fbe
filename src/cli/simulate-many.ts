/** Many runs of one scenario: which failed, and which was the worst. Only that one is kept. */

import { count, time } from '../simulator/format.js';
import type { SimulationRun } from '../simulator/report/run.js';
import type { SimulationResult } from '../simulator/result.js';

const mostNamed = 10;

export class ManyRuns {
  worst: SimulationRun | undefined;
  #made = 0;
  readonly #failedSeeds: number[] = [];
  readonly #p99s: number[] = [];

  get failed(): number {
    return this.#failedSeeds.length;
  }

  add(run: SimulationRun): void {
    this.#made++;
    if (!run.result.passed) this.#failedSeeds.push(run.result.seed);
    this.#p99s.push(run.result.waits.p99);
    if (this.worst === undefined || isWorse(run.result, this.worst.result)) this.worst = run;
  }

  report(): string {
    const seeds = this.#failedSeeds.slice(0, mostNamed).join(', ');
    const more = this.failed > mostNamed ? ` and ${count(this.failed - mostNamed)} more` : '';
    const failures =
      this.failed === 0 ? 'none failed' : `${count(this.failed)} FAILED (seed ${seeds}${more})`;
    const sorted = this.#p99s.sort((one, other) => one - other);
    const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
    const highest = sorted.at(-1) ?? 0;
    const [low, high] = [
      sorted[Math.floor(sorted.length * 0.05)] ?? 0,
      sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0,
    ];
    const band = `${time(low)} to ${time(high)} in nine of ten runs`;
    const waits =
      highest > 0 ? `; p99 of waits ${time(middle)} usually, ${band}, ${time(highest)} at most` : '';
    return `${count(this.#made)} runs, ${failures}${waits}. The worst was seed ${this.worst?.result.seed}:`;
  }
}

/** Broken laws count for most, then broken assertions, then what callers felt, then how long it took. */
function isWorse(one: SimulationResult, other: SimulationResult): boolean {
  const [left, right] = [badness(one), badness(other)];
  const index = left.findIndex((value, i) => value !== right[i]);
  return index !== -1 && (left[index] as number) > (right[index] as number);
}

function badness({ laws, assertions, waits, services, faults }: SimulationResult): number[] {
  return [
    laws.length,
    assertions.filter(({ passed }) => !passed).length,
    waits.failed,
    waits.p99,
    Math.max(0, ...faults.map(({ recoveredAtMs, untilMs }) => (recoveredAtMs ?? Number.MAX_VALUE) - untilMs)),
    Math.max(0, ...services.map(({ convergedAtMs }) => convergedAtMs ?? Number.MAX_VALUE)),
  ];
}
