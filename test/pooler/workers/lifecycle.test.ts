// From the start of a pooler in several processes to its end.
import { createServer } from 'node:net';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rejectionOf } from '../../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { Served, serve } from './served.js';

let db: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test('a port that is taken is told in the same words as by one process', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as { port: number };
  const told = await Promise.all(
    [1, 2].map(async (workers) => {
      const served = new Served(db, { listen: { port, workers } });
      const code = await served.ended();
      return { code, out: served.out, err: served.err };
    }),
  );
  other.close();
  expect(told[1]).toEqual(told[0]);
  expect(told[1]?.err).toContain('another process listens there');
  expect(told[1]?.code).not.toBe(0);
});

test('all its processes have the priority that was asked for', async () => {
  // A lower one than this process has is allowed to everybody.
  const priority = Math.min(19, getPriority() + 3);
  const served = await serve(db, { listen: { priority } });
  const workers = await served.workers();
  const pids = [served.child.pid as number, ...workers.map(({ pid }) => pid)];
  expect(pids.map((pid) => getPriority(pid))).toEqual([priority, priority, priority]);
});

test('SIGTERM lets the transactions of all workers end, and takes no more clients', async () => {
  const served = await serve(db);
  const admin = await served.console();
  const clients = await served.clientOfEach(admin);
  const { port } = served;
  for (const client of clients.values()) {
    await client.query('begin');
    await client.query('select 1');
  }
  served.child.kill('SIGTERM');
  await served.says('stopping when transactions have ended');
  await expect.poll(() => rejectionOf(served.connect({ port })).then(String)).toContain('ECONNREFUSED');
  for (const client of clients.values()) {
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    const ended = new Promise((resolve) => client.once('end', resolve));
    await client.query('commit');
    await ended;
  }
  expect(await served.ended()).toBe(0);
});

test('a second SIGTERM ends all at once', async () => {
  const served = await serve(db);
  const client = await served.connect();
  await client.query('begin');
  await client.query('select 1');
  served.child.kill('SIGTERM');
  await served.says('stopping when transactions have ended');
  served.child.kill('SIGTERM');
  expect(await served.ended()).toBe(0);
});

test('SIGHUP reads the configuration once for all workers, and a bad one changes nothing', async () => {
  const served = await serve(db, { limits: { maxClientConn: 10 } });
  served.write({ limits: { maxClientConn: 1 } });
  served.child.kill('SIGHUP');
  await served.says('limits.maxClientConn: 10 -> 1');
  await served.connect();
  for (let n = 0; n < 2; n++)
    await expect.poll(() => rejectionOf(served.connect()).then(String)).toContain('may have 1 connections');
  served.write({ limits: { maxClientConn: 0 } });
  served.child.kill('SIGHUP');
  await served.says('not reloaded, the configuration stays as it was');
  expect((await rejectionOf(served.connect())).message).toContain('may have 1 connections');
  served.write({
    limits: { maxClientConn: 10 },
    auth: { type: 'hba', hbaFile: join(served.folder, 'none') },
  });
  const { length } = served.err;
  served.child.kill('SIGHUP');
  await expect.poll(() => served.err.slice(length)).toContain('not reloaded');
  expect((await rejectionOf(served.connect())).message).toContain('may have 1 connections');
});
