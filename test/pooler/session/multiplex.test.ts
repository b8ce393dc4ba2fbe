// Statements of several clients on one server connection: each gets its own answer, whatever happens to the others.
// HEADGATE_CANCELS=<number> sends more cancel requests.
import { connect } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SqlState } from '../../../src/wire/sql-states.js';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { ScriptedServer } from './scripted-server.js';

const cancels = Number(process.env['HEADGATE_CANCELS'] ?? 200);

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  await client.query('create table notes (tag text)');
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

  test('do not fail when another one on the same connection does', async () => {
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
  for (let round = 0; round < 10; round++)
    await askAll(clients, 2, (client, tag) => client.query('select $1::text as tag', [tag]));
  // At first there were none: while those are opened, statements may share what is there.
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

test('a cancel request that comes too late and hits another statement has that one run again', async () => {
  const key = { processId: 7, secretKey: Buffer.from([1, 2, 3, 4]) };
  let hangUp = (): void => {};
  let isHeld = false;
  const server = await ScriptedServer.start({
    key,
    answer: (text) => !isHeld || !text.includes('tag'),
    cancel: (done) => {
      hangUp = done;
    },
  });
  const pooler = await startTestPooler(server.db, {
    pooling: { poolSize: 1, multiplexDepth: depth, multiplexLongest: '10s' },
  });
  const clients = await connectAll(pooler, 4);
  const ask = (client: pg.Client | undefined, tag: number): Promise<pg.QueryResult> =>
    (client as pg.Client).query(`select tag from t where n = ${tag}`);
  while (multiplexed(pooler) === 0) await Promise.all(clients.map(ask));
  const before = multiplexed(pooler);
  isHeld = true;
  const first = ask(clients[0], 0);
  const [hasty, hit, last] = clients.slice(1).map((client, index) => ask(client, index + 1));
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(3);
  server.connection.done('SELECT 0');
  await first;
  await expect.poll(() => multiplexed(pooler) - before).toBe(2);
  await expect.poll(() => server.connection.queries.at(-1)).toContain('n = 3');
  const { processID, secretKey } = clients[1] as unknown as { processID: number; secretKey: number };
  const canceller = connect(pooler.port, pooler.host);
  const request = Buffer.alloc(16);
  for (const [at, value] of [16, 80_877_102, processID, secretKey].entries())
    request.writeInt32BE(value, 4 * at);
  canceller.write(request);
  await expect.poll(() => server.cancels).toBe(1);
  // Its own statement is over by now, and the next one is hit.
  server.connection.done('SELECT 1');
  expect((await hasty)?.rowCount).toBe(1);
  isHeld = false;
  server.connection.error({
    severity: 'ERROR',
    code: '57014',
    message: 'canceling statement due to user request',
  });
  server.connection.ready();
  server.connection.done('SELECT 3');
  expect((await last)?.rowCount).toBe(3);
  hangUp();
  await hit;
  expect(server.connection.queries.filter((text) => text.includes('n = 2')).length).toBeGreaterThan(1);
  expect(pooler.pooler.stats().pools[0]?.tally.multiplexedAgain).toBe(1);
  canceller.destroy();
});

test('a cancel request hits no statement of another client', async () => {
  const pooler = await sharing({ poolSize: 2, multiplexLongest: '60s' });
  const clients = await connectAll(pooler, 12);
  const canceller = clients.splice(0, 4);
  let isOver = false;
  let hits = 0;
  const victims = clients.map(async (client, index) => {
    for (let time = 0; !isOver; time++) {
      const tag = `${index}-${time}`;
      const { rows } = await client.query('select $1::text as tag, count(*) from generate_series(1, 3000)', [
        tag,
      ]);
      expect(rows[0].tag).toBe(tag);
    }
  });
  await Promise.all(
    canceller.map(async (client, index) => {
      for (let time = 0; time < cancels / canceller.length; time++) {
        const tag = `c${index}-${time}`;
        const query = client.query('select $1::text as tag, count(*) from generate_series(1, 9000)', [tag]);
        const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
        const other = new pg.Client({ host: pooler.host, port: pooler.port });
        const { connection } = other as unknown as {
          connection: {
            connect(port: number, host: string): void;
            cancel(id: number, key: number): void;
            on(event: string, listener: () => void): void;
            stream: { on(event: string, listener: () => void): void };
          };
        };
        connection.connect(pooler.port, pooler.host);
        connection.on('error', () => {});
        connection.on('connect', () => connection.cancel(processID, secretKey));
        const closed = new Promise<void>((resolve) => connection.on('end', resolve));
        try {
          expect((await query).rows[0].tag).toBe(tag);
        } catch (error) {
          expect((error as pg.DatabaseError).code).toBe(SqlState.queryCanceled);
          hits++;
        }
        await closed;
      }
    }),
  );
  isOver = true;
  await Promise.all(victims);
  const multiplexedAgain = pooler.pooler.stats().pools[0]?.tally.multiplexedAgain;
  if (process.env['HEADGATE_CANCELS'] !== undefined)
    console.log(
      `${cancels} cancel requests: ${hits} hit, ${multiplexedAgain} statements of others run again`,
    );
  expect(hits).toBeGreaterThan(0);
  expect(multiplexed(pooler)).toBeGreaterThan(10);
}, 600_000);

/** Three clients on one connection that answers the first when it is told to. */
async function threeBehindEachOther(
  fail: (server: ScriptedServer) => void,
): Promise<PromiseSettledResult<unknown>[]> {
  let isHeld = true;
  const server = await ScriptedServer.start({ answer: (text) => !isHeld || !text.includes('tag') });
  const pooler = await startTestPooler(server.db, {
    pooling: { poolSize: 1, multiplexDepth: depth, multiplexLongest: '10s' },
  });
  const clients = await connectAll(pooler, 4);
  // The pool learns how long the statement takes, from one that had to wait.
  isHeld = false;
  while (multiplexed(pooler) === 0)
    await Promise.all(
      clients.map((client, index) => client.query(`select tag_${'x'} from t where n = ${index}`)),
    );
  isHeld = true;
  const first = (clients[0] as pg.Client).query('select tag_0');
  const before = multiplexed(pooler);
  const answers = clients
    .slice(1)
    .map((client, index) => client.query(`select tag_x from t where n = ${index}`));
  await expect.poll(() => pooler.pooler.stats().waiting).toBe(3);
  server.connection.done('SELECT 0');
  await first;
  await expect.poll(() => multiplexed(pooler) - before).toBe(2);
  await expect
    .poll(() => server.connection.queries.filter((text) => text.includes('where n')).slice(-3).length)
    .toBe(3);
  isHeld = false;
  fail(server);
  return Promise.allSettled(answers);
}

test('a server that is lost takes the statement that ran with it, and no other', async () => {
  const settled = await threeBehindEachOther((server) => server.connection.socket.destroy());
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
});

test('a server that is lost tells the one whose statement ran why it ends', async () => {
  const settled = await threeBehindEachOther((server) => {
    server.connection.error({ severity: 'FATAL', code: '57P01', message: 'terminating connection' });
    server.connection.socket.end();
  });
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect((settled[0] as PromiseRejectedResult).reason).toMatchObject({ code: '57P01' });
});

test('a server that is lost has answered what it has answered', async () => {
  const settled = await threeBehindEachOther((server) => {
    server.connection.done('SELECT 0');
    server.connection.socket.end();
  });
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

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

test('the console shows who is behind whom', async () => {
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
