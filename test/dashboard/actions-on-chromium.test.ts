// Every action of the page in a real browser, from the click to what the pooler does; and tiles that need something to happen first.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startTenants } from '../pooler/budgets/tenants.js';
import { chromiumPath, launchChromium } from '../support/chromium.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';
import {
  askConsole,
  openPage,
  operator,
  type PoolerWithPage,
  soon,
  startWithPage,
  viewer,
  withPage,
} from './browser-page.js';

describe.skipIf(chromiumPath === undefined)('actions in a browser', () => {
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

  /** Chooses an action of the database in the table of pools, and confirms it. */
  async function actOnDatabase(page: Page, action: string, yes: string): Promise<void> {
    await page.getByLabel(`Act on database ${db.database}`).first().selectOption(action);
    await page.getByRole('dialog').getByRole('button', { name: yes, exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }

  async function record(page: Page, action: string): Promise<void> {
    await page.locator('#audit tr', { hasText: action }).filter({ hasText: 'done' }).waitFor();
  }

  async function databaseRow(pooler: PoolerWithPage): Promise<Record<string, unknown>> {
    const rows = await askConsole(pooler, 'show databases');
    return rows.find(({ name }) => name === db.database) ?? {};
  }

  /** Process ids of the sessions that the server has of this pooler's clients. */
  async function sessionOf(client: {
    query(text: string): Promise<{ rows: { pid: number }[] }>;
  }): Promise<number> {
    const { rows } = await client.query('select pg_backend_pid() as pid');
    return rows[0]?.pid as number;
  }

  test('an operator reconnects a database: the next transaction has a new server connection', async () => {
    const pooler = await startWithPage(db);
    const client = await pooler.connect();
    const before = await sessionOf(client);
    const page = await openPage(browser, pooler.address, operator);
    await actOnDatabase(page, 'reconnect', 'Reconnect');
    await vi.waitFor(async () => expect(await sessionOf(client)).not.toBe(before), soon);
    await record(page, `reconnect ${db.database}`);
  });

  test('an operator kills a database: its clients are cut off, and it stays paused until it is resumed', async () => {
    const pooler = await startWithPage(db);
    const client = await pooler.connect();
    await client.query('begin; select 1');
    const gone = new Promise((resolve) => client.once('end', resolve));
    const page = await openPage(browser, pooler.address, operator);
    await actOnDatabase(page, 'kill', 'Kill');
    await gone;
    await vi.waitFor(async () => expect(await databaseRow(pooler)).toMatchObject({ paused: 1 }), soon);
    await record(page, `kill ${db.database}`);
    await page.locator('#pools .tag', { hasText: 'paused' }).waitFor();
    await actOnDatabase(page, 'resume', 'Resume');
    await vi.waitFor(async () => expect(await databaseRow(pooler)).toMatchObject({ paused: 0 }), soon);
  });

  test('an operator lets no new client into a database, and then lets them in again', async () => {
    const pooler = await startWithPage(db);
    const client = await pooler.connect();
    await client.query('select 1');
    const page = await openPage(browser, pooler.address, operator);
    await actOnDatabase(page, 'disable', 'Refuse');
    await expect(pooler.connect()).rejects.toThrow(/disabled|does not allow/);
    await client.query('select 1');
    await actOnDatabase(page, 'enable', 'Accept');
    await pooler.connect();
    await record(page, `enable ${db.database}`);
  });

  test('an operator changes the limit by its button, and reads what is wrong with a value', async () => {
    const pooler = await startWithPage(db);
    await (await pooler.connect()).query('select 1');
    const page = await openPage(browser, pooler.address, operator);
    const budget = page.locator('#budget');
    await budget.getByRole('button', { name: 'Change limit' }).click();
    const field = page.getByLabel('Server connections of all users together');
    expect(await field.inputValue()).toBe('4');
    await field.fill('7');
    await page.getByRole('dialog').getByRole('button', { name: 'Next' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Set', exact: true }).click();
    await budget.locator('.key', { hasText: 'of 7' }).first().waitFor();
    await record(page, 'max_server_connections');
    expect(pooler.pooler.config.limits.maxServerConnections).toBe(7);
    await page.keyboard.press('Control+k');
    await page.locator('#commands [role=option]').first().waitFor();
    await page.keyboard.type('set a limit');
    await page.keyboard.press('Enter');
    await page.getByLabel('Setting').fill('no_such_setting');
    await page.getByLabel('Value').fill('1');
    await page.getByRole('dialog').getByRole('button', { name: 'Next' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Set', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'no_such_setting' }).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  test('an operator sets the weight of a user by keys alone, and the console has it', async () => {
    const pooler = await startWithPage(db);
    await (await pooler.connect()).query('select 1');
    const page = await openPage(browser, pooler.address, operator);
    const button = page.getByRole('button', { name: `Weight of ${db.user}: 1. Change it` });
    await button.focus();
    await page.keyboard.press('Enter');
    const field = page.getByLabel('Twice the weight is twice the share');
    await field.waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('2.5');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Set', exact: true }).press('Enter');
    await page.getByRole('button', { name: `Weight of ${db.user}: 2.5. Change it` }).waitFor();
    const shares = await askConsole(pooler, 'show shares');
    expect(shares.find(({ user }) => user === db.user)).toMatchObject({ weight: '2.5' });
  });

  test('an operator drains the pooler: it ends with the last transaction, and the page says that it is gone', async () => {
    const pooler = await startWithPage(db);
    const client = await pooler.connect();
    await client.query('begin; select 1');
    const page = await openPage(browser, pooler.address, operator, { isLosable: true });
    await page.keyboard.press('Control+k');
    await page.locator('#commands [role=option]').first().waitFor();
    await page.keyboard.type('drain');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Drain', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.locator('.top .tag', { hasText: 'draining' }).waitFor();
    await client.query('commit');
    await page.getByText('connection lost, trying again').waitFor();
  });

  test('a viewer is offered no action anywhere, and is refused one that is sent all the same', async () => {
    const pooler = await startWithPage(db);
    await (await pooler.connect()).query('select 1');
    const page = await openPage(browser, pooler.address, viewer);
    await page.locator('#connections tbody tr').first().waitFor();
    await page.locator('#shares tbody tr').first().waitFor();
    const buttons = await page
      .locator('main button, main select:not(.choice select)')
      .evaluateAll((all) =>
        all.map(
          (one) =>
            (one as { ariaLabel?: string | null }).ariaLabel ?? (one as { textContent?: string }).textContent,
        ),
      );
    expect(buttons.filter((name) => !/^(About |Previous|Next)/.test(name ?? ''))).toEqual([]);
    const status = await page.evaluate(async () => {
      const { csrf } = (await (await fetch('/api/session')).json()) as { csrf: string };
      const headers = { 'content-type': 'application/json', 'x-headgate-csrf': csrf };
      const body = JSON.stringify({ action: { name: 'pause' } });
      return (await fetch('/api/act', { method: 'POST', headers, body })).status;
    });
    expect(status).toBe(403);
    await (await pooler.connect()).query('select 1');
  });

  test('tiles show ages, a pinned session with its reason, and who lost a share to whom and why', async () => {
    const tenants = await startTenants(db, ['one', 'other'], 4, { observability: withPage });
    const ones = await Promise.all(Array.from({ length: 4 }, () => tenants.client('one')));
    for (const client of ones) await client.query('begin; select 1');
    const page = await openPage(browser, `http://127.0.0.1:${tenants.pooler.metricsPort}/`, viewer);
    // Their login needs a server connection, too: nobody of their pool was here before.
    const answers = Promise.all(
      Array.from({ length: 2 }, async () => (await tenants.client('other')).query('select 1')),
    );
    // A waiting user is entitled to a share at once; the others give it back as they commit.
    const changes = page.locator('#rebalances tbody tr');
    const other = tenants.nameOf('other');
    await changes
      .filter({ hasText: other })
      .filter({ hasText: /gained: 0 → [12]arrived/ })
      .waitFor();
    await changes
      .filter({ hasText: tenants.nameOf('one') })
      .filter({ hasText: /lost: 4 → [23]/ })
      .waitFor();
    for (const client of ones) await client.query('commit');
    await answers;
    await ones[0]?.query('create temp table mine (id int)');
    await page.locator('#pins tbody tr', { hasText: tenants.nameOf('one') }).waitFor();
    expect(await page.locator('#pins .chips').innerText()).toMatch(/temp/i);
    await vi.waitFor(async () => {
      const ages = await page.locator('#lives table.bars').first().locator('td.number').allInnerTexts();
      expect(ages.reduce((sum, text) => sum + Number(text), 0)).toBeGreaterThan(0);
    }, soon);
  });
});
