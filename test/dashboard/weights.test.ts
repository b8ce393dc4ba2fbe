// The form for the weight of one user: the weights of the others stay, and whoever may only look may not set one.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestPooler } from '../support/pooler.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

const password = 'the-operator-password';
const viewerPassword = 'the-viewer-password';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('an operator sets the weight of one user on the page, and the weights of the others stay', async () => {
  const { pooler, connect } = await startTestPooler(db, {
    fairShares: { capacity: 10, weights: { other: 3 } },
    users: { fixed: { password: 'x', weight: 5 } },
    admin: { adminUsers: [db.user] },
    observability: {
      metricsListen: '127.0.0.1:0',
      pagePassword: password,
      pageViewerPassword: viewerPassword,
    },
  });
  const act = (secret: string, action: object): Promise<Response> =>
    fetch(`http://127.0.0.1:${pooler.metricsPort}/api/act`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'x-headgate': 'page',
      },
      body: JSON.stringify({ action }),
    });
  const weight = { name: 'set_weight', user: db.user, value: '4' };
  expect((await act(viewerPassword, weight)).status).toBe(403);
  expect((await act(password, weight)).status).toBe(200);
  expect([...pooler.config.fairShares.weights]).toEqual([
    ['other', 3],
    [db.user, 4],
  ]);
  const client = await connect();
  await client.query('select 1');
  const console = await connect({ database: 'headgate' });
  const { rows } = await console.query<{ user: string; weight: string }>('SHOW SHARES');
  expect(rows.find(({ user }) => user === db.user)?.weight).toBe('4');
  expect((await act(password, { ...weight, value: 'heavy' })).status).toBe(409);
  expect((await act(password, { ...weight, user: 'a=1,b' })).status).toBe(409);
  expect((await act(password, { ...weight, user: 'fixed' })).status).toBe(409);
  expect((await act(password, { name: 'set_weight', user: db.user })).status).toBe(400);
});
