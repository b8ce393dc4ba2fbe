// Everything at once before Aurora DSQL: two workers, tokens that expire, a rate, short lives, named statements and two users.
import type pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { serve } from '../workers/served.js';
import { databaseOf, treeOf } from './dsql-pooler.js';
import { LoginTimes } from './login-times.js';

const bucket = { rate: 8, burst: 8 };
/** A permit may come back to the server's bucket between the permit and the login. */
const ofServer = { rate: bucket.rate, burst: bucket.burst + 2 };
const users = ['one', 'other'] as const;
const clientsOfUser = 4;
const roundsOfClient = 20;
const lifeMs = 700;
const times = new LoginTimes();
let dsql: TestDsql;
beforeAll(async () => {
  dsql = await startTestDsql({
    connectionRate: ofServer.rate,
    connectionBurst: ofServer.burst,
    connectionLifeMs: 2 * lifeMs,
    onLogin: (login) => {
      times.onLogin(login);
      // Tokens are good again as soon as one was refused.
      if (login.refusal?.code === '08006') dsql.setFaults({});
    },
  });
  await dsql.run('CREATE TABLE entries (writer text, round int, note text, PRIMARY KEY (writer, round))');
  for (const user of users) {
    await dsql.addRole(user);
    await dsql.run(`GRANT SELECT, INSERT, UPDATE, DELETE ON entries TO ${user}`);
  }
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await dsql.stop();
});

/** Works in transactions, each with statements that have a name, and says which of its rounds were committed. */
async function work(client: pg.Client, writer: string, roundOver: () => void): Promise<number[]> {
  const done: number[] = [];
  await client.query(`SET statement_timeout = ${10_000 + writer.length}`);
  for (let round = 0; round < roundsOfClient; round++) {
    await client.query('BEGIN');
    await client.query({
      name: 'add',
      text: 'INSERT INTO entries VALUES ($1, $2, $3)',
      values: [writer, round, 'first'],
    });
    await client.query('SET LOCAL lock_timeout = 1000');
    const { rowCount } = await client.query({
      name: 'mark',
      text: 'UPDATE entries SET note = $3 WHERE writer = $1 AND round = $2',
      values: [writer, round, `round ${round}`],
    });
    expect(rowCount).toBe(1);
    await client.query(round % 5 === 4 ? 'ROLLBACK' : 'COMMIT');
    if (round % 5 !== 4) done.push(round);
    roundOver();
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  expect((await client.query('SHOW statement_timeout')).rows[0].statement_timeout).toMatch(/^1\d+ms$/);
  return done;
}

test('nothing is lost and no limit is exceeded while connections end and tokens expire', async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', dsql.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', dsql.secretAccessKey);
  await dsql.reset();
  times.logins.length = 0;
  const poolSize = 3;
  const served = await serve(
    databaseOf(dsql, 'one'),
    treeOf(dsql, {
      pooling: { poolSize, serverLifetime: `${lifeMs}ms` },
      dsql: { connectionRate: bucket.rate, connectionBurst: bucket.burst },
      admin: { statsUsers: ['one'] },
    }),
  );
  const clients = (await Promise.all(users.map((user) => served.spread(clientsOfUser, { user })))).flatMap(
    (ofUser, index) => ofUser.map((client, n) => ({ client, writer: `${users[index]} ${n}` })),
  );
  let rounds = 0;
  const roundOver = (): void => {
    if (++rounds === clients.length * 3) dsql.setFaults({ expireTokens: true });
  };
  const done = await Promise.all(
    clients.map(async ({ client, writer }) => [writer, await work(client, writer, roundOver)] as const),
  );
  const check = await dsql.connect();
  const { rows } = await check.query('SELECT writer, round, note FROM entries');
  await check.end();
  const found = rows.map(({ writer, round, note }) => `${writer}/${round}/${note}`).sort();
  const expected = done.flatMap(([writer, rounds]) => rounds.map((n) => `${writer}/${n}/round ${n}`)).sort();
  expect(found).toEqual(expected);
  // Lives were short, so there were many logins; the cluster found none too fast, and neither does a replay.
  const ofPooler = times.logins.filter(({ user }) => user !== 'admin');
  expect(ofPooler.length).toBeGreaterThan(2 * poolSize * users.length);
  expect(times.logins.map(({ code }) => code).filter((code) => code === '53400')).toEqual([]);
  expect(times.logins.some(({ code }) => code === '08006')).toBe(true);
  expect(times.fewestLeft(ofServer)).toBeGreaterThanOrEqual(0);
  expect(dsql.connectionCounts().peak).toBeLessThanOrEqual(users.length * poolSize + 1);
  const console = await served.console();
  const stats = await console.query('SHOW STATS');
  const swallowed = stats.rows.find(({ database }) => database === 'postgres').total_swallowed_count;
  expect(Number(swallowed)).toBe(clients.length * (roundsOfClient + 1));
  await served.end();
  expect(dsql.troubles).toEqual([]);
});
