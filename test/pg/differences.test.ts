// Where our pool does otherwise than pg.Pool, because pg.Pool loses something there. One test for each difference.
//
//   what happens                            | pg.Pool 3.14                            | here
//   ----------------------------------------|-----------------------------------------|---------------------------------
//   end() while callers are queued          | they wait for ever                      | they are served, then it ends
//   end() and the sockets                   | resolves before they are closed         | resolves when the server has none
//   end() and a client nobody returns       | waits for ever                          | end({ deadline }) does not
//   the client connects after the timeout   | handed out late, or left open           | closed, never handed out
//   a client is closed and another opened   | both exist: more than max               | never more than max
//   a close that hangs                      | its slot is free, its socket stays open | destroyed, then the slot is free
//   a server that accepts and says nothing  | one timeout for queue and connect       | dialTimeoutMillis
//   verify or onConnect never answers       | no timeout, the slot is lost            | timeout, the slot is free
//   verify throws                           | uncaught, the caller waits for ever     | the caller's error
//   onConnect rejects with nothing          | resolves without a client               | the caller's error
//   the client's connect() throws           | the slot is lost                        | the caller's error, slot free
//   a client in use loses its connection    | uncaught, unless someone listens        | the client's next query fails
//   the program ends an idle client         | handed out, its next query fails        | not handed out
//   such a client is never released         | keeps its place, end() waits for ever   | its place is free (lost-clients.test.ts)
//   native client connects after a timeout  | handed out late                         | closed: a timeout is a timeout
//   many callers on an empty pool           | a dial for each at once                 | dialLimit dials at once
//   a client comes back during a dial       | its caller waits for its own dial       | the caller takes it
//   options that make no sense              | taken                                   | refused, all at once
//   2,000 callbacks that release at once    | stack overflow, callers stranded        | all are served
import pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AcquireTimeoutError, DoubleReleaseError, Pool, PoolOptionsError } from '../../src/index.js';
import { clientsThatWait, FakeClient } from '../support/fake-client.js';
import { type FaultyServer, startFaultyServer } from '../support/faulty-server.js';
import { eventOf, nextTurn, rejectionOf, watch } from '../support/outcomes.js';
import { collectUncaught } from '../support/uncaught.js';
import { type AnyPool, abandon, usePoolsOf } from './contract/every-pool.js';

type Options = NonNullable<ConstructorParameters<typeof Pool>[0]>;

const { server, sessionsOf } = usePoolsOf(Pool);
let front: FaultyServer;
let opened: Pool[] = [];

beforeEach(async () => {
  front = await startFaultyServer(server());
});

afterEach(async () => {
  for (const pool of opened) abandon(pool as unknown as AnyPool);
  opened = [];
  await front.stop();
});

let names = 0;
function newPool(options: Options = {}): Pool {
  names += 1;
  const pool = new Pool({ ...server(), application_name: `difference-${process.pid}-${names}`, ...options });
  opened.push(pool);
  return pool;
}

/** A class of clients, given where the type of pg's is asked for. */
function asClientClass(Client: unknown): NonNullable<Options['Client']> {
  return Client as NonNullable<Options['Client']>;
}

async function inParallel(callers: number, work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: callers }, work));
}

test('end() serves queued callers in their order, and then ends', async () => {
  const pool = newPool({ max: 1 });
  const client = await pool.connect();
  const order: string[] = [];
  const callers = [
    pool.connect().then((own) => {
      order.push('first');
      own.release();
    }),
    pool.query('select 1').then(() => order.push('second')),
    pool.connect().then((own) => {
      order.push('third');
      own.release();
    }),
  ];
  expect(pool.waitingCount).toBe(3);
  const ending = pool.end().then(() => order.push('end'));
  expect((await rejectionOf(pool.connect())).message).toContain('after calling end');
  client.release();
  await Promise.all([...callers, ending]);
  expect(new Set(order)).toEqual(new Set(['first', 'second', 'third', 'end']));
  expect(order.at(-1)).toBe('end');
  expect(order.indexOf('first')).toBeLessThan(order.indexOf('third'));
  expect(pool.waitingCount).toBe(0);
});

test('end() serves queued callers even if their connection has yet to be opened', async () => {
  const pool = newPool({ max: 1, maxUses: 1 });
  const queries = Array.from({ length: 4 }, () => pool.query('select pg_backend_pid() as pid'));
  await pool.end();
  const pids = (await Promise.all(queries)).map(({ rows }) => rows[0].pid);
  expect(new Set(pids).size).toBe(4);
  expect(await sessionsOf(pool)).toEqual([]);
});

test('end() resolves when the server has no session of the pool any more', async () => {
  const pool = newPool({ max: 8 });
  await Promise.all(Array.from({ length: 8 }, () => pool.query('select pg_sleep(0.02)')));
  expect(await sessionsOf(pool)).toHaveLength(8);
  await pool.end();
  expect(await sessionsOf(pool)).toEqual([]);
});

test('end() calls back when the server has no session of the pool any more', async () => {
  const pool = newPool({ max: 4 });
  await Promise.all(Array.from({ length: 4 }, () => pool.query('select pg_sleep(0.02)')));
  await new Promise<void>((resolve) => pool.end(resolve));
  expect(await sessionsOf(pool)).toEqual([]);
});

test('end() has told of every removal by then', async () => {
  const pool = newPool({ max: 3 });
  let removed = 0;
  pool.on('remove', () => {
    removed += 1;
  });
  const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
  for (const client of clients) client.release();
  await pool.end();
  expect(removed).toBe(3);
});

test('end() with a deadline gives up on clients that are not released, and fails queued callers', async () => {
  const pool = newPool({ max: 1 });
  const kept = await pool.connect();
  kept.on('error', () => {});
  const queued = watch(pool.connect());
  await pool.end({ deadline: 100 });
  expect(await rejectionOf(queued.promise)).toMatchObject({ code: 'HG_POOL_CLOSED' });
  await vi.waitFor(async () => expect(await sessionsOf(pool)).toEqual([]));
  expect(pool.totalCount).toBe(0);
});

test('a timeout while connecting leaves no ghost when the client connects after all', async () => {
  let connectAtLast = () => {};
  /** Fetches something before it connects, as clients do that sign in with a token. */
  class TokenClient extends pg.Client {
    override connect(): Promise<TokenClient>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<TokenClient> | void {
      if (callback === undefined) return super.connect().then(() => this);
      connectAtLast = () => super.connect(callback);
    }
  }
  const pool = newPool({
    port: front.port,
    Client: asClientClass(TokenClient),
    max: 1,
    connectionTimeoutMillis: 50,
  });
  const handedOut = vi.fn();
  pool.on('acquire', handedOut);
  expect((await rejectionOf(pool.connect())).message).toContain('timeout');
  connectAtLast();
  await vi.waitFor(async () => {
    expect(front.open).toBe(0);
    expect(await sessionsOf(pool)).toEqual([]);
    expect(pool.stats()).toMatchObject({ pending: 0, live: 0, closing: 0 });
  });
  expect(handedOut).not.toHaveBeenCalled();
  expect([pool.totalCount, pool.idleCount]).toEqual([0, 0]);
});

test('a timeout while connecting ends the program with no error of the client that connects after all', async () => {
  const dials: [client: FakeClient, connected: () => void][] = [];
  class LateClient extends FakeClient {
    override connect(callback: () => void): void {
      dials.push([this, callback]);
    }
  }
  const pool = newPool({ Client: asClientClass(LateClient), max: 1, connectionTimeoutMillis: 30 });
  const poolError = vi.fn();
  pool.on('error', poolError);
  await rejectionOf(pool.connect());
  for (const [client, connected] of dials) {
    connected();
    client.emit('error', new Error('while it is being closed'));
  }
  expect(dials).toHaveLength(1);
  await vi.waitFor(() => expect(pool.stats()).toMatchObject({ live: 0, closing: 0 }));
  expect(poolError).not.toHaveBeenCalled();
});

test('a timeout while connecting leaves no ghost behind a front that lets the connection through too late', async () => {
  front.stall();
  const pool = newPool({ port: front.port, max: 2, connectionTimeoutMillis: 50 });
  await Promise.all([rejectionOf(pool.connect()), rejectionOf(pool.query('select 1'))]);
  front.behave();
  await vi.waitFor(async () => {
    expect(front.open).toBe(0);
    expect(await sessionsOf(pool)).toEqual([]);
  });
  expect(pool.totalCount).toBe(0);
});

test('a timeout while connecting comes after dialTimeoutMillis, and costs the slot no longer, however long a caller may wait', async () => {
  front.stall();
  const pool = newPool({
    port: front.port,
    max: 1,
    connectionTimeoutMillis: 20_000,
    dialTimeoutMillis: 100,
  });
  const first = watch(pool.connect());
  await front.hasAccepted(1);
  const second = pool.connect();
  expect(pool.waitingCount).toBe(1);
  const dialTimedOut = rejectionOf(first.promise).then((error) => {
    front.behave();
    return error;
  });
  expect(await dialTimedOut).toMatchObject({ code: 'HG_DIAL_TIMEOUT' });
  const client = await second.catch(() => pool.connect());
  await expect(client.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  client.release();
  await pool.end();
});

test('the limit holds at the server while every connection is replaced after one use by fifty callers', async () => {
  const pool = newPool({ port: front.port, max: 3, maxUses: 1 });
  const text = 'select count(*)::int as sessions from pg_stat_activity where application_name = $1';
  const seen: number[] = [];
  // Each caller comes back as soon as it is served, when the connection it used is about to be closed.
  await inParallel(50, async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      const { rows } = await pool.query(text, [pool.options.application_name]);
      seen.push(rows[0].sessions);
    }
  });
  expect(seen).toHaveLength(150);
  expect(Math.max(...seen)).toBeLessThanOrEqual(3);
  expect(front.peak).toBeLessThanOrEqual(3);
  expect(front.accepted).toBe(150);
  await pool.end();
});

test('the limit holds while queries fail, and their connections with them', async () => {
  const pool = newPool({ port: front.port, max: 2 });
  await inParallel(10, async () => {
    for (let turn = 0; turn < 3; turn += 1) await rejectionOf(pool.query('select no_such_column'));
  });
  expect(front.peak).toBeLessThanOrEqual(2);
  await pool.end();
});

test('the limit counts a connection that is being closed, although totalCount does not', async () => {
  front.ignoreGoodbyes();
  const pool = newPool({ port: front.port, max: 1, closeTimeoutMillis: 10_000 });
  const client = await pool.connect();
  client.release(await rejectionOf(client.query('select no_such_column')));
  expect(pool.totalCount).toBe(0);
  expect(pool.stats()).toMatchObject({ live: 0, closing: 1, limit: 1 });
  const next = watch(pool.connect());
  expect(pool.waitingCount).toBe(1);
  await nextTurn();
  expect(pool.stats()).toMatchObject({ pending: 0, closing: 1, waiting: 1 });
  expect(front.accepted).toBe(1);
  front.resetAll();
  (await next.promise).release();
  await pool.end();
});

test('the limit does not wait for ever for a close that hangs: the socket is destroyed, then the slot is free', async () => {
  front.ignoreGoodbyes();
  const sockets: { destroyed: boolean }[] = [];
  const destroyedWhenTheNextIsMade: boolean[] = [];
  class WatchedClient extends pg.Client {
    constructor(options?: pg.ClientConfig) {
      super(options);
      destroyedWhenTheNextIsMade.push(sockets.every((socket) => socket.destroyed));
      sockets.push(this.connection.stream);
    }
  }
  const pool = newPool({
    port: front.port,
    Client: asClientClass(WatchedClient),
    max: 1,
    closeTimeoutMillis: 150,
  });
  const client = await pool.connect();
  const removed = eventOf(pool, 'remove');
  client.release(await rejectionOf(client.query('select no_such_column')));
  const next = await pool.connect();
  expect(destroyedWhenTheNextIsMade).toEqual([true, true]);
  expect(await removed).toEqual([client]);
  next.release();
  await pool.end();
  expect(sockets.every((socket) => socket.destroyed)).toBe(true);
});

test('verify that never answers is a timeout, and the slot is free again', async () => {
  let runs = 0;
  const pool = newPool({
    max: 1,
    connectionTimeoutMillis: 500,
    verify: (_client, done) => {
      runs += 1;
      if (runs > 1) done();
    },
  });
  expect((await rejectionOf(pool.connect())).message).toContain('timeout');
  const client = await pool.connect();
  client.release();
  await pool.end();
  expect(await sessionsOf(pool)).toEqual([]);
});

test('onConnect that never answers is a timeout, and the slot is free again', async () => {
  let runs = 0;
  const pool = newPool({
    max: 1,
    connectionTimeoutMillis: 500,
    onConnect: () => {
      runs += 1;
      return runs > 1 ? undefined : new Promise(() => {});
    },
  });
  expect((await rejectionOf(pool.query('select 1'))).message).toContain('timeout');
  await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  await pool.end();
  expect(await sessionsOf(pool)).toEqual([]);
});

test('verify that throws fails the connect with its error', async () => {
  const problem = new Error('thrown by verify');
  let runs = 0;
  const pool = newPool({
    max: 1,
    verify: (_client, done) => {
      runs += 1;
      if (runs === 1) throw problem;
      done();
    },
  });
  expect(await rejectionOf(pool.connect())).toBe(problem);
  expect(pool.totalCount).toBe(0);
  (await pool.connect()).release();
  await pool.end();
});

test('onConnect that rejects with nothing still fails the connect, with an error', async () => {
  const pool = newPool({ onConnect: () => Promise.reject() });
  expect(await rejectionOf(pool.connect())).toBeInstanceOf(Error);
  expect(pool.totalCount).toBe(0);
  await pool.end();
});

test.each(['its constructor', 'connect()'])('a client that throws from %s costs no slot', async (where) => {
  const problem = new Error(`thrown by ${where}`);
  let made = 0;
  class ThrowingClient extends FakeClient {
    constructor() {
      super();
      made += 1;
      if (made === 1 && where === 'its constructor') throw problem;
    }
    override connect(callback: () => void): void {
      if (made === 1) throw problem;
      super.connect(callback);
    }
  }
  const pool = newPool({ Client: asClientClass(ThrowingClient), max: 1 });
  expect(await rejectionOf(pool.connect())).toBe(problem);
  expect(pool.totalCount).toBe(0);
  (await pool.connect()).release();
  await pool.end();
});

test('a client whose connect() never answers is a timeout, and the slot is free again', async () => {
  let made = 0;
  class SilentClient extends FakeClient {
    override connect(callback: () => void): void {
      made += 1;
      if (made > 1) super.connect(callback);
    }
  }
  const pool = newPool({
    Client: asClientClass(SilentClient),
    max: 1,
    dialTimeoutMillis: 50,
    closeTimeoutMillis: 50,
    connectionTimeoutMillis: 20_000,
  });
  expect((await rejectionOf(pool.connect())).message).toContain('timeout');
  (await pool.connect()).release();
  await pool.end();
});

test('many callers with callbacks that release at once are all served, without a deep stack', async () => {
  const pool = newPool({ Client: asClientClass(FakeClient), max: 1 });
  const client = await pool.connect();
  let served = 0;
  const everyone = new Promise<void>((resolve) => {
    for (let caller = 0; caller < 20_000; caller += 1) {
      pool.connect((_error, _client, release) => {
        served += 1;
        release();
        if (served === 20_000) resolve();
      });
    }
  });
  expect(pool.waitingCount).toBe(20_000);
  client.release();
  await everyone;
  expect([pool.totalCount, pool.idleCount, pool.waitingCount]).toEqual([1, 1, 0]);
  await pool.end();
});

test('a client in use that loses its connection does not end a program without an error listener: its next query fails, and the pool goes on', async () => {
  const pool = newPool({ max: 1 });
  const client = await pool.connect();
  const { rows } = await client.query('select pg_backend_pid() as pid');
  const ended = eventOf(client, 'end');
  const killer = newPool();
  await killer.query('select pg_terminate_backend($1)', [rows[0].pid]);
  await ended;
  expect((await rejectionOf(client.query('select 1'))).message).toMatch(/not queryable/);
  client.release();
  expect(pool.totalCount).toBe(0);
  expect(pool.stats().totals.discarded.broken).toBe(1);
  await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  await pool.end();
  await killer.end();
});

test('a client in use that loses its connection still tells its listeners', async () => {
  const pool = newPool({ max: 1 });
  const client = await pool.connect();
  const heard = vi.fn();
  client.on('error', heard);
  const lost = new Error('lost');
  client.emit('error', lost);
  expect(heard).toHaveBeenCalledWith(lost);
  client.release();
  expect(pool.stats().totals.discarded.broken).toBe(1);
  await pool.end();
});

test('a client that the program ends while it is idle is not handed out again', async () => {
  const pool = newPool({ max: 2 });
  const client = await pool.connect();
  client.release();
  const ended = eventOf(client, 'end');
  const removed = vi.fn();
  pool.on('remove', removed);
  await client.end();
  await ended;
  expect([pool.totalCount, pool.stats().closing]).toEqual([0, 0]);
  expect(removed).toHaveBeenCalledExactlyOnceWith(client);
  await expect(pool.query('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] });
  await pool.end();
});

test('a client without a socket of its own that connects after the timeout is closed and not handed out', async () => {
  let connected: () => void = () => {};
  const ended = vi.fn();
  class NativeLikeClient extends FakeClient {
    isConnected(): boolean {
      return true;
    }
    override connect(callback: () => void): void {
      connected = callback;
    }
    override end(callback?: () => void): void {
      ended();
      super.end(callback);
    }
  }
  const pool = newPool({ Client: asClientClass(NativeLikeClient), connectionTimeoutMillis: 20 });
  expect((await rejectionOf(pool.connect())).message).toContain('timeout');
  connected();
  expect(ended).toHaveBeenCalledOnce();
  expect(pool.stats().totals.discarded.late_dial).toBe(1);
  await pool.end();
});

test('the limit, with the server as its guardian is not exceeded when the server ends idle sessions and they are replaced at once', async () => {
  const admin = newPool();
  const role = `limited_to_one_${process.pid}`;
  await admin.query(`create role ${role} login password 'limited' connection limit 1`);
  const pool = newPool({ user: role, password: 'limited', max: 1 });
  pool.on('error', () => {});
  for (let round = 0; round < 40; round++) {
    const { rows } = await pool.query('select pg_backend_pid() as pid');
    const lost = eventOf(pool, 'error');
    await admin.query('select pg_terminate_backend($1)', [rows[0].pid]);
    await lost;
  }
  expect(pool.stats().totals).toMatchObject({ dialsFailed: 0, discarded: { broken: 40 } });
  await pool.end();
  await admin.query(`drop role ${role}`);
  await admin.end();
});

test('end() waits for a connection that is being opened and needed no more, and closes it in good order', async () => {
  const pool = newPool({ max: 2 });
  const client = await pool.connect();
  const other = pool.connect();
  client.release();
  const second = await other;
  expect(pool.stats().pending).toBe(1);
  const ended = pool.end();
  second.release();
  await ended;
  expect(await sessionsOf(pool as unknown as AnyPool)).toEqual([]);
  expect(pool.stats().totals).toMatchObject({ opened: 2, closed: 2, dialsFailed: 0 });
});

test('a server that finds connections opened too fast makes the rate limiter go slower, and every connection that is opened makes it recover', async () => {
  const refused = vi.fn();
  const opened = vi.fn();
  let refusals = 2;
  class LimitedClient extends FakeClient {
    override connect(callback: (error?: Error | null) => void): void {
      const error = Object.assign(new Error('rate exceeded'), { code: '53400', severity: 'FATAL' });
      process.nextTick(callback, refusals-- > 0 ? error : null);
    }
  }
  const pool = newPool({
    Client: asClientClass(LimitedClient),
    onDialFailure: 'retry',
    backoffBaseMillis: 1,
    rateLimiter: { take: () => 0, refused, opened },
  });
  (await pool.connect()).release();
  expect(refused).toHaveBeenCalledTimes(2);
  expect(opened).toHaveBeenCalledTimes(1);
  await pool.end();
});

test('dials are made a few at a time, and callers whose dial has to wait its turn count as connecting', async () => {
  const { Client, pending } = clientsThatWait();
  const pool = newPool({ Client: asClientClass(Client), max: 20, dialLimit: 3 });
  const callers = Array.from({ length: 10 }, () => pool.connect());
  expect(pending).toHaveLength(3);
  expect(pool.stats()).toMatchObject({ pending: 3, waiting: 10 });
  expect([pool.totalCount, pool.waitingCount]).toEqual([10, 0]);
  for (let answered = 0; answered < 10; answered++) {
    expect(pending.length).toBeLessThanOrEqual(3);
    pending.shift()?.();
  }
  for (const client of await Promise.all(callers)) client.release();
  await pool.end();
});

test('dials do not bind their caller, who takes a client that is free before', async () => {
  const { Client, pending } = clientsThatWait();
  const pool = newPool({ Client: asClientClass(Client), max: 2 });
  const first = pool.connect();
  pending.shift()?.();
  const client = await first;
  const second = pool.connect();
  client.release();
  expect(await second).toBe(client);
  expect(pool.totalCount).toBe(2);
  pending.shift()?.();
  expect(pool.idleCount).toBe(1);
  client.release();
  await pool.end();
});

test('dials fail when the constructor of the client throws, and nothing is left of them', async () => {
  class UnmakeableClient {
    constructor() {
      throw new Error('no client today');
    }
  }
  const pool = newPool({ Client: asClientClass(UnmakeableClient) });
  expect((await rejectionOf(pool.connect())).message).toBe('no client today');
  expect(pool.stats()).toMatchObject({ pending: 0, live: 0, closing: 0 });
  await pool.end();
});

test("errors carry the pool's numbers after pg-pool's text, and a code", async () => {
  const pool = newPool({ Client: asClientClass(FakeClient), max: 1, connectionTimeoutMillis: 20 });
  const client = await pool.connect();
  const timeout = await rejectionOf(pool.connect());
  expect(timeout).toBeInstanceOf(AcquireTimeoutError);
  expect(timeout).toMatchObject({ code: 'HG_ACQUIRE_TIMEOUT' });
  expect(timeout.message).toMatch(/^timeout exceeded when trying to connect: waited .*limit 1: 1 in use/);
  client.release();
  expect(() => client.release()).toThrow(DoubleReleaseError);
  await pool.end();
});

test('options that make no sense are refused, all problems at once, by the names the user gave them', () => {
  const make = (): Pool =>
    new Pool({
      max: -1,
      minIdle: 1.5,
      connectionTimeoutMillis: -3,
      idleOrder: 'any' as never,
      verify: 7 as never,
    });
  expect(make).toThrow(PoolOptionsError);
  for (const name of ['max', 'minIdle', 'connectionTimeoutMillis', 'idleOrder', 'verify']) {
    expect(make).toThrow(new RegExp(`^  ${name}: must be`, 'm'));
  }
});

test('options can be changed later where that is max, and are read once otherwise', async () => {
  const pool = newPool({ Client: asClientClass(FakeClient), max: 1, maxUses: 5 });
  pool.options.max = 2;
  pool.options.maxUses = 1;
  const [first, second] = await Promise.all([pool.connect(), pool.connect()]);
  expect(pool.stats().limit).toBe(2);
  first?.release();
  second?.release();
  expect(pool.totalCount).toBe(2);
  expect(() => {
    pool.options.max = -1;
  }).toThrow(PoolOptionsError);
  await pool.end();
});

test('a log function that throws is an uncaught exception of the program, and the pool goes on', async () => {
  await using uncaught = collectUncaught();
  const pool = newPool({
    Client: asClientClass(FakeClient),
    log: (text: unknown) => {
      if (text === 'connecting new client') throw new Error('the log is full');
    },
  });
  const client = await pool.connect();
  expect(await uncaught.next()).toBe('the log is full');
  client.release();
  expect(pool.stats()).toMatchObject({ idle: 1, inUse: 0, pending: 0 });
  await pool.end();
});
