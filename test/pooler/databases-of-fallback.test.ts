// Databases that no entry of the configuration names, and that `*` stands for: what is said of them on the console holds and can be undone.
import type pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startTestPooler, type TestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

type Rows = Record<string, unknown>[];

/** A pooler that serves every database of the server, someone at its console, and what SHOW DATABASES says there. */
async function start(tree = {}): Promise<TestPooler & { admin: pg.Client; databases(): Promise<Rows> }> {
  const { host, port, password } = db;
  const pooler = await startTestPooler(db, {
    admin: { adminUsers: [db.user] },
    databases: { listed: { host, port }, [db.database]: undefined, '*': { host, port, password } },
    ...tree,
  });
  const admin = await pooler.connect({ database: 'headgate' });
  return { ...pooler, admin, databases: async () => (await admin.query('SHOW DATABASES')).rows };
}

test('PAUSE of a database of the fallback that was not used yet is shown, holds, and ends with RESUME', async () => {
  const { admin, connect, databases } = await start();
  await admin.query(`PAUSE ${db.database}`);
  expect(await databases()).toMatchObject([
    { name: 'listed', paused: 0 },
    { name: db.database, paused: 1, current_connections: 0 },
  ]);
  const coming = connect();
  await vi.waitFor(async () => {
    const { rows } = await admin.query('SHOW CLIENTS');
    expect(rows).toContainEqual(expect.objectContaining({ database: db.database, state: 'waiting' }));
  });
  await admin.query(`RESUME ${db.database}`);
  expect((await (await coming).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(await databases()).toMatchObject([{ name: 'listed' }, { name: db.database, paused: 0 }]);
});

test('RESUME without a name resumes it, too', async () => {
  const { admin, databases } = await start();
  await admin.query('PAUSE nobody_uses_it');
  await admin.query('RESUME');
  expect(await databases()).toMatchObject([{ name: 'listed' }]);
  await expect(admin.query('RESUME')).rejects.toThrow('nothing is paused');
});

test('DISABLE of a database of the fallback that was not used yet is shown, until ENABLE', async () => {
  const { admin, connect, databases } = await start();
  await admin.query(`DISABLE ${db.database}`);
  expect(await databases()).toMatchObject([{ name: 'listed' }, { name: db.database, disabled: 1 }]);
  await expect(connect()).rejects.toThrow('is disabled at the moment');
  await admin.query(`ENABLE ${db.database}`);
  expect(await databases()).toMatchObject([{ name: 'listed' }]);
  await connect();
});

test('one that was in use is still paused when its pool is forgotten, and can be resumed', async () => {
  const { admin, connect, databases } = await start({
    timeouts: { autodbIdleTimeout: '1ms', queryTimeout: '80ms' },
  });
  const client = await connect();
  await client.query('select 1');
  await admin.query(`PAUSE ${db.database}`);
  await client.end();
  await vi.waitFor(async () => expect((await admin.query('SHOW POOLS')).rows).toEqual([]), {
    timeout: 10_000,
  });
  expect(await databases()).toMatchObject([{ name: 'listed' }, { name: db.database, paused: 1 }]);
  await admin.query(`RESUME ${db.database}`);
  await (await connect()).query('select 1');
});
