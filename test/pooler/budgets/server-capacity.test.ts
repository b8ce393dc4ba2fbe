// The connections that a server allows are the budget of its users, unless another is configured.
import pg from 'pg';
import { expect, test, vi } from 'vitest';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { soon, startTenants } from './tenants.js';

test('no user is ever refused by a small server, and others have the headroom', async () => {
  const server = await startPostgres({ maxConnections: 12 });
  const owner = new pg.Client({ connectionString: server.url });
  await owner.connect();
  await owner.query('create database app');
  const { rows } = await owner.query("select current_setting('superuser_reserved_connections')::int as kept");
  await owner.end();
  const url = new URL('/app', server.url).href;
  const db: TestDatabase = { ...server, database: 'app', url, drop: async () => {} };
  const headroom = 1;
  const capacity = 12 - rows[0].kept - headroom;
  const { work, settled, show } = await startTenants(db, ['a', 'b'], capacity, {
    fairShares: { capacity: 'auto', headroom },
  });
  // The first connection tells how many there may be.
  const first = work('a', 1, 'select 1');
  await first.more(1);
  await first.stop();
  const known = async (): Promise<void> => {
    const capacities = (await show('SHARES')).map((row) => Number(row.capacity));
    expect(new Set(capacities)).toEqual(new Set([capacity]));
  };
  await vi.waitFor(known, soon);
  const a = work('a', 30, 'select pg_sleep(0.01)');
  await a.more(100);
  const b = work('b', 30, 'select pg_sleep(0.01)');
  await settled({ a: capacity / 2, b: capacity / 2 });
  await Promise.all([a.more(100), b.more(100)]);
  expect([...a.errors, ...b.errors]).toEqual([]);
});
