// The HTML report: one file, nothing from outside, nothing of the scenario but as text, and charts that answer the pointer.
// The page's script runs here against a stand-in for the browser's document that knows what the script uses.
import { createHash } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { htmlReport } from '../../src/simulator/report/html.js';
import type { PageData } from '../../src/simulator/report/html-script.js';
import type { SimulationRun } from '../../src/simulator/report/run.js';
import { parseScenario } from '../../src/simulator/scenario-file.js';
import { simulate } from '../../src/simulator/simulate.js';

function run(changes = '', name = 'small'): SimulationRun {
  const scenario = parseScenario(
    `# What it is about.
duration: 10m
limiter: { perSecond: 20, burst: 5 }
services:
  - name: api
    count: 2
    pool: { max: 10, reservoir: { baseLifetime: 2m, lifetimeJitter: 1m, guardWindow: 10s } }
    workload:
      - { tenant: quick, perSecond: 3, hold: { mean: 20ms } }
      - { tenant: slow, perSecond: 1, hold: { mean: 200ms } }
faults:
  - { kind: crash, at: 5m, for: 5s, services: api-2 }
  - { kind: server_down, at: 7m, for: 30s }
assertions: { assertConvergeWithin: 30s, assertMaxConnectsPerSec: 1 }
${changes}`,
    `${name}.yaml`,
  );
  return { scenario, result: simulate(scenario) };
}

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

interface Happening {
  readonly clientX: number;
}

/** As much of an element as the script uses. It is 800 wide, as the drawing is. */
class FakeElement {
  readonly attributes = new Map<string, string>();
  children: FakeElement[] = [];
  readonly listeners = new Map<string, (event: Happening) => void>();
  textContent = '';
  readonly tag: string;

  constructor(tag: string) {
    this.tag = tag;
  }

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
  }

  append(...children: FakeElement[]): void {
    this.children.push(...children);
  }

  replaceChildren(...children: FakeElement[]): void {
    this.children = children;
  }

  addEventListener(type: string, listener: (event: Happening) => void): void {
    this.listeners.set(type, listener);
  }

  getBoundingClientRect() {
    return { left: 0, width: 800 };
  }

  fire(type: string, clientX = 0): void {
    this.listeners.get(type)?.({ clientX });
  }

  /** All elements inside with that tag, and with that word among their classes. */
  all(tag: string, name?: string): FakeElement[] {
    return this.children.flatMap((child) => {
      const isMeant = child.tag === tag && (name === undefined || child.classes.includes(name));
      return [...(isMeant ? [child] : []), ...child.all(tag, name)];
    });
  }

  get classes(): string[] {
    return (this.attributes.get('class') ?? '').split(' ');
  }

  get text(): string {
    return this.textContent + this.children.map((child) => child.text).join('');
  }
}

/** Opens the page. */
function open(html: string) {
  const byId = new Map(['charts', 'clock', 'reset', 'data'].map((id) => [id, new FakeElement('div')]));
  const find = (id: string) => byId.get(id) as FakeElement;
  find('data').textContent = JSON.stringify(dataOf(html));
  runInNewContext(scriptOf(html), {
    document: {
      createElement: (tag: string) => new FakeElement(tag),
      createElementNS: (_namespace: string, tag: string) => new FakeElement(tag),
      getElementById: (id: string) => byId.get(id) ?? null,
    },
  });
  const figures = find('charts').all('figure');
  const titled = (title: string) => {
    const figure = figures.find((candidate) => candidate.all('figcaption')[0]?.text === title);
    if (figure === undefined) throw new Error(`no chart ${title}`);
    return figure;
  };
  return { figures, titled, clock: find('clock'), reset: find('reset') };
}

describe('The page', () => {
  test('is one file that asks for nothing from anywhere', () => {
    expect(page.startsWith('<!doctype html>\n<html lang="en">\n')).toBe(true);
    const addresses = page.match(/\b(?:src|href|action)=|https?:\/\/[^\s"'`]*|@import|url\(/g) ?? [];
    expect(addresses).toEqual(['http://www.w3.org/2000/svg']);
  });

  test('lets nothing run but its own script, not even if something got in', () => {
    const hash = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`;
    const policy = inside(page, /http-equiv="Content-Security-Policy" content="/, '"').replaceAll(
      '&#39;',
      "'",
    );
    const style = inside(page, /<style>/, '</style>');
    expect(policy).toBe(
      `default-src 'none'; script-src '${hash(scriptOf(page))}'; style-src '${hash(style)}'`,
    );
    expect(/ style=| on\w+=/.test(page)).toBe(false);
  });

  test('has every tag closed, in order', () => {
    const withoutScripts = page.replace(/<script[\s\S]*?<\/script>|<style>[\s\S]*?<\/style>/g, '');
    const stack: string[] = [];
    for (const [, slash, tag = ''] of withoutScripts.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g)) {
      if (tag === 'meta') continue;
      if (slash === '') stack.push(tag);
      else expect(stack.pop()).toBe(tag);
    }
    expect(stack).toEqual([]);
  });

  test('has the verdict, what it is about, the assertions, the laws, the faults, the tenants and the services', () => {
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

  test('makes nothing of the scenario more than text', () => {
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
    expect(open(html).figures.length).toBeGreaterThan(0);
  });

  test('stays small, whatever the length of the run', () => {
    const long = run('sample: 20ms', 'long');
    expect(long.result.samples.timeMs.length).toBe(30_001);
    const html = htmlReport(long);
    expect(dataOf(html).runs[0]?.timeMs).toHaveLength(1_200);
    expect(html.length).toBeLessThan(600_000);
  });

  test('is the same to the last byte for the same run', () => {
    expect(htmlReport(run()) === page).toBe(true);
  });
});

describe('The charts of the page', () => {
  test('are those in which anything happens, each with a button for each line', () => {
    const { figures } = open(page);
    const found = figures.map((figure) => [
      figure.all('figcaption')[0]?.text,
      figure.all('button').map((button) => button.text),
    ]);
    expect(found.slice(0, 2)).toEqual([
      ['Connections', ['ready', 'lent', 'pending', 'closing', 'target']],
      ['New connections', ['new connections']],
    ]);
    expect(found.map(([title]) => title)).toContain('Discards by reason');
  });

  test('draw each line over the whole time, the limits, and the faults', () => {
    const connects = open(page).titled('New connections');
    const [path] = connects.all('path', 'line');
    const points = (path?.attributes.get('d') ?? '').split(/[ML]/).slice(1);
    expect(points).toHaveLength(601);
    expect(points[0]).toMatch(/^60\.0 /);
    expect(points.at(-1)).toMatch(/^788\.0 /);
    expect(connects.all('text', 'mark').map((mark) => mark.text)).toEqual([
      'asserted 1',
      'crash',
      'server down',
    ]);
    expect(connects.all('span', 'note')[0]?.text).toBe('above: rate of the server: 100');
    expect(connects.all('rect', 'fault').map((band) => band.text)).toEqual(['crash', 'server_down']);
  });

  test('draw no number that is none', () => {
    const drawn = open(page).figures.flatMap((figure) =>
      figure.all('path').map((path) => path.attributes.get('d') ?? ''),
    );
    expect(drawn.length).toBeGreaterThan(5);
    for (const path of drawn) expect(path).not.toMatch(/NaN|Infinity|undefined/);
  });

  test('tell all values at the time that is pointed at, in every chart', () => {
    const { titled, clock } = open(page);
    const [plot] = titled('New connections').all('svg');
    plot?.fire('pointermove', 60 + 728 / 2);
    expect(clock.text).toBe('at 5m');
    const ready = one.result.samples.ready[300];
    expect(titled('Connections').all('button')[0]?.text).toBe(`ready ${ready}`);
    expect(titled('Connections').all('line', 'hair')).toHaveLength(1);
    plot?.fire('pointerleave');
    expect(clock.text).toBe('');
    expect(titled('Connections').all('button')[0]?.text).toBe('ready');
  });

  test('zoom where one drags, all together, and back again', () => {
    const { titled, reset } = open(page);
    const [plot] = titled('New connections').all('svg');
    const firstTick = () =>
      titled('Connections')
        .all('text', 'tick')
        .map((tick) => tick.text)
        .find((text) => /\d[sm]$/.test(text));
    expect([firstTick(), reset.classes]).toEqual(['0s', ['idle']]);
    plot?.fire('pointerdown', 60 + 728 * 0.4);
    plot?.fire('pointermove', 60 + 728 * 0.5);
    expect(titled('New connections').all('rect', 'box')).toHaveLength(1);
    plot?.fire('pointerup', 60 + 728 * 0.5);
    expect([firstTick(), reset.classes]).toEqual(['4m', ['active']]);
    const points = (titled('New connections').all('path', 'line')[0]?.attributes.get('d') ?? '').split(
      /[ML]/,
    );
    expect(points.length).toBeLessThan(70);
    reset.fire('click');
    expect([firstTick(), reset.classes]).toEqual(['0s', ['idle']]);
  });

  test('do not zoom on a click', () => {
    const { titled, reset } = open(page);
    const [plot] = titled('New connections').all('svg');
    plot?.fire('pointerdown', 300);
    plot?.fire('pointerup', 301);
    expect(reset.classes).toEqual(['idle']);
  });

  test('hide a line and show it again, and rescale to what is left', () => {
    const connections = open(page).titled('Connections');
    const [ready] = connections.all('button');
    const highestTick = () =>
      connections
        .all('text', 'tick')
        .map((tick) => Number(tick.text))
        .filter((value) => value >= 0)
        .at(-1);
    const before = [connections.all('path', 'line').length, highestTick()];
    ready?.fire('click');
    expect(ready?.attributes.get('aria-pressed')).toBe('false');
    expect(connections.all('path', 'line')).toHaveLength((before[0] ?? 0) - 1);
    ready?.fire('click');
    expect([connections.all('path', 'line').length, highestTick()]).toEqual(before);
  });
});

describe('The shares of tenants', () => {
  const titles = ['Shares of tenants', 'Shares of tenants, of the work'];
  const lines = (html: string, title: string, index = 0) =>
    dataOf(html).runs[index]?.charts.find((chart) => chart.title === title)?.lines ?? [];

  test.each(titles)('are drawn and told, and make up the whole wherever there is any: %s', (title) => {
    const { titled } = open(page);
    const chart = titled(title);
    expect(chart.all('path', 'line')).toHaveLength(2);
    chart.all('svg')[0]?.fire('pointermove', 60 + 728 / 2);
    expect(chart.all('button').map((button) => button.text)).toEqual([
      expect.stringMatching(/^quick [\d.]+$/),
      expect.stringMatching(/^slow [\d.]+$/),
    ]);
    const [quick, slow] = lines(page, title).map(({ high }) => high);
    const sums = (quick ?? []).map((share, i) => share + (slow?.[i] as number));
    expect(sums.filter((sum) => sum > 0).length).toBeGreaterThan(400);
    for (const sum of sums) if (sum > 0) expect(sum).toBeCloseTo(100, 2);
  });

  test('differ where their demands do', () => {
    const mean = (values: readonly number[] = []) => values.reduce((sum, value) => sum + value, 0) / 601;
    const [time, work] = titles.map((title) => lines(page, title).map(({ high }) => mean(high)));
    // Three times as many callers, each with a tenth of the time.
    expect(time?.[0]).toBeLessThan(time?.[1] as number);
    expect(work?.[0]).toBeGreaterThan(work?.[1] as number);
  });

  test('are those of the whole span of a point, so that a long run can be read', () => {
    const html = htmlReport(run('sample: 200ms', 'long'));
    const drawn = titles.flatMap((title) => lines(html, title));
    expect(drawn.map(({ low, high }) => [low, high.length])).toEqual(
      Array.from({ length: 4 }, () => [undefined, 1_200]),
    );
  });

  test('are not there for one tenant alone, and there is no chart without a line', () => {
    const alone = { ...one, result: { ...one.result, tenantSamples: [] } };
    const { figures } = open(htmlReport(alone));
    expect(figures.map((figure) => figure.all('figcaption')[0]?.text)).not.toContain(titles[0]);
    expect(open(htmlReport(alone, one)).titled('Shares of tenants').all('path', 'line')).toHaveLength(2);
  });

  test('of many tenants are those of the nine who have most, in all runs the same, and of the others together', () => {
    const [first] = one.result.tenantSamples;
    const lent = first?.lent ?? [];
    const many = (factor: (n: number) => number): SimulationRun => {
      const named = Array.from({ length: 12 }, (_, n) => ({
        tenant: n === 11 ? 'others' : `t${n}`,
        lent: lent.map((value) => value * factor(n)),
        workCompleted: first?.workCompleted ?? [],
      }));
      const rest = { tenant: undefined, lent, workCompleted: first?.workCompleted ?? [] };
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
});

describe('The page of two runs', () => {
  const other = run('server: { dialFailures: 0.5 }', 'failing');
  const both = htmlReport(one, other);

  test('has their numbers in one table', () => {
    expect(both.includes('<h2>Side by side</h2>')).toBe(true);
    expect(both.includes('<th>small</th><th>failing</th>')).toBe(true);
    expect(/<tr><td>opened<\/td><td>[\d,]+<\/td><td>[\d,]+<\/td><\/tr>/.test(both)).toBe(true);
  });

  test('draws each chart twice to the same scale, and reads both', () => {
    const { titled } = open(both);
    const connections = titled('Connections');
    const plots = connections.all('svg');
    expect(plots.map((plot) => plot.attributes.get('aria-label'))).toEqual([
      'Connections, small',
      'Connections, failing',
    ]);
    const ticks = plots.map((plot) => plot.all('text', 'tick').map((tick) => tick.text));
    expect(ticks[0]).toEqual(ticks[1]);
    plots[1]?.fire('pointermove', 60 + 728 / 2);
    expect(connections.all('button')[0]?.text).toMatch(/^ready \d+ \| \d+$/);
    expect(titled('Shares of tenants').all('svg')).toHaveLength(2);
    expect(titled('Shares of tenants').all('button')[0]?.text).toMatch(/^quick [\d.]+ \| [\d.]+$/);
  });
});
