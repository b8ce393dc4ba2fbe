/** A run, or two side by side, as one HTML file that needs nothing else: no network, no other file. */

import { count, time } from '../format.js';
import type { SimulationResult } from '../result.js';
import { chartsOf } from './charts.js';
import { leftOut, withoutColdStart } from './cold-start.js';
import { findingsOf } from './findings.js';
import { pageStyle } from './html-style.js';
import { digest, embedJson, escapeHtml, table } from './html-text.js';
import type { PageChart, PageData, PageRun } from './page-data.js';
import { pageScript } from './page-script.js';
import type { SimulationRun } from './run.js';
import { bandColumns, bandRows, type SeedReport } from './seed-bands.js';
import { faultRow, summaryOf, tenantColumns, tenantRows } from './summary.js';
import { shareCharts } from './tenant-shares.js';

/** As many as a wide screen has points; bounds the size of the file, whatever the length of the run. */
const mostPoints = 1_200;
/** As many as there are colours. */
const mostTenantLines = 10;
const mostServices = 200;
const mostBreaches = 100;

/** The page for one run, or for two that are to be compared. */
export function htmlReport(...runs: readonly SimulationRun[]): string {
  const title = runs.map(({ result }) => result.scenario).join(' and ');
  const script = pageScript();
  const policy = `default-src 'none'; script-src '${digest(script)}'; style-src '${digest(pageStyle)}'`;
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${escapeHtml(policy)}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escapeHtml(title)}: simulation</title>`,
    `<style>${pageStyle}</style>`,
    '</head>',
    '<body>',
    '<main>',
    ...runs.flatMap((run) => verdict(run)),
    ...(runs.length > 1 ? comparison(runs) : []),
    '<noscript><p>The charts need JavaScript. The tables do not.</p></noscript>',
    '<div class="tools"><span class="quiet">Point at a chart, or use its arrow keys, to read it; drag to zoom.</span>',
    '<button type="button" id="reset" class="idle">See all</button><span id="clock" aria-live="polite"></span></div>',
    '<div id="charts"></div>',
    ...runs.flatMap((run) => overview(run, runs.length > 1)),
    ...runs.flatMap((run) => details(run, runs.length > 1)),
    '</main>',
    `<script type="application/json" id="data">${embedJson(pageData(runs))}</script>`,
    `<script>${script}</script>`,
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

function comparison(runs: readonly SimulationRun[]): string[] {
  const columns = runs.map((run) => summaryOf(withoutColdStart(run).result));
  const note = leftOut(runs);
  const labels = [...new Set(columns.flatMap((rows) => rows.map(([label]) => label)))];
  const rows = labels.map((label) => [
    label,
    ...columns.map((column) => column.find(([name]) => name === label)?.[1] ?? ''),
  ]);
  return [
    '<h2>Side by side</h2>',
    note === undefined ? '' : `<p>${escapeHtml(note)}</p>`,
    table(['', ...runs.map(({ result }) => result.scenario)], rows),
  ];
}

/** Beginning of the report: the verdict, and what is wrong in words. */
function verdict(run: SimulationRun): string[] {
  const { scenario, result } = run;
  const word = result.passed ? '<span class="good">passed</span>' : '<span class="bad">failed</span>';
  const services = `${count(scenario.services.length)} services`;
  return [
    `<h1>${escapeHtml(result.scenario)}: ${word}</h1>`,
    `<p class="quiet">seed ${result.seed}${rankOf(run)}, ${services}, ${time(result.durationMs)} simulated, ${count(result.events)} events</p>`,
    ...list(findingsOf(run)),
    scenario.description === ''
      ? ''
      : `<details><summary>What this scenario is</summary><p class="about">${escapeHtml(scenario.description)}</p></details>`,
  ];
}

function rankOf({ seeds }: SimulationRun): string {
  if (seeds === undefined) return '';
  const failed = seeds.failed.length === 0 ? 'none' : count(seeds.failed.length);
  return `, the worst of ${count(seeds.to - seeds.from + 1)}, of which ${failed} failed`;
}

function list(sentences: readonly string[]): string[] {
  if (sentences.length === 0) return [];
  return ['<ul class="findings">', ...sentences.map((each) => `<li>${escapeHtml(each)}</li>`), '</ul>'];
}

function overview({ result, seeds }: SimulationRun, isCompared: boolean): string[] {
  const of = isCompared ? ` of ${escapeHtml(result.scenario)}` : '';
  return [
    ...(seeds === undefined ? [] : overSeeds(seeds)),
    ...(isCompared ? [] : ['<h2>In numbers</h2>', table(['', ''], summaryOf(result))]),
    `<h2>Assertions${of}</h2>`,
    assertions(result),
    `<h2>Laws${of}</h2>`,
    laws(result),
    ...(result.faults.length === 0 ? [] : [`<h2>Faults${of}</h2>`, faults(result)]),
  ];
}

function overSeeds({ from, to, failed, bands }: SeedReport): string[] {
  const runs = to - from + 1;
  const failures = failed.length === 0 ? 'None' : count(failed.length);
  return [
    `<h2>Over ${count(runs)} seeds</h2>`,
    `<p>${failures} of the runs with the seeds ${from} to ${to} failed. The rest of this page is the worst of them.</p>`,
    table(bandColumns, bandRows(bands), 1),
  ];
}

function assertions(result: SimulationResult): string {
  if (result.assertions.length === 0) return '<p>The scenario asserts nothing.</p>';
  const rows = result.assertions.map(({ name, passed, expected, actual }) => [
    passed ? 'held' : 'FAILED',
    name,
    expected,
    actual,
  ]);
  return table(['', 'assertion', 'expected', 'actual'], rows);
}

function laws({ laws: breaches }: SimulationResult): string {
  if (breaches.length === 0) return '<p class="good">None was broken.</p>';
  const rows = breaches
    .slice(0, mostBreaches)
    .map(({ law, atMs, service, message }) => [time(atMs), law, service ?? '', message]);
  return table(['at', 'law', 'service', 'what happened'], rows) + left(breaches.length, mostBreaches);
}

function faults(result: SimulationResult): string {
  const rows = result.faults.map((fault) => {
    const { when, kind, whom, recovered } = faultRow(fault, result.services.length);
    return [when, kind, whom, recovered];
  });
  return table(['when', 'fault', 'services', ''], rows);
}

function details({ result }: SimulationRun, isCompared: boolean): string[] {
  const of = isCompared ? ` of ${escapeHtml(result.scenario)}` : '';
  const services = result.services
    .slice(0, mostServices)
    .map(({ name, peak, limit, convergedAtMs, samples }) => [
      name,
      `${count(peak)} of ${count(limit)}`,
      convergedAtMs === undefined ? 'never' : time(convergedAtMs),
      count(samples.checkouts.at(-1) ?? 0),
      count(samples.emptyEvents.at(-1) ?? 0),
      count(samples.refillFailures.at(-1) ?? 0),
    ]);
  return [
    ...(result.tenants.length < 2
      ? []
      : [`<h2>Tenants${of}</h2>`, table(tenantColumns, tenantRows(result), 1)]),
    `<h2>Services${of}</h2>`,
    table(
      ['service', 'connections at most', 'full after', 'checkouts', 'nothing ready', 'not opened'],
      services,
      1,
    ),
    left(result.services.length, mostServices),
  ];
}

function left(all: number, shown: number): string {
  return all > shown ? `<p class="quiet">and ${count(all - shown)} more, not shown</p>` : '';
}

/** Charts in which nothing ever happens are left out, in all runs alike. */
function pageData(runs: readonly SimulationRun[]): PageData {
  const shares = shareCharts(runs, mostPoints, mostTenantLines);
  const all = runs.map((run, index) => {
    const { timeMs, charts } = chartsOf(run, mostPoints);
    return { run, timeMs, charts: [...charts, ...(shares[index] ?? [])] };
  });
  const isUsed = (index: number) =>
    all.some(({ charts }) => charts[index]?.lines.some(({ high }) => high.some((value) => value > 0)));
  return {
    runs: all.map(
      ({ run: { result }, timeMs, charts }): PageRun => ({
        name: result.scenario,
        durationMs: result.durationMs,
        timeMs,
        charts: charts
          .filter((_, index) => isUsed(index))
          .map(
            ({ title, unit, lines, marks }): PageChart => ({
              title,
              unit,
              lines: lines.map(({ name, low, high }) =>
                low.every((value, i) => value === high[i]) ? { name, high } : { name, low, high },
              ),
              marks,
            }),
          ),
        faults: result.faults.map(({ kind, fromMs, untilMs }) => ({ name: kind, fromMs, untilMs })),
      }),
    ),
  };
}
