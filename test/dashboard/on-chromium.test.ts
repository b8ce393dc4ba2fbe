// The page in a real browser, before a pooler with real clients: its numbers are the console's, its actions work, everyone can read it.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { chromiumPath, launchChromium } from '../support/chromium.js';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import { askConsole, type Look, openPage, operator, soon, startWithPage, viewer } from './browser-page.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

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

  const startPooler = () => startWithPage(db);
  const open = (address: string, secret: string, look?: Look) => openPage(browser, address, secret, look);

  /** Four transactions that are open, and three clients that wait for their turn. */
  async function load(pooler: TestPooler): Promise<{ release(): Promise<void> }> {
    const holders = await Promise.all(Array.from({ length: 3 }, () => pooler.connect()));
    for (const holder of holders) await holder.query('begin; select 1');
    const waiters = await Promise.all(Array.from({ length: 3 }, () => pooler.connect()));
    const answers = Promise.allSettled(waiters.map((waiter) => waiter.query('select 2')));
    return {
      release: async () => {
        for (const holder of holders) await holder.query('commit');
        expect((await answers).map(({ status }) => status)).toEqual(waiters.map(() => 'fulfilled'));
      },
    };
  }

  test('the numbers are those of the console, and those of a moment later follow', async () => {
    const pooler = await startPooler();
    const { release } = await load(pooler);
    const page = await open(pooler.address, operator);
    const shares = page.locator('#shares tbody tr');
    await vi.waitFor(async () => {
      const [row] = (await askConsole(pooler, 'show shares')).filter(({ budget }) => budget === 'total');
      const cells = await shares.first().locator('td').allInnerTexts();
      expect(Number(cells[0])).toBe(row?.['held']);
      expect(Number(cells[1])).toBe(row?.['share']);
      expect(Number(cells[2])).toBe(row?.['demand']);
      const [ofPool] = (await askConsole(pooler, 'show pools')).filter(
        ({ database }) => database === db.database,
      );
      expect(ofPool).toMatchObject({ cl_active: 3, cl_waiting: 3 });
      const pool = await page.locator('#pools tbody tr').first().locator('td').allInnerTexts();
      expect(pool.slice(0, 4)).toEqual([db.database, '3', '3', '0']);
      // Three callers wait, with one request of their pool for a lease.
      expect(await page.locator('#budget .key', { hasText: 'Waiting' }).innerText()).toMatch(/Waiting\s+3 /);
    }, soon);
    await expect(page.locator('.verdict-sentence').innerText()).resolves.toContain('3 callers wait');
    await release();
    await vi.waitFor(
      async () => expect(await page.locator('.verdict-sentence').innerText()).toContain('Nothing binds'),
      soon,
    );
    expect(await page.locator('#budget .key', { hasText: 'Exceeded' }).innerText()).toContain('0');
    // Counters that are 0 are for the metrics.
    expect(await page.locator('#errors').innerText()).toContain('No error so far.');
  });

  test('an operator pauses a database and resumes it, by mouse and by keys', async () => {
    const pooler = await startPooler();
    const client = await pooler.connect();
    await client.query('select 1');
    const page = await open(pooler.address, operator);
    await page.locator('#pools select').first().selectOption('pause');
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    const paused = async () => {
      const rows = await askConsole(pooler, 'show databases');
      return rows.find(({ name }) => name === db.database)?.['paused'];
    };
    await vi.waitFor(async () => expect(await paused()).toBe(1), soon);
    const answer = client.query('select 2 as two');
    await page.locator('.verdict.bad', { hasText: 'paused: 1 caller waits' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.locator('#commands [role=option]').first().waitFor();
    await page.keyboard.type(`resume ${db.database}`);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Resume', exact: true }).press('Enter');
    expect((await answer).rows).toEqual([{ two: 2 }]);
    expect(await paused()).toBe(0);
    await page.locator('#audit', { hasText: `pause ${db.database}` }).waitFor();
  });

  test('statements are ordered by all of their time, or by their slowest call', async () => {
    const pooler = await startPooler();
    const client = await pooler.connect();
    await client.query('select pg_sleep(1)');
    for (let n = 0; n < 30; n++) await client.query('select pg_sleep(0.05), 2');
    const page = await open(pooler.address, viewer);
    const first = () => page.locator('#statements tbody tr').first().locator('code').innerText();
    await vi.waitFor(async () => expect(await first()).toBe('select pg_sleep(?), ?'), soon);
    await page.getByRole('radio', { name: 'Slowest' }).check();
    await vi.waitFor(async () => expect(await first()).toBe('select pg_sleep(?)'), soon);
  });

  test('an operator finds a client by its application and disconnects it', async () => {
    const pooler = await startPooler();
    const others = await Promise.all(
      Array.from({ length: 3 }, (_, i) => pooler.connect({ application_name: `other ${i}` })),
    );
    const victim = await pooler.connect({ application_name: 'the victim' });
    const gone = new Promise((resolve) => victim.once('end', resolve));
    const page = await open(pooler.address, operator);
    await page.getByLabel('Search clients and servers').fill('VICTIM');
    await page.locator('#connections tbody tr', { hasText: 'the victim' }).waitFor();
    await vi.waitFor(async () => expect(await page.locator('#connections tbody tr').count()).toBe(1), soon);
    await page.getByRole('button', { name: /^Disconnect client \d+$/ }).click();
    await page.getByRole('button', { name: 'Disconnect', exact: true }).click();
    await gone;
    for (const other of others) await other.query('select 1');
  });

  test('an operator changes the budget while it runs', async () => {
    const pooler = await startPooler();
    const client = await pooler.connect();
    await client.query('select 1');
    const page = await open(pooler.address, operator);
    await page.keyboard.press('Control+k');
    await page.locator('#commands [role=option]').first().waitFor();
    await page.keyboard.type('set a limit');
    await page.keyboard.press('Enter');
    await page.getByLabel('Setting').fill('max_server_connections');
    await page.getByLabel('Value').fill('3');
    await page.getByRole('dialog').getByRole('button', { name: 'Next' }).click();
    await page.getByRole('button', { name: 'Set', exact: true }).click();
    await page.locator('#budget .key', { hasText: 'of 3' }).first().waitFor();
    expect(pooler.pooler.config.limits.maxServerConnections).toBe(3);
  });

  test('a viewer sees the numbers and nothing to act with', async () => {
    const pooler = await startPooler();
    const client = await pooler.connect();
    await client.query('select 1');
    const page = await open(pooler.address, viewer);
    await page.locator('#connections tbody tr').first().waitFor();
    expect(await page.locator('#pools select, #connections tbody button').count()).toBe(0);
    await page.keyboard.press('Control+k');
    await page.locator('#commands [role=option]').first().waitFor();
    const commands = await page.locator('#commands [role=option]').allInnerTexts();
    expect(commands.length).toBeGreaterThan(5);
    expect(commands.filter((text) => /pause|kill|drain|set /i.test(text))).toEqual([]);
  });

  test('wrong logins are told, and after five of them each answer comes late, also to a right one', async () => {
    const pooler = await startPooler();
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(pooler.address);
    for (let i = 0; i < 5; i++) {
      await page.getByLabel('Password or token').fill(`guess ${i}`);
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByRole('alert').filter({ hasText: 'is not right' }).waitFor();
      await vi.waitFor(
        async () => expect(await page.getByLabel('Password or token').inputValue()).toBe(''),
        soon,
      );
    }
    await page.getByLabel('Password or token').fill(operator);
    const asked = page.waitForRequest('**/api/login');
    await page.getByRole('button', { name: 'Log in' }).click();
    await asked;
    expect(await page.getByRole('region', { name: 'What binds now' }).count()).toBe(0);
    await page.getByRole('region', { name: 'What binds now' }).waitFor();
  });

  test('a token in the address logs in, and is taken out of the address', async () => {
    const pooler = await startTestPooler(db, { observability: { metricsListen: '127.0.0.1:0' } });
    const { pagePath = '', metricsPort } = pooler.pooler;
    expect(pagePath).toMatch(/^\/#token=[\w-]{32}$/);
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${metricsPort}${pagePath}`);
    await page.getByRole('region', { name: 'What binds now' }).waitFor();
    expect(page.url()).toBe(`http://127.0.0.1:${metricsPort}/`);
    expect(await page.content()).not.toContain(pagePath.slice('/#token='.length));
  });

  test.each<Look & { name: string }>([
    { name: 'light' },
    { name: 'dark', scheme: 'dark' },
    { name: 'on a phone', width: 390 },
  ])('axe finds no violation: $name', async ({ name: _, ...look }) => {
    const pooler = await startPooler();
    const { release } = await load(pooler);
    const page = await open(pooler.address, operator, look);
    await page.locator('#connections tbody tr').first().waitFor();
    await page.getByRole('button', { name: 'About Budget' }).click();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Control+k');
    await page.locator('#commands [role=option]').first().waitFor();
    expect(await violations(page)).toEqual([]);
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(overflow).toBeLessThanOrEqual(0);
    await release();
  });

  test('axe finds no violation in the login', async () => {
    const pooler = await startPooler();
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    await page.goto(pooler.address);
    await page.getByLabel('Password or token').waitFor();
    expect(await violations(page)).toEqual([]);
  });

  async function violations(page: Page): Promise<string[]> {
    // The policy of the page forbids scripts in its text; a tester is above it.
    await page.evaluate(axe);
    return page.evaluate(async () => {
      const { violations: found } = await (
        globalThis as unknown as {
          axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
        }
      ).axe.run();
      return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
    });
  }
});
