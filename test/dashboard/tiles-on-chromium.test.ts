// The tiles of the page in a real browser, for a pooler of several processes and for a pool inside a program, and their help.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { dashboard, type ShownPool } from '../../src/dashboard.js';
import { DsqlPool } from '../../src/dsql.js';
import { DynamoLeases } from '../../src/dynamodb.js';
import { Pool, tokenBucket } from '../../src/index.js';
import { type MetricDeclaration, unitText } from '../../src/observe/metric-declaration.js';
import { allMetrics } from '../../src/pooler/metrics/all-metrics.js';
import { serve } from '../pooler/workers/served.js';
import { chromiumPath, launchChromium } from '../support/chromium.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { openPage, operator, soon, withPage } from './browser-page.js';

/** Opens no connection by itself. */
const quiet = {
  host: 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws',
  ...{ warmup: false, keeper: false, tokenProvider: () => 'no token' },
} as const;

/** Tiles that no metric is on. */
const withOwnWords = ['lives', 'running', 'statements', 'connections', 'audit'];

describe.skipIf(chromiumPath === undefined)('in a browser', () => {
  let db: TestDatabase;
  let browser: Browser;
  beforeAll(async () => {
    db = await withDatabase();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await db?.drop();
  });

  async function openPageOf(pool: ShownPool & { end(options: object): Promise<void> }): Promise<Page> {
    onTestFinished(() => pool.end({ deadline: 100 }).catch(() => {}));
    const shown = await dashboard(pool, { password: operator });
    onTestFinished(() => shown.close());
    return openPage(browser, `http://127.0.0.1:${shown.port}/`, operator);
  }

  test('the page of a pooler with two workers has both processes, and the clients of both together', async () => {
    const served = await serve(db, { observability: withPage });
    const said = /page at (\S+)/;
    await served.says(said);
    const address = said.exec(served.out)?.[1] ?? '';
    const clients = await served.spread(6);
    for (const client of clients) await client.query('select 1');
    const page = await openPage(browser, address, operator);
    const rows = page.locator('#fleet tbody tr');
    await vi.waitFor(async () => {
      const workers = await served.workers();
      const shown = await rows.locator('td:nth-of-type(3)').allInnerTexts();
      // Each look at the console is a client of one worker.
      const count = workers.reduce((sum, each) => sum + each.clients, 0) - 1;
      expect(count).toBe(6);
      expect(shown.reduce((sum, text) => sum + Number(text), 0)).toBe(count);
      const texts = await rows.locator('th').allInnerTexts();
      expect(texts).toEqual(workers.map(({ worker, pid }) => `${worker} pid ${pid}`));
      const pool = await page.locator('#pools tbody tr').first().locator('td').allInnerTexts();
      expect(pool.slice(0, 4)).toEqual([db.database, '0', '0', '6']);
    }, soon);
    expect(await readHelp(page)).toBeGreaterThan(20);
  });

  test('the page of a pool in a program has its connections by state, and waiting callers', async () => {
    const { host, port, user, password, database } = db;
    const pool = new Pool({ host, port, user, password, database, name: 'orders', max: 3 });
    const page = await openPageOf(pool);
    const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
    const waiting = pool.connect();
    waiting.catch(() => {});
    await page.locator('.verdict-sentence', { hasText: '3 of 3 connections are in use, 1 caller' }).waitFor();
    await page.locator('#budget .key', { hasText: 'of 3' }).first().waitFor();
    await page.locator('#figures .figure', { hasText: /Waiting\s*1/ }).waitFor();
    expect(await page.locator('#shares, #pins, #rebalances, #fleet, #connections').count()).toBe(0);
    expect(await readHelp(page)).toBeGreaterThan(10);
    for (const client of clients) client.release();
    (await waiting).release();
    await page.locator('.verdict-sentence', { hasText: 'Nothing binds' }).waitFor();
  });

  test('the page of a pool that shares limits with other instances has what they hold, and its rate', async () => {
    const leases = new DynamoLeases({ table: 'connections', endpoint: 'db.example', limit: 500 });
    const limits = { leases, rateLimiter: tokenBucket({ rate: 100, burst: 100 }) };
    const pool = new DsqlPool({ ...quiet, name: 'orders', ...limits });
    const page = await openPageOf(pool);
    const cells = page.locator('#fleet tbody tr').first().locator('th, td');
    const { instances, active } = leases.stats();
    await vi.waitFor(
      async () =>
        expect(await cells.allInnerTexts()).toEqual([
          ...['orders', 'unused', String(instances), `${active} / 500`],
          ...['0', '0', '0'],
        ]),
      soon,
    );
    expect(await page.locator('#rates').innerText()).toContain('100');
    expect(await readHelp(page)).toBeGreaterThan(10);
  });
});

/** Opens the help of every tile, and compares it with the declarations. Returns how many metrics there are. */
async function readHelp(page: Page): Promise<number> {
  let count = 0;
  for (const tile of await page.locator('section.card').all()) {
    await tile.locator('.help-button').click();
    await tile.locator('.help p').first().waitFor();
    const shown = await tile.locator('.help-metric').evaluateAll((metrics) =>
      metrics.map((metric) => ({
        name: metric.querySelector('code')?.textContent ?? '',
        texts: Array.from(metric.querySelectorAll('h3 span, p, dd'), ({ textContent }) => textContent),
      })),
    );
    for (const { name, texts } of shown) {
      const { unit, help, normal, bad, action } = allMetrics[name] as MetricDeclaration;
      const declared = [unitText(unit), help, normal, bad, action].filter((text) => text !== undefined);
      expect([name, ...texts]).toEqual([name, ...declared]);
    }
    const id = (await tile.getAttribute('id')) ?? '';
    expect([id, shown.length > 0]).toEqual([id, !withOwnWords.includes(id)]);
    count += shown.length;
  }
  return count;
}
