/** Many runs of one scenario: which failed, what all of them say together, and which was the worst. Only that one is kept. */

import { count } from '../simulator/format.js';
import type { SimulationRun } from '../simulator/report/run.js';
import { bandColumns, bandRows, SeedBands, type SeedReport } from '../simulator/report/seed-bands.js';
import { columns } from '../simulator/report/terminal-style.js';
import type { SimulationResult } from '../simulator/result.js';

const mostNamed = 10;

export class ManyRuns {
  readonly #seeds: { readonly from: number; readonly to: number };
  readonly #failedSeeds: number[] = [];
  readonly #bands = new SeedBands();
  #worst: SimulationRun | undefined;

  constructor(seeds: { readonly from: number; readonly to: number }) {
    this.#seeds = seeds;
  }

  get failed(): number {
    return this.#failedSeeds.length;
  }

  /** The worst run, with what all of them say together. */
  get worst(): SimulationRun {
    return { ...(this.#worst as SimulationRun), seeds: this.#seedReport() };
  }

  add(run: SimulationRun): void {
    if (!run.result.passed) this.#failedSeeds.push(run.result.seed);
    this.#bands.add(run.result);
    if (this.#worst === undefined || isWorse(run.result, this.#worst.result)) this.#worst = run;
  }

  report(): string {
    const { from, to } = this.#seeds;
    const seeds = this.#failedSeeds.slice(0, mostNamed).join(', ');
    const more = this.failed > mostNamed ? ` and ${count(this.failed - mostNamed)} more` : '';
    const failures =
      this.failed === 0 ? 'none failed' : `${count(this.failed)} FAILED (seed ${seeds}${more})`;
    const table = columns([[...bandColumns], ...bandRows(this.#bands.all)]);
    return [
      `${count(to - from + 1)} runs, ${failures}`,
      ...table,
      '',
      `The worst was seed ${this.#worst?.result.seed}:`,
    ].join('\n');
  }

  #seedReport(): SeedReport {
    return { ...this.#seeds, failed: this.#failedSeeds, bands: this.#bands.all };
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
