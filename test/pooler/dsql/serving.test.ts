// The pooler in front of the stand-in for Aurora DSQL, with tokens of AWS IAM.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import type { ConfigTree, TestPooler } from '../../support/pooler.js';
import { startDsqlPooler, tokensOf } from './dsql-pooler.js';

let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql();
  await dsql.run('CREATE TABLE notes (id int PRIMARY KEY, note text)');
  await dsql.addRole('app');
  await dsql.run('GRANT SELECT, INSERT, UPDATE, DELETE ON notes TO app');
  await dsql.reset();
});
afterAll(() => dsql.stop());
afterEach(async () => {
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

const start = (tree: ConfigTree = {}, provide = tokensOf(dsql)): Promise<TestPooler> =>
  startDsqlPooler(dsql, tree, { user: 'app', provide });

test.each(['transaction', 'session'])(
  'clients of the pooler in %s mode run statements on DSQL, and settings of one do not reach the next',
  async (mode) => {
    const pooler = await start({ pooling: { poolMode: mode, poolSize: 1 } });
    for (let count = 0; count < 3; count += 1) {
      const client = await pooler.connect();
      expect((await client.query('SHOW search_path')).rows).toEqual([{ search_path: '"$user", public' }]);
      await client.query('SET search_path = elsewhere');
      await client.query("SET timezone = 'Europe/Berlin'");
      expect((await client.query('SHOW search_path')).rows).toEqual([{ search_path: 'elsewhere' }]);
      expect((await client.query('SHOW timezone')).rows).toEqual([{ TimeZone: 'Europe/Berlin' }]);
      const named = {
        name: 'insert',
        text: 'INSERT INTO public.notes VALUES ($1, $2)',
        values: [count, mode],
      };
      await client.query(named);
      await client.query('BEGIN');
      await client.query('DELETE FROM public.notes WHERE id = $1', [count]);
      await client.query('COMMIT');
      await client.end();
    }
    expect(dsql.report().refusals).toEqual([]);
    expect(dsql.connectionCounts()).toMatchObject({ accepted: 1, peak: 1 });
    await pooler.stop();
  },
);

test('a token that has expired meanwhile is replaced by the pooler, and its client notices nothing', async () => {
  let asked = 0;
  const pooler = await start({}, async (request) => {
    asked += 1;
    if (asked > 1) return tokensOf(dsql)(request);
    return {
      token: dsql.expiredToken('app', request.host),
      expiresAt: new Date(Date.now() + 900_000),
    };
  });
  const client = await pooler.connect();
  expect((await client.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
  expect(dsql.logins.map(({ refusal }) => refusal?.code)).toEqual(['08006', undefined]);
  expect(asked).toBe(2);
  await pooler.stop();
});

test('a refusal of DSQL reaches the client of the pooler in the words of DSQL', async () => {
  const pooler = await start();
  const client = await pooler.connect();
  expect(await rejectionOf(client.query('LISTEN x'))).toMatchObject({ code: '0A000' });
  expect(await rejectionOf(client.query('CREATE TABLE public.mine (n int)'))).toMatchObject({
    code: '42501',
  });
  dsql.setFaults({ conflictShare: 1 });
  expect(await rejectionOf(client.query("INSERT INTO notes VALUES (1, 'x')"))).toMatchObject({
    code: '40001',
  });
  dsql.setFaults({});
  await client.query('SELECT 1');
  await pooler.stop();
});
