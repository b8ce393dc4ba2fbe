/** A run as text for a terminal: what held, what did not, what went wrong when, and small charts. */
import { formatDuration } from '../../kernel/duration.js';
import { count, short, time } from '../format.js';
import type { SimulationResult } from '../result.js';
import { type Chart, chartsOf } from './charts.js';
import { findingsOf } from './findings.js';
import type { SimulationRun } from './run.js';
import { faultRow, summaryOf, tenantColumns, tenantRows } from './summary.js';
import { telling } from './tenant-shares.js';
import { columns, harmless, plain, type TerminalStyle } from './terminal-style.js';

const chartWidth = 60;
const mostBreaches = 5;
const mostTenants = 20;
/** Rows for the shares of tenants over time. */
export const mostShares = 8;
const blocks = ' ▁▂▃▄▅▆▇█';

export function terminalReport(run: SimulationRun, style: TerminalStyle = plain): string {
  const { scenario, result } = run;
  const sections = [
    [heading(run, style), ...findingsOf(run).map((finding) => `  ${harmless(finding)}`)],
    columns(summaryOf(result)),
    titled('assertions', assertionLines(result, style), style),
    titled('laws', lawLines(result, style), style),
    titled('faults', faultLines(result), style),
    titled('tenants', tenantLines(result), style),
    titled(`over ${formatDuration(scenario.durationMs)}`, chartLines(run), style),
  ];
  const text = sections.filter((lines) => lines.length > 0).map((lines) => lines.join('\n'));
  return `${text.join('\n\n')}\n`;
}

function titled(title: string, lines: readonly string[], style: TerminalStyle): string[] {
  return lines.length === 0 ? [] : [style.bold(title), ...lines];
}

function heading({ scenario, result }: SimulationRun, style: TerminalStyle): string {
  const verdict = result.passed ? style.good('passed') : style.bad('FAILED');
  const numbers = [
    `seed ${result.seed}`,
    `${count(scenario.services.length)} ${scenario.services.length === 1 ? 'service' : 'services'}`,
    `${time(result.durationMs)} simulated`,
    `${count(result.events)} events`,
  ];
  return `${style.bold(harmless(result.scenario))}: ${verdict}  ${style.quiet(numbers.join(', '))}`;
}

function assertionLines({ assertions }: SimulationResult, style: TerminalStyle): string[] {
  const rows = assertions.map(({ name, expected, actual }) => [
    name,
    actual,
    style.quiet(`expected: ${expected}`),
  ]);
  return columns(rows, ' ').map((line, index) => {
    return ` ${assertions[index]?.passed ? style.good('✓') : style.bad('✗')}${line}`;
  });
}

function lawLines({ laws, events }: SimulationResult, style: TerminalStyle): string[] {
  if (laws.length === 0) return [` ${style.good('✓')} none was broken in ${count(events)} events`];
  const lines = laws.slice(0, mostBreaches).map(({ law, atMs, service, message }) => {
    return ` ${style.bad('✗')} ${time(atMs)}  ${law}${service === undefined ? '' : ` in ${harmless(service)}`}: ${harmless(message)}`;
  });
  return laws.length > mostBreaches ? [...lines, `   and ${count(laws.length - mostBreaches)} more`] : lines;
}

function faultLines({ faults, services }: SimulationResult): string[] {
  return columns(
    faults.map((fault) => {
      const { when, kind, whom, recovered } = faultRow(fault, services.length);
      return [when, kind, harmless(whom), recovered];
    }),
  );
}

function tenantLines(result: SimulationResult): string[] {
  const rows = tenantRows(result);
  if (rows.length < 2) return [];
  const shown = rows.slice(0, mostTenants).map((cells) => cells.map(harmless));
  const lines = columns([[...tenantColumns], ...shown]);
  return rows.length > mostTenants ? [...lines, `  and ${count(rows.length - mostTenants)} more`] : lines;
}

function chartLines(run: SimulationRun): string[] {
  const { charts } = chartsOf(run, chartWidth);
  return columns([...charts.flatMap((chart) => chartRows(chart)), ...shareRows(run)]);
}

/** One row for each line that ever was above 0: its name, its curve, and the highest value. */
function chartRows({ unit, lines, marks }: Chart): string[][] {
  const used = lines.filter(({ name, high }) => name !== 'target' && high.some((value) => value > 0));
  return used.map(({ name, low, high }, index) => {
    const highest = Math.max(...high);
    const limit = index === 0 ? marks[0] : undefined;
    const against = limit === undefined ? '' : ` (${limit.name} ${short(limit.value)})`;
    // For ready connections the lowest values matter, for everything else the highest.
    const curve = sparkline(name === 'ready' ? low : high, highest);
    return [name, curve, `to ${short(highest)}${unit}${against}`];
  });
}

/** One row for each tenant, all to one scale; of more than a few, only who had most of the connections and who had least. */
function shareRows(run: SimulationRun): string[][] {
  const shares = telling([run], chartWidth, mostShares);
  const highest = Math.max(0, ...shares.flatMap(({ curves }) => curves.flat()));
  return shares.map(({ label, curves: [curve = []] }) => [
    harmless(label),
    sparkline(curve, highest),
    `to ${short(Math.max(0, ...curve))} %`,
  ]);
}

export function sparkline(values: readonly number[], highest: number): string {
  return values
    .map((value) => {
      // Anything above zero is visible.
      const step = value <= 0 || highest <= 0 ? 0 : Math.max(1, Math.round((value / highest) * 8));
      return blocks[step] as string;
    })
    .join('');
}
