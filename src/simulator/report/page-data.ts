/** The data of a report's page, as JSON inside of it: drawn by the script in web/src/report/. */

export interface PageData {
  readonly runs: readonly PageRun[];
}

export interface PageRun {
  readonly name: string;
  readonly durationMs: number;
  readonly timeMs: readonly number[];
  readonly charts: readonly PageChart[];
  readonly faults: readonly { readonly name: string; readonly fromMs: number; readonly untilMs: number }[];
}

export interface PageChart {
  readonly title: string;
  readonly unit: string;
  /** `low` is left out where it is the same as `high`. */
  readonly lines: readonly {
    readonly name: string;
    readonly low?: readonly number[] | undefined;
    readonly high: readonly number[];
  }[];
  readonly marks: readonly { readonly name: string; readonly value: number }[];
}
