// Statements of several clients on one server connection: each gets its own answer, whatever happens to the others.
// HEADGATE_CANCELS=<number> sends more cancel requests.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SqlState } from '../../../src/wire/sql-states.js';
import { sendCancelRequest } from '../../support/cancel-request.js';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

const cancels = Number(process.env['HEADGATE_CANCELS'] ?? 200);

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await client.query('create table notes (tag text)');
  await client.query('create table counted (tag text)');
  await client.end();
});
afterAll(() => db.drop());

const depth = 4;

function sharing(pooling: ConfigTree[string] = {}): Promise<TestPooler> {
  // Busy machines are slow; that is no reason not to share.
  return startTestPooler(db, {
    pooling: { poolSize: 2, multiplexDepth: depth, multiplexLongest: '10s', ...pooling },
  });
}

function multiplexed({ pooler }: TestPooler): number {
  return pooler.stats().pools[0]?.tally.multiplexed ?? 0;
}

type Ask = (client: pg.Client, tag: string) => Promise<pg.QueryResult>;

const protocols: readonly (readonly [string, Ask])[] = [
  ['the simple protocol', (client, tag) => client.query(`select '${tag}' as tag, length('abc')`)],
  ['the extended protocol', (client, tag) => client.query('select $1::text as tag, upper($1)', [tag])],
  [
    'prepared statements',
    (client, tag) =>
      client.query({ name: 'tagged', text: 'select $1::text as tag, lower($1)', values: [tag] }),
  ],
];

async function connectAll(pooler: TestPooler, count: number): Promise<pg.Client[]> {
  return Promise.all(Array.from({ length: count }, () => pooler.connect()));
}

/** Every client asks so often, one statement after the other; what each was answered is checked. */
async function askAll(clients: readonly pg.Client[], times: number, ask: Ask): Promise<void> {
  await Promise.all(
    clients.map(async (client, index) => {
      for (let time = 0; time < times; time++) {
        const tag = `${index}-${time}`;
        const { rows } = await ask(client, tag);
        expect(rows).toEqual([expect.objectContaining({ tag })]);
      }
    }),
  );
}

describe.each(protocols)('statements of %s that wait', (_name, ask) => {
  test.each([
    ['each on its own', false],
    ['by a name of the pooler', true],
  ])('share connections, and every client gets its own answers: %s', async (_how, prepareUnnamed) => {
    const pooler = await sharing({ prepareUnnamed });
    const clients = await connectAll(pooler, 12);
    await askAll(clients, 30, ask);
    expect(multiplexed(pooler)).toBeGreaterThan(10);
    expect(pooler.pooler.stats().pools[0]?.live).toBeLessThanOrEqual(2);
  });

  test('statements that share a connection do not fail when one of them does', async () => {
    const pooler = await sharing({ poolSize: 1 });
    const clients = await connectAll(pooler, 8);
    await Promise.all(
      clients.map(async (client, index) => {
        for (let time = 0; time < 30; time++) {
          const tag = `${index}-${time}`;
          if (index % 2 === 0) expect((await ask(client, tag)).rows[0].tag).toBe(tag);
          else
            await expect(client.query('select 1 / ($1::int - 1)', [1])).rejects.toThrow('division by zero');
        }
      }),
    );
    expect(multiplexed(pooler)).toBeGreaterThan(10);
  });
});

test('nothing shares a connection by default', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
  const clients = await connectAll(pooler, 6);
  await askAll(clients, 20, (client, tag) => client.query('select $1::text as tag', [tag]));
  expect(multiplexed(pooler)).toBe(0);
});

test('nothing shares a connection as long as there are free ones', async () => {
  const pooler = await sharing({ poolSize: 6 });
  const clients = await connectAll(pooler, 6);
  // At first there are none: while those are opened, statements may share what is there.
  while ((pooler.pooler.stats().pools[0]?.live ?? 0) < 6)
    await askAll(clients, 2, (client, tag) => client.query('select $1::text as tag', [tag]));
  const opening = multiplexed(pooler);
  await askAll(clients, 20, (client, tag) => client.query('select $1::text as tag', [tag]));
  expect(pooler.pooler.stats().pools[0]?.live).toBe(6);
  expect(multiplexed(pooler)).toBe(opening);
});

const write: Ask = (client, tag) => client.query('insert into notes values ($1) returning tag', [tag]);

test('statements that write run alone on their connection', async () => {
  const pooler = await sharing();
  await askAll(await connectAll(pooler, 8), 10, write);
  expect(multiplexed(pooler)).toBe(0);
});

test('statements that write share connections where all statements may', async () => {
  const pooler = await sharing({ multiplexStatements: 'all' });
  const clients = await connectAll(pooler, 8);
  const { rows: before } = await (clients[0] as pg.Client).query('select count(*)::int as n from notes');
  await askAll(clients, 10, write);
  expect(multiplexed(pooler)).toBeGreaterThan(5);
  const { rows: after } = await (clients[0] as pg.Client).query('select count(*)::int as n from notes');
  expect(after[0].n - before[0].n).toBe(80);
});

test('transactions, settings and pinned sessions of other clients stay their own', async () => {
  const pooler = await sharing();
  const clients = await connectAll(pooler, 16);
  await Promise.all(
    clients.map(async (client, index) => {
      // The others have nothing of their own, and share connections.
      const zone = ['Asia/Tokyo', 'UTC', 'Asia/Tokyo'][index];
      if (zone !== undefined) await client.query(`set timezone = '${zone}'`);
      for (let time = 0; time < 15; time++) {
        const { rows } = await client.query(
          "select extract(timezone from '2026-01-01 12:00'::timestamptz)::int as zone",
        );
        if (zone !== undefined) expect(rows[0].zone).toBe(zone === 'UTC' ? 0 : 32_400);
        if (index > 3) continue;
        await client.query('begin');
        await client.query('create temp table mine on commit drop as select $1::int as n', [index]);
        const { rows: mine } = await client.query('select n from mine');
        expect(mine).toEqual([{ n: index }]);
        await client.query('commit');
      }
    }),
  );
  expect(multiplexed(pooler)).toBeGreaterThan(0);
});

test('large answers go to whom they belong', async () => {
  const pooler = await sharing({ poolSize: 1 });
  const clients = await connectAll(pooler, 6);
  await Promise.all(
    clients.map(async (client, index) => {
      for (let time = 0; time < 8; time++) {
        const { rows } = await client.query('select repeat($1, $2) as text, n from generate_series(1, 5) n', [
          String(index),
          40_000 + time,
        ]);
        expect(rows.map(({ text }) => text)).toEqual(new Array(5).fill(String(index).repeat(40_000 + time)));
      }
    }),
  );
  expect(multiplexed(pooler)).toBeGreaterThan(5);
});

test('a client that sends several statements at once gets all answers, in order', async () => {
  const pooler = await sharing({ poolSize: 1 });
  const clients = await connectAll(pooler, 6);
  await Promise.all(
    clients.map(async (client, index) => {
      for (let time = 0; time < 10; time++) {
        const all = await Promise.all(
          ['a', 'b', 'c'].map((part) => client.query(`select '${index}-${time}-${part}' as tag`)),
        );
        expect(all.map(({ rows }) => rows[0].tag)).toEqual(
          ['a', 'b', 'c'].map((part) => `${index}-${time}-${part}`),
        );
      }
    }),
  );
});

test('clients that leave in the middle take nothing from the others', async () => {
  const pooler = await sharing({ poolSize: 1 });
  const clients = await connectAll(pooler, 6);
  const leaving = (async () => {
    for (let time = 0; time < 15; time++) {
      const guests = await connectAll(pooler, 3);
      for (const guest of guests) {
        guest.query('select count(*) from generate_series(1, 3000)').catch(() => {});
      }
      await clients[0]?.query('select 1');
      for (const guest of guests) {
        (guest as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
      }
    }
  })();
  await askAll(clients, 40, (client, tag) => client.query('select $1::text as tag', [tag]));
  await leaving;
  expect(multiplexed(pooler)).toBeGreaterThan(10);
  await expect.poll(() => pooler.pooler.stats().pools[0]?.inUse).toBe(0);
});

/** Runs the statement, and asks to cancel it at once. True if that has hit it. */
async function runAndCancel(pooler: TestPooler, client: pg.Client, run: Promise<unknown>): Promise<boolean> {
  const closed = sendCancelRequest(client, pooler);
  const isHit = await run.then(
    () => false,
    (error: pg.DatabaseError) => {
      expect(error.code).toBe(SqlState.queryCanceled);
      return true;
    },
  );
  await closed;
  return isHit;
}

/** Sends cancel requests from 4 clients while 8 others ask on the same connections. Returns the tags of statements that were hit. */
async function cancelUnderLoad(
  pooler: TestPooler,
  ask: (client: pg.Client, tag: string, steps: number) => Promise<pg.QueryResult>,
): Promise<{ readonly answered: string[]; readonly hit: string[] }> {
  const clients = await connectAll(pooler, 12);
  const cancelling = clients.splice(0, 4);
  const [answered, hit]: [string[], string[]] = [[], []];
  let isOver = false;
  const others = clients.map(async (client, index) => {
    for (let time = 0; !isOver; time++) {
      const tag = `${index}-${time}`;
      const { rows } = await ask(client, tag, 3_000);
      expect(rows[0].tag).toBe(tag);
      answered.push(tag);
    }
  });
  await Promise.all(
    cancelling.map(async (client, index) => {
      for (let time = 0; time < cancels / cancelling.length; time++) {
        const tag = `c${index}-${time}`;
        const run = ask(client, tag, 9_000).then(({ rows }) => expect(rows[0].tag).toBe(tag));
        (await runAndCancel(pooler, client, run)) ? hit.push(tag) : answered.push(tag);
      }
    }),
  );
  isOver = true;
  await Promise.all(others);
  const tally = pooler.pooler.stats().pools[0]?.tally;
  if (process.env['HEADGATE_CANCELS'] !== undefined)
    console.log(
      `${cancels} cancel requests, ${answered.length} statements answered, ${tally?.multiplexed} of all behind others: ` +
        `${hit.length} hit, ${tally?.multiplexedAgain} of others run again`,
    );
  expect(hit.length).toBeGreaterThan(0);
  expect(multiplexed(pooler)).toBeGreaterThan(10);
  return { answered, hit };
}

test('a cancel request hits no statement of another client', async () => {
  const pooler = await sharing({ poolSize: 2, multiplexLongest: '60s' });
  await cancelUnderLoad(pooler, (client, tag, steps) =>
    client.query('select $1::text as tag, count(*) from generate_series(1, $2::int)', [tag, steps]),
  );
}, 600_000);

test('a write happens once if it is answered and not at all if it is cancelled, with late cancel requests, too', async () => {
  const pooler = await sharing({ poolSize: 2, multiplexLongest: '60s', multiplexStatements: 'all' });
  const { answered, hit } = await cancelUnderLoad(pooler, (client, tag, steps) =>
    client.query(
      'insert into counted select $1 from (select count(*) from generate_series(1, $2::int)) n returning tag',
      [tag, steps],
    ),
  );
  const client = await pooler.connect();
  const { rows } = await client.query('select tag from counted');
  expect(rows.map(({ tag }) => tag).sort()).toEqual(answered.sort());
  expect(rows.filter(({ tag }) => hit.includes(tag))).toEqual([]);
}, 600_000);

test('a statement behind one that turns out to be slow runs on another connection', async () => {
  const pooler = await sharing({ poolSize: 2, multiplexLongest: '100ms' });
  const [first, second, blocked, behind] = (await connectAll(pooler, 4)) as [
    pg.Client,
    pg.Client,
    pg.Client,
    pg.Client,
  ];
  const outsider = new pg.Client({ connectionString: db.url });
  await outsider.connect();
  const read = (client: pg.Client, tag: string): Promise<pg.QueryResult> =>
    client.query('select $1::text as tag from notes limit 1', [tag]);
  const other = (tag: string): Promise<pg.QueryResult> => behind.query('select $1::text as tag', [tag]);
  await outsider.query("insert into notes values ('x')");
  await expect
    .poll(async () => {
      // Both are known to be short once they have waited.
      const before = multiplexed(pooler);
      for (const client of [first, second]) await client.query('begin');
      for (const client of [first, second]) await client.query('select 1');
      const waiting = [read(blocked, 'a'), other('b')];
      await expect.poll(() => pooler.pooler.stats().waiting).toBe(2);
      await first.query('commit');
      await Promise.all(waiting);
      await second.query('commit');
      return multiplexed(pooler) - before;
    })
    .toBe(1);
  for (const client of [first, second]) await client.query('begin');
  for (const client of [first, second]) await client.query('select 1');
  await outsider.query('begin');
  await outsider.query('lock table notes in access exclusive mode');
  let isBlocked = true;
  const slow = read(blocked, 'a').then(() => {
    isBlocked = false;
  });
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(1);
  const quick = other('b');
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(2);
  await first.query('commit');
  await expect.poll(() => multiplexed(pooler)).toBeGreaterThan(1);
  await second.query('commit');
  expect((await quick).rows).toEqual([{ tag: 'b' }]);
  expect(isBlocked).toBe(true);
  await outsider.query('commit');
  await slow;
  await outsider.end();
});

test('the console shows which client waits behind which', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 1, multiplexDepth: depth, multiplexLongest: '10s' },
    admin: { adminUsers: [db.user] },
  });
  const clients = await connectAll(pooler, 4);
  const console_ = await pooler.connect({ database: 'headgate' });
  const outsider = new pg.Client({ connectionString: db.url });
  await outsider.connect();
  const ask = (client: pg.Client, tag: string): Promise<pg.QueryResult> =>
    client.query('select $1::text as tag, count(*) from notes', [tag]);
  while (multiplexed(pooler) === 0) await Promise.all(clients.map((client) => ask(client, 'x')));
  await clients[0]?.query('begin');
  await clients[0]?.query('select 1');
  await outsider.query('begin');
  await outsider.query('lock table notes in access exclusive mode');
  const waiting = clients.slice(1).map((client) => ask(client, 'x'));
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(3);
  await clients[0]?.query('commit');
  await expect
    .poll(async () => (await console_.query('show servers')).rows[0].followers.split(' ').length)
    .toBe(2);
  const { rows: servers } = await console_.query('show servers');
  const { rows } = await console_.query('show clients');
  const behind = rows.filter(({ state, link }) => state === 'waiting' && link === servers[0].ptr);
  expect(behind.map(({ ptr }) => ptr).sort()).toEqual(servers[0].followers.split(' ').sort());
  await outsider.query('commit');
  await Promise.all(waiting);
  await outsider.end();
});
