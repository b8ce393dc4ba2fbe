// The HTML report: one file, nothing from outside, and nothing of the scenario but as text. Its charts are tested in a browser.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { htmlReport } from '../../src/simulator/report/html.js';
import type { PageData } from '../../src/simulator/report/page-data.js';
import type { SimulationRun } from '../../src/simulator/report/run.js';
import { run } from './report-runs.js';

const one = run();
const page = htmlReport(one);

/** What stands between the tags of the page's only element of that kind. */
function inside(html: string, open: RegExp, close: string): string {
  const start = open.exec(html);
  expect(start).not.toBeNull();
  const from = (start?.index ?? 0) + (start?.[0].length ?? 0);
  return html.slice(from, html.indexOf(close, from));
}

const scriptOf = (html: string) => inside(html, /<script>/, '</script>');
const dataOf = (html: string) =>
  JSON.parse(inside(html, /<script type="application\/json" id="data">/, '</script>')) as PageData;

test('The page is one file that asks for nothing from anywhere', () => {
  expect(page.startsWith('<!doctype html>\n<html lang="en">\n')).toBe(true);
  expect(page.match(/\b(?:src|href|action)=|https?:\/\/[^\s"'`]*|@import|url\(/g)).toBeNull();
  expect(scriptOf(page)).not.toMatch(/\b(?:import|fetch|XMLHttpRequest|WebSocket)\b/);
  expect(page.split('</script>')).toHaveLength(3);
});

test('The page lets nothing run but its own script, not even if something got in', () => {
  const hash = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`;
  const policy = inside(page, /http-equiv="Content-Security-Policy" content="/, '"').replaceAll('&#39;', "'");
  const style = inside(page, /<style>/, '</style>');
  expect(policy).toBe(`default-src 'none'; script-src '${hash(scriptOf(page))}'; style-src '${hash(style)}'`);
  expect(/ style=| on\w+=/.test(page)).toBe(false);
});

test('The page has every tag closed, in order', () => {
  const withoutScripts = page.replace(/<script[\s\S]*?<\/script>|<style>[\s\S]*?<\/style>/g, '');
  const stack: string[] = [];
  for (const [, slash, tag = ''] of withoutScripts.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g)) {
    if (tag === 'meta') continue;
    if (slash === '') stack.push(tag);
    else expect(stack.pop()).toBe(tag);
  }
  expect(stack).toEqual([]);
});

test('The page has the verdict, what it is about, the assertions, the laws, the faults, the tenants and the services', () => {
  const rows = [...page.matchAll(/<tr>(.*?)<\/tr>/g)].map(([, row = '']) => row.replace(/<[^>]+>/g, '|'));
  const has = (part: string) =>
    expect(
      rows.some((row) => row.includes(part)),
      part,
    ).toBe(true);
  expect(page.includes('<h1>small: <span class="bad">failed</span></h1>')).toBe(true);
  expect(page.includes('<p class="about">What it is about.</p>')).toBe(true);
  has('|FAILED||assertMaxConnectsPerSec||');
  has('|held||assertConvergeWithin||');
  expect(page.includes('<p class="good">None was broken.</p>')).toBe(true);
  has('||crash||api-2||recovered');
  has('|7m to 7m30s||server_down||all services||');
  has('|quick||');
  has('|api-1||10 of 10||');
});

test('The page makes nothing of the scenario more than text', () => {
  const evil = '</script><script>alert(1)</script><img src=x onerror="alert(1)">\u2028&';
  const { result } = one;
  const hostile: SimulationRun = {
    scenario: { ...one.scenario, description: evil },
    result: {
      ...result,
      scenario: evil,
      services: result.services.map((service) => ({ ...service, name: evil })),
      tenants: result.tenants.map((tenant) => ({ ...tenant, tenant: evil })),
      tenantSamples: result.tenantSamples.map((samples) => ({ ...samples, tenant: evil })),
      laws: [{ law: evil, atMs: 1, service: evil, message: evil }],
      assertions: [{ name: evil, passed: false, expected: evil, actual: evil }],
      faults: result.faults.map((fault) => ({ ...fault, kind: evil as never, services: [evil] })),
    },
  };
  const html = htmlReport(hostile, hostile);
  expect(html.match(/<script/g)).toHaveLength(2);
  expect(html.includes('<img')).toBe(false);
  expect(dataOf(html).runs[0]?.name).toBe(evil);
});

test('The page stays small, whatever the length of the run', () => {
  const long = run('sample: 20ms', 'long');
  expect(long.result.samples.timeMs.length).toBe(30_001);
  const html = htmlReport(long);
  expect(dataOf(html).runs[0]?.timeMs).toHaveLength(1_200);
  expect(html.length).toBeLessThan(600_000);
});

test('The page is the same to the last byte for the same run', () => {
  expect(htmlReport(run()) === page).toBe(true);
});

const titles = ['Shares of tenants', 'Shares of tenants, of the work'];
const lines = (html: string, title: string, index = 0) =>
  dataOf(html).runs[index]?.charts.find((chart) => chart.title === title)?.lines ?? [];

test.each(titles)('The shares of tenants make up the whole wherever there is any: %s', (title) => {
  const [quick, slow] = lines(page, title).map(({ high }) => high);
  const sums = (quick ?? []).map((share, i) => share + (slow?.[i] as number));
  expect(sums.filter((sum) => sum > 0).length).toBeGreaterThan(400);
  for (const sum of sums) if (sum > 0) expect(sum).toBeCloseTo(100, 2);
});

test('The shares of tenants differ where their demands do', () => {
  const mean = (values: readonly number[] = []) => values.reduce((sum, value) => sum + value, 0) / 601;
  const [time, work] = titles.map((title) => lines(page, title).map(({ high }) => mean(high)));
  // Three times as many callers, each with a tenth of the time.
  expect(time?.[0]).toBeLessThan(time?.[1] as number);
  expect(work?.[0]).toBeGreaterThan(work?.[1] as number);
});

test('The shares of tenants are those of the whole span of a point, so that a long run can be read', () => {
  const html = htmlReport(run('sample: 200ms', 'long'));
  const drawn = titles.flatMap((title) => lines(html, title));
  expect(drawn.map(({ low, high }) => [low, high.length])).toEqual(
    Array.from({ length: 4 }, () => [undefined, 1_200]),
  );
});

test('The shares of tenants are not there for one tenant alone, and there is no chart without a line', () => {
  const alone = { ...one, result: { ...one.result, tenantSamples: [] } };
  expect(dataOf(htmlReport(alone)).runs[0]?.charts.map(({ title }) => title)).not.toContain(titles[0]);
  expect(lines(htmlReport(alone, one), titles[0] as string, 1)).toHaveLength(2);
});

test('The shares of tenants of many tenants are those of the nine who have most, in all runs the same, and of the others together', () => {
  const [first] = one.result.tenantSamples;
  const inUse = first?.inUse ?? [];
  const many = (factor: (n: number) => number): SimulationRun => {
    const named = Array.from({ length: 12 }, (_, n) => ({
      tenant: n === 11 ? 'others' : `t${n}`,
      inUse: inUse.map((value) => value * factor(n)),
      workCompleted: first?.workCompleted ?? [],
    }));
    const rest = { tenant: undefined, inUse, workCompleted: first?.workCompleted ?? [] };
    return { ...one, result: { ...one.result, tenantSamples: [...named, rest] } };
  };
  const html = htmlReport(
    many((n) => n + 1),
    many(() => 1),
  );
  const expected = ['t3', 't4', 't5', 't6', 't7', 't8', 't9', 't10', 'others', 'all others'];
  for (const index of [0, 1])
    expect(lines(html, 'Shares of tenants', index).map(({ name }) => name)).toEqual(expected);
  const shares = lines(html, 'Shares of tenants').map(({ high }) => high[100] as number);
  expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(100, 1);
  // One, two and three parts of 79, and one of those without a series.
  expect(shares.at(-1)).toBeCloseTo((100 * 7) / 79, 1);
});

const other = run('server: { dialFailures: 0.5 }', 'failing');
const both = htmlReport(one, other);

test('The page of two runs has their numbers in one table', () => {
  expect(both.includes('<h2>Side by side</h2>')).toBe(true);
  expect(both.includes('<th>small</th><th>failing</th>')).toBe(true);
  expect(/<tr><td>opened<\/td><td>[\d,]+<\/td><td>[\d,]+<\/td><\/tr>/.test(both)).toBe(true);
});
