// The charts of the HTML report in a real browser: what they show, and how they answer the pointer and the keyboard.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { htmlReport } from '../../src/simulator/report/html.js';
import { chromiumPath, launchChromium } from '../support/chromium.js';
import { run } from './report-runs.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe.skipIf(chromiumPath === undefined)('The report in a browser', () => {
  const one = run();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-report-'));
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Opens a report; everything that it complains of fails the test. */
  async function open(html: string, colorScheme: 'light' | 'dark' = 'light', width = 1_280): Promise<Page> {
    const file = join(folder, 'report.html');
    writeFileSync(file, html);
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 800 } });
    onTestFinished(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith('file:')) complaints.push(`asks for ${request.url()}`);
    });
    await page.goto(pathToFileURL(file).href);
    onTestFinished(() => expect(complaints).toEqual([]));
    return page;
  }

  const texts = (page: Page, selector: string) => page.locator(selector).allTextContents();

  test('the report of a simulation has the verdict and the main chart on the first screen, and a legend for each chart', async () => {
    const page = await open(htmlReport(one));
    const titles = await texts(page, 'figcaption');
    expect(titles.slice(0, 2)).toEqual(['Connections', 'New connections']);
    expect(titles).toContain('Discards by reason');
    const verdict = await page.locator('h1').boundingBox();
    const main = await page.locator('figure.main').boundingBox();
    expect(verdict?.y).toBeLessThan(100);
    expect((main?.y ?? 0) + (main?.height ?? 0)).toBeLessThan(800);
    expect(await texts(page, 'figure.main button')).toEqual([
      'ready',
      'in use',
      'opening',
      'closing',
      'target',
    ]);
    expect(await page.locator('figure canvas').count()).toBe(titles.length);
  });

  test('names the limits that are too far up to be drawn', async () => {
    const page = await open(htmlReport(one));
    expect(await texts(page, '.note')).toContain('above the chart: rate of the server: 100');
  });

  test('the report of a simulation tells the values at the time that is pointed at in every chart, and zooms where one drags', async () => {
    const page = await open(htmlReport(one));
    const [over] = await page.locator('.u-over').all();
    const box = await over?.boundingBox();
    if (box === null || box === undefined) throw new Error('there is no chart');
    const at = (part: number) => [box.x + part * box.width, box.y + 50] as const;
    await page.mouse.move(...at(0.5));
    expect(await page.locator('#clock').textContent()).toBe('at 5m');
    const ready = one.result.samples.ready[300];
    expect((await texts(page, 'figure.main button'))[0]).toBe(`ready ${ready}`);
    expect((await texts(page, 'figure button')).every((text) => /\d$/.test(text))).toBe(true);
    expect(await page.locator('#reset').isVisible()).toBe(false);
    await page.mouse.move(...at(0.4));
    await page.mouse.down();
    await page.mouse.move(...at(0.6), { steps: 4 });
    await page.mouse.up();
    expect(await page.locator('#reset').isVisible()).toBe(true);
    await page.mouse.move(...at(0.5));
    expect(await page.locator('#clock').textContent()).toBe('at 5m');
    await page.mouse.move(...at(0.01));
    expect(await page.locator('#clock').textContent()).toMatch(/^at 4m/);
    await page.locator('#reset').click();
    expect(await page.locator('#reset').isVisible()).toBe(false);
  });

  test('the report of a simulation is read with the keyboard', async () => {
    const page = await open(htmlReport(one));
    await page.locator('.plot').first().focus();
    await page.keyboard.press('End');
    expect(await page.locator('#clock').textContent()).toBe('at 10m');
    await page.keyboard.press('Shift+ArrowLeft');
    expect(await page.locator('#clock').textContent()).toBe('at 9m40s');
    await page.keyboard.press('+');
    expect(await page.locator('#reset').isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    expect(await page.locator('#reset').isVisible()).toBe(false);
    const first = page.locator('figure.main button').first();
    await first.focus();
    await page.keyboard.press('Enter');
    expect(await first.getAttribute('aria-pressed')).toBe('false');
  });

  test.each(['light', 'dark'] as const)(
    'the report of a simulation can be read by everyone, by %s',
    async (scheme) => {
      const page = await open(htmlReport(one), scheme);
      const violations = await page.evaluate(`${axe}; axe.run().then(({ violations }) => violations)`);
      expect(
        (violations as { id: string; nodes: { html: string }[] }[]).map(({ id, nodes }) => [
          id,
          nodes[0]?.html,
        ]),
      ).toEqual([]);
    },
  );

  test('the report of a simulation has no table that is cut off on a phone, and no room for hints about a pointer', async () => {
    const seeds = { from: 1, to: 3, failed: [2], bands: [] };
    const page = await open(htmlReport({ ...one, seeds }), 'light', 390);
    const cut = await page.locator('.scroll').evaluateAll((tables) =>
      tables
        .filter((each) => {
          // One with more columns is moved sideways.
          const isWide = each.querySelectorAll('tr:first-of-type td, tr:first-of-type th').length > 8;
          return (!isWide && each.scrollWidth > each.clientWidth) || each.scrollHeight > each.clientHeight;
        })
        .map((each) => each.textContent),
    );
    expect(cut).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
    expect(await page.locator('.tools .quiet').isVisible()).toBe(false);
    const main = await page.locator('figure.main .plot').boundingBox();
    expect((main?.y ?? 0) + (main?.height ?? 0)).toBeLessThan(800);
  });

  test('the report of a simulation says on the first screen of how many seeds it is the worst', async () => {
    const seeds = { from: 1, to: 30, failed: [2, 7], bands: [] };
    const page = await open(htmlReport({ ...one, seeds }));
    expect(await page.locator('h1 + p').textContent()).toContain('the worst of 30, of which 2 failed, ');
  });

  test('the report of a simulation of two runs draws each chart twice, and reads both', async () => {
    const page = await open(htmlReport(one, run('server: { dialFailures: 0.5 }', 'failing')));
    const labels = await page
      .locator('figure.main .plot')
      .evaluateAll((plots) => plots.map((plot) => plot.ariaLabel));
    expect(labels.map((label) => label?.split('.')[0])).toEqual([
      'Connections, small',
      'Connections, failing',
    ]);
    await page.locator('.plot').first().focus();
    await page.keyboard.press('End');
    expect((await texts(page, 'figure.main button'))[0]).toMatch(/^ready \d+ \| \d+$/);
  });
});
