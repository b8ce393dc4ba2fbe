/**
 * The declaration of a metric: said once, in a table, and read by everything that exports, shows or documents it. The tables
 * are data; what reads the numbers takes its names from them, so that the compiler knows of a name that is not declared.
 */

/** As OpenTelemetry writes units; `timestamp` is in seconds since 1970, and `1` a switch. */
export type MetricUnit = 's' | 'ms' | 'By' | '1' | 'timestamp' | `{${string}}`;

const unitTexts: Readonly<Record<string, string>> = {
  s: 'seconds',
  ms: 'milliseconds',
  By: 'bytes',
  1: '0 or 1',
  timestamp: 'seconds since 1970',
};

/** A unit as people read it: `connections` for `{connection}`. */
export function unitText(unit: MetricUnit): string {
  const word = unit.replace(/[{}]/g, '');
  return unitTexts[unit] ?? (word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`);
}

export interface MetricDeclaration {
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly unit: MetricUnit;
  /** Its own labels, beside those of the pool, service or process. */
  readonly labels?: readonly string[];
  /** All values of the last label, where they are known. */
  readonly words?: readonly string[];
  /** How the numbers of several processes become one. Default: `sum`. */
  readonly across?: 'sum' | 'max' | 'min';
  readonly help: string;
  readonly normal: string;
  /** With `action`; neither where no value is bad by itself. */
  readonly bad?: string;
  readonly action?: string;
}

export type MetricTable = Readonly<Record<string, MetricDeclaration>>;

/** The part of a declaration that exporters need. */
export interface MetricHead {
  readonly name: string;
  readonly help: string;
  readonly type: MetricDeclaration['type'];
  readonly labels: readonly string[];
  readonly words: readonly string[] | undefined;
  readonly across: 'sum' | 'max' | 'min';
}

export function headOf<Table extends MetricTable>(table: Table, name: keyof Table & string): MetricHead {
  const { help, type, labels = [], words, across = 'sum' } = table[name] as MetricDeclaration;
  return { name, help, type, labels, words, across };
}
