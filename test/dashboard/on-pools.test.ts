// `dashboard()`: the page for pools inside a program, on real connections.
import { expect, onTestFinished, test, vi } from 'vitest';
import type { SessionAnswer } from '../../src/dashboard/snapshot.js';
import { type DashboardAction, type DashboardOptions, dashboard } from '../../src/dashboard.js';
import { Pool, tokenBucket } from '../../src/index.js';
import { startTestPooler } from '../support/pooler.js';
import { withDatabase } from '../support/postgres.js';
import { lookAt } from './look-at.js';

const password = 'the-operator-password';
const headers = { authorization: `Bearer ${password}`, 'content-type': 'application/json' };
/** The machine may be busy. */
const soon = { timeout: 20_000, interval: 50 };

async function startPage(options: DashboardOptions = {}, more: object = {}) {
  const db = await withDatabase();
  onTestFinished(() => db.drop());
  const { host, port, user, password: secret, database } = db;
  const login = { host, port, user, password: secret, database };
  const pool = new Pool({ ...login, name: 'orders', max: 3, maxLifetimeSeconds: 3_600, ...more });
  onTestFinished(() => pool.end({ deadline: 100 }).catch(() => {}));
  const page = await dashboard(pool, { password, ...options });
  onTestFinished(() => page.close());
  return { pool, page, base: `http://127.0.0.1:${page.port}` };
}

function act(base: string, action: object): Promise<Response> {
  return fetch(`${base}/api/act`, { method: 'POST', headers, body: JSON.stringify({ action }) });
}

test('the page has the numbers of the pool: connections by state, waiting callers, ages', async () => {
  const { pool, base } = await startPage();
  const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
  const waiting = pool.connect();
  await vi.waitFor(async () => {
    const { subject, budgets, now, lives, verdict } = await lookAt(base, password);
    expect(subject).toMatchObject({
      name: 'orders',
      kind: 'pool',
      state: 'active',
      actions: ['pause', 'resume', 'set'],
    });
    expect(budgets[0]).toMatchObject({ capacity: 3, held: 3, exceeded: 0, peak: 3, waiting: 1 });
    expect(budgets[0]).toMatchObject({ demand: 4 });
    expect(now.callers).toMatchObject({ active: 3, waiting: 1 });
    expect(now.callers.longestWaitMs).toBeGreaterThan(0);
    expect(lives?.ages.reduce((sum, count) => sum + count, 0)).toBe(3);
    expect(lives?.nextExpiryMs).toBeGreaterThan(3_000_000);
    expect(verdict.sentence).toMatch(
      /^The size of pool orders binds: 3 of 3 connections are in use, 1 caller waits \(the longest for \S+\)\.$/,
    );
  }, soon);
  for (const client of clients) client.release();
  (await waiting).release();
});

test('the page has the rate at which a pool may open connections', async () => {
  const { base } = await startPage({}, { rateLimiter: tokenBucket({ rate: 50, burst: 7 }) });
  await vi.waitFor(async () => {
    const { rates } = await lookAt(base, password);
    expect(rates).toEqual([expect.objectContaining({ server: 'orders', burst: 7 })]);
  }, soon);
});

test('the pool is paused, resumed and resized from the page', async () => {
  const actions: DashboardAction[] = [];
  const { pool, base } = await startPage({ onAction: (record) => actions.push(record) });
  expect((await act(base, { name: 'pause' })).status).toBe(200);
  expect(pool.stats().state).toBe('paused');
  expect((await act(base, { name: 'resume' })).status).toBe(200);
  expect(pool.stats().state).toBe('open');
  expect((await act(base, { name: 'set', key: 'max', value: '5' })).status).toBe(200);
  expect(pool.stats().limit).toBe(5);
  expect((await act(base, { name: 'set', key: 'max', value: 'many' })).status).toBe(409);
  expect((await act(base, { name: 'set', key: 'min', value: '1' })).status).toBe(409);
  expect((await act(base, { name: 'kill' })).status).toBe(400);
  expect(actions.map(({ action, outcome }) => `${action}: ${outcome}`)).toEqual([
    'pause (orders): done',
    'resume (orders): done',
    'set max 5 (orders): done',
    'set max many (orders): failed',
    'set min 1 (orders): failed',
  ]);
});

const none = { acquire: () => new Error('The budget is used up.'), release: () => {} };

test.each([
  ['a pool without a lease', { leases: none }, 'gets no lease: the budget above it is used up'],
  ['a pool without a permit', { rateLimiter: { take: () => 3_600_000 } }, 'it waits for its rate limiter'],
])('the page says what %s waits for', async (_, options, expected) => {
  const { pool, base } = await startPage({}, options);
  const waiting = pool.connect();
  waiting.catch(() => {});
  await vi.waitFor(async () => {
    const { verdict, pools } = await lookAt(base, password);
    expect(verdict.sentence).toContain('1 caller waits');
    expect(verdict.sentence).toContain(`: pool orders ${pools.rows[0]?.shortage}`);
    expect(verdict.sentence).toContain(expected);
  }, soon);
});

test('a pool that has ended is shown as closed', async () => {
  const { pool, base } = await startPage();
  await pool.query('select 1');
  await pool.end();
  await vi.waitFor(async () => {
    const { subject, verdict } = await lookAt(base, password);
    expect(subject.state).toBe('closed');
    expect(verdict.sentence).toBe('It has ended: no connection is left.');
  }, soon);
  expect((await act(base, { name: 'resume' })).status).toBe(409);
});

test('several pages in one process show a pool each, and closing one leaves the others', async () => {
  const pools = ['orders', 'users'].map((name) => new Pool({ name }));
  const pages = await Promise.all(pools.map((pool) => dashboard(pool, { password })));
  const bases = pages.map(({ port }) => `http://127.0.0.1:${port}`);
  const names = await Promise.all(bases.map(async (base) => (await lookAt(base, password)).subject.name));
  expect(names).toEqual(['orders', 'users']);
  await pages[0]?.close();
  await expect(fetch(`${bases[0]}/healthz`)).rejects.toThrow();
  expect((await lookAt(bases[1] ?? '', password)).subject.name).toBe('users');
  await pages[1]?.close();
});

test('without a password the address has a token, and on an address that others reach there is no page', async () => {
  const pool = new Pool({ name: 'unused' });
  const page = await dashboard(pool);
  onTestFinished(() => page.close());
  expect(page.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{32}$/);
  await expect(dashboard(pool, { host: '0.0.0.0' })).rejects.toThrow(
    'host: can be reached by others: give a password',
  );
  await expect(dashboard(pool, { password: 'short' })).rejects.toThrow('at least 8 characters');
  await expect(dashboard(pool, { password: 12345678 as unknown as string })).rejects.not.toThrow('12345678');
  await expect(dashboard(pool, { allowedHosts: 'a' as unknown as string[] })).rejects.toThrow(
    'allowedHosts: must be a list of host names',
  );
  await expect(dashboard([])).rejects.toThrow('there is nothing to show');
});

test('metrics are beside the page, and a name that is not of this machine is refused', async () => {
  const { base } = await startPage({ metrics: async () => 'up 1\n', allowedHosts: ['pools.example'] });
  expect(await (await fetch(`${base}/metrics`)).text()).toBe('up 1\n');
  const { request } = await import('node:http');
  const statusFor = (host: string): Promise<number | undefined> =>
    new Promise((resolve) => {
      request(`${base}/metrics`, { headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).end();
    });
  expect(await statusFor('evil.example')).toBe(421);
  expect(await statusFor('pools.example:9128')).toBe(200);
});

test('Two pools of one name are two subjects, each with its own numbers, of a dashboard and beside a pooler', async () => {
  const db = await withDatabase();
  onTestFinished(() => db.drop());
  const { host, port, user, password: secret, database } = db;
  const pools = [2, 3].map(
    (max) => new Pool({ host, port, user, password: secret, database, name: 'same', max }),
  );
  onTestFinished(async () => void (await Promise.all(pools.map((pool) => pool.end()))));
  const page = await dashboard(pools, { password });
  onTestFinished(() => page.close());
  const pooler = await startTestPooler(db, {
    observability: { metricsListen: '127.0.0.1:0', pagePassword: password },
  });
  for (const pool of pools) pooler.pooler.showPool(pool);
  for (const at of [page.port, pooler.pooler.metricsPort]) {
    const base = `http://127.0.0.1:${at}`;
    const session = (await (await fetch(`${base}/api/session`, { headers })).json()) as SessionAnswer;
    const subjects = session.subjects.filter(({ kind }) => kind === 'pool');
    expect(subjects.map(({ name }) => name)).toEqual(['same', 'same (2)']);
    for (const [i, { id }] of subjects.entries())
      await vi.waitFor(async () => {
        const { budgets } = await lookAt(base, password, id);
        expect(budgets[0]?.capacity).toBe(i + 2);
      }, soon);
  }
});
