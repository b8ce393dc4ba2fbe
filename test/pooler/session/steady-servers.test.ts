// Server connections are checked and opened as often as it takes, and no more.
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Keeper } from '../../../src/core/keeper.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { ScriptedServer } from './scripted-server.js';

test.each([
  ['one client', 1, 1],
  ['more clients than servers', 8, 3],
  ['as many servers as clients', 4, 4],
])(
  'server_check_delay = 0 checks a server connection once before a checkout at most: %s',
  async (_, clients, poolSize) => {
    const server = await ScriptedServer.start();
    const pooler = await startTestPooler(server.db, {
      pooling: { poolSize, serverCheckQuery: 'check', serverCheckDelay: 0 },
    });
    const queriesOfEach = 50;
    await Promise.all(
      Array.from({ length: clients }, async () => {
        const client = await pooler.connect();
        for (let n = 0; n < queriesOfEach; n++) await client.query('select 1');
      }),
    );
    const asked = server.connections.flatMap(({ queries }) => queries);
    const checks = asked.filter((text) => text === 'check').length;
    const { acquired = 0 } = pooler.pooler.stats().pools[0]?.totals ?? {};
    expect(acquired).toBeGreaterThanOrEqual(clients * queriesOfEach);
    expect(checks).toBeLessThanOrEqual(acquired);
  },
);

test('server_check_delay = 0 checks before each checkout of a connection that was idle', async () => {
  const server = await ScriptedServer.start();
  const pooler = await startTestPooler(server.db, {
    pooling: { poolSize: 1, serverCheckQuery: 'check', serverCheckDelay: 0 },
  });
  const client = await pooler.connect();
  for (let n = 0; n < 20; n++) await client.query(`select ${n}`);
  const { queries } = server.connection;
  for (let n = 1; n < 20; n++) expect(queries[queries.indexOf(`select ${n}`) - 1]).toBe('check');
});

/** Notes the checks for missing connections. Answers how many the pool with the fewest has made. */
function watchKeepers(): () => number {
  const checks = new Map<Keeper, Set<number>>();
  const { tick } = Keeper.prototype;
  const spy = vi.spyOn(Keeper.prototype, 'tick').mockImplementation(function (this: Keeper, now, size) {
    const wanted = tick.call(this, now, size);
    checks.set(this, (checks.get(this) ?? new Set()).add(this.nextTickAt));
    return wanted;
  });
  onTestFinished(() => spy.mockRestore());
  return () => Math.min(...[...checks.values()].map(({ size }) => size));
}

describe('min_pool_size', () => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await withDatabase();
  });
  afterAll(() => db.drop());

  const cases = [
    ['max_user_connections', { maxUserConnections: 3 }, 3],
    ['max_db_connections', { maxDbConnections: 3 }, 6],
    ['max_server_connections', { maxServerConnections: 3 }, 3],
  ] as const;
  test.each(cases)(
    'above %s settles at the limit, and nothing is opened and closed',
    async (_, limits, settled) => {
      const checks = watchKeepers();
      const { host, port, password, user, database } = db;
      const here = { host, port, password, user, dbname: database };
      const pooler = await startTestPooler(db, {
        databases: { one: here, two: here },
        pooling: { poolSize: 10, minPoolSize: 6 },
        limits,
      });
      for (const name of ['one', 'two']) await (await pooler.connect({ database: name })).query('select 1');
      const sums = (): { live: number; closed: number } => {
        const { pools } = pooler.pooler.stats();
        const sum = (count: (pool: (typeof pools)[number]) => number): number =>
          pools.reduce((total, pool) => total + count(pool), 0);
        return { live: sum(({ live }) => live), closed: sum(({ totals }) => totals.closed) };
      };
      await expect.poll(() => sums().live, { timeout: 5_000 }).toBe(settled);
      const { closed } = sums();
      const before = checks();
      await expect.poll(checks, { timeout: 20_000 }).toBeGreaterThanOrEqual(before + 3);
      expect(sums()).toEqual({ live: settled, closed });
    },
  );
});
