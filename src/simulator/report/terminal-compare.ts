/** Two runs side by side as text for a terminal. */

import { short } from '../format.js';
import { chartsOf } from './charts.js';
import { leftOut, withoutColdStart } from './cold-start.js';
import type { SimulationRun } from './run.js';
import { summaryOf } from './summary.js';
import { telling } from './tenant-shares.js';
import { mostShares, sparkline } from './terminal.js';
import { columns, harmless, plain, type TerminalStyle } from './terminal-style.js';

const chartWidth = 34;

export function terminalComparison(
  one: SimulationRun,
  other: SimulationRun,
  style: TerminalStyle = plain,
): string {
  const whole = [one, other];
  const runs = whole.map(withoutColdStart);
  const verdicts = whole.map(({ result }) => (result.passed ? 'passed' : 'FAILED'));
  const head = ['', ...runs.map(({ result }) => harmless(result.scenario))];
  const rows = [head, ['', ...verdicts], ...summaryRows(runs), ...assertionRows(whole)];
  const charts = [...chartRows(runs), ...shareRows(runs)];
  const note = leftOut(whole);
  const sections = [
    columns(rows),
    ...(note === undefined ? [] : [[harmless(note)]]),
    [style.bold('over time, to the same scale'), ...columns(charts)],
  ];
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

/** Long cells, as of reasons, get a row for each part. */
function summaryRows(runs: readonly SimulationRun[]): string[][] {
  const summaries = runs.map(({ result }) => new Map(summaryOf(result)));
  const labels = [...new Set(summaries.flatMap((summary) => [...summary.keys()]))];
  return labels.flatMap((label) => {
    const parts = summaries.map((summary) => (summary.get(label) ?? '').split(', '));
    const rows = Math.max(...parts.map(({ length }) => length));
    return Array.from({ length: rows }, (_, row) => [
      row === 0 ? label : '',
      ...parts.map((cells) => cells[row] ?? ''),
    ]);
  });
}

function assertionRows(runs: readonly SimulationRun[]): string[][] {
  const names = [...new Set(runs.flatMap(({ result }) => result.assertions.map(({ name }) => name)))];
  return names.map((name) => [
    name,
    ...runs.map(({ result }) => {
      const outcome = result.assertions.find((assertion) => assertion.name === name);
      return outcome === undefined ? 'not asked' : `${outcome.passed ? '✓' : '✗'} ${outcome.actual}`;
    }),
  ]);
}

function chartRows(runs: readonly SimulationRun[]): string[][] {
  const [left, right] = runs.map((run) => chartsOf(run, chartWidth).charts);
  return (left ?? []).flatMap(({ unit, lines }, chart) => {
    const names = new Set([...lines, ...(right?.[chart]?.lines ?? [])].map(({ name }) => name));
    return [...names].flatMap((name) => {
      const pair = [left, right].map(
        (charts) => charts?.[chart]?.lines.find((line) => line.name === name)?.high ?? [],
      );
      const highest = Math.max(0, ...pair.flat());
      if (highest === 0 || name === 'target') return [];
      const curves = pair.map((values) => sparkline(values, highest).padEnd(chartWidth));
      return [[name, `${curves[0]} |`, `${curves[1]} |`, `to ${short(highest)}${unit}`]];
    });
  });
}

function shareRows(runs: readonly SimulationRun[]): string[][] {
  const shares = telling(runs, chartWidth, mostShares);
  const highest = Math.max(0, ...shares.flatMap(({ curves }) => curves.flat()));
  return shares.map(({ label, curves }) => [
    harmless(label),
    ...curves.map((values) => `${sparkline(values, highest).padEnd(chartWidth)} |`),
    `to ${short(Math.max(0, ...curves.flat()))} %`,
  ]);
}
