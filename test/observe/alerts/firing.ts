// Which alerts fire at the end of a recording, and the same question as a file for promtool.
import { parseDuration } from '../../../src/kernel/duration.js';
import { keyOf, type Labels, promql, type Recorded, type Series } from './promql.js';

export interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
}

/** For each alert that fires at the end, the number of its series. */
export function firing(rules: readonly Rule[], recording: Recorded): Map<string, number> {
  const fired = new Map<string, number>();
  const length = recording.series[0]?.values.length ?? 0;
  for (const { alert, expr, for: least = '0s' } of rules) {
    const names = new Set([...expr.matchAll(/\b(?:dsql|headgate)_\w+/g)].map(([name]) => name));
    const data = { ...recording, series: recording.series.filter(({ name }) => names.has(name)) };
    if (data.series.length === 0) continue;
    const evaluate = promql(expr);
    const needed = Math.ceil((parseDuration(least) ?? 0) / 1_000 / recording.intervalSeconds);
    const active = new Map<string, number>();
    for (let at = 0; at < length; at++) {
      const now = new Set(evaluate(at, data).map(({ labels }) => keyOf(labels)));
      for (const key of active.keys()) if (!now.has(key)) active.delete(key);
      for (const key of now) if (!active.has(key)) active.set(key, at);
    }
    const count = [...active.values()].filter((since) => length - 1 - since >= needed).length;
    if (count > 0) fired.set(alert, count);
  }
  return fired;
}

/** Series that no alert asks for are left out. */
export function promtoolTest(file: string, rules: readonly Rule[], recording: Recorded): object {
  const interval = `${recording.intervalSeconds}s`;
  const asked = rules.map(({ expr }) => expr).join(' ');
  const series = recording.series.filter(({ name }) => asked.includes(name));
  const length = series[0]?.values.length ?? 0;
  return {
    rule_files: [file],
    evaluation_interval: interval,
    tests: [
      {
        interval,
        input_series: series.map((one) => ({
          series: selectorOf(one),
          values: one.values.map(valueText).join(' '),
        })),
        promql_expr_test: [
          {
            expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
            eval_time: `${(length - 1) * recording.intervalSeconds}s`,
            exp_samples: Array.from(firing(rules, recording), ([alertname, value]) => ({
              labels: textOf({ alertname }),
              value,
            })),
          },
        ],
      },
    ],
  };
}

function selectorOf({ name, labels }: Series): string {
  return name + textOf(labels);
}

function textOf(labels: Labels): string {
  return `{${Object.entries(labels)
    .map(([label, word]) => `${label}=${JSON.stringify(word)}`)
    .join(',')}}`;
}

function valueText(value: number): string {
  return Number.isNaN(value) ? '_' : String(value);
}
