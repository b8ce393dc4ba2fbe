// From the start of a pooler in several processes to its end.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { portWhereNobodyListens } from '../../support/faulty-server.js';
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

test('an address that this machine does not have is warned of, and clients come in at the others', async () => {
  for (const workers of [1, 2]) {
    const served = await serve(db, { listen: { addresses: ['192.0.2.1', '127.0.0.1'], workers } });
    expect(served.out.match(/listening on/g)).toHaveLength(1);
    expect(served.err).toMatch(
      /warn +address not available +error="Can't listen on 192\.0\.2\.1:0: this machine has no such address\./,
    );
    const client = await served.connect();
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  }
});

test('an address that this machine does not have is no start where it is the only one', async () => {
  for (const workers of [1, 2]) {
    const served = new Served(db, { listen: { addresses: ['192.0.2.1'], workers } });
    expect(await served.ended()).toBe(1);
    expect(served.err).toContain("can't run: Can't listen on 192.0.2.1:0: this machine has no such address.");
  }
});

test('a second one with the same configuration is told who runs, and leaves the file with its number alone', async () => {
  const served = await serve(db, { admin: { pidFile: 'pid', adminUsers: [] } });
  const file = join(served.folder, 'pid');
  const { pid } = served.child;
  for (const workers of [1, 2]) {
    const second = new Served(db, { listen: { workers }, admin: { pidFile: file } });
    expect(await second.ended()).toBe(1);
    expect(second.err).toContain(`The process ${pid} runs, and its number is in ${file}`);
    expect(readFileSync(file, 'utf8')).toBe(`${pid}\n`);
  }
  served.child.kill('SIGTERM');
  expect(await served.ended()).toBe(0);
  expect(existsSync(file)).toBe(false);
});

test('one that can not listen leaves no file with its number', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as { port: number };
  for (const workers of [1, 2]) {
    const served = new Served(db, { listen: { port, workers }, admin: { pidFile: 'pid' } });
    expect(await served.ended()).toBe(1);
    expect(existsSync(join(served.folder, 'pid'))).toBe(false);
  }
  other.close();
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
  await served.says('shutdown started');
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
  await served.says('shutdown started');
  served.child.kill('SIGTERM');
  expect(await served.ended()).toBe(0);
});

test('SHUTDOWN WAIT_FOR_CLIENTS is answered when the last client of any worker is gone', async () => {
  const served = await serve(db);
  const admin = await served.console();
  const clients = [...(await served.clientOfEach(admin)).values()];
  let isAnswered = false;
  const answer = admin.query('SHUTDOWN WAIT_FOR_CLIENTS').then(({ command }) => {
    isAnswered = true;
    return command;
  });
  for (const client of clients) {
    expect((await client.query('select 7 as n')).rows).toEqual([{ n: 7 }]);
    expect(isAnswered).toBe(false);
    await client.end();
  }
  expect(await answer).toBe('SHUTDOWN');
  expect(await served.ended()).toBe(0);
});

test('while it ends, the console can be had through the Unix socket', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-workers-socket-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const port = await portWhereNobodyListens();
  const served = await serve(db, { listen: { port }, unixSocket: { dir: folder } });
  const local = { host: folder, port };
  const client = await served.connect();
  await client.query('begin');
  await client.query('select 1');
  served.child.kill('SIGTERM');
  await served.says('shutdown started');
  await expect.poll(() => rejectionOf(served.connect({ port })).then(String)).toContain('ECONNREFUSED');
  // The worker that has no client ends meanwhile, and may take somebody with it.
  await expect.poll(() => rejectionOf(served.connect(local))).toMatchObject({ code: '57P01' });
  await vi.waitFor(async () => {
    const admin = await served.connect({ ...local, database: 'headgate' });
    expect((await admin.query('SHOW POOLS')).rows).toMatchObject([{ cl_active: 1 }]);
  }, 20_000);
  await client.query('commit');
  expect(await served.ended()).toBe(0);
});

test('SIGHUP reads the configuration once for all workers, and a bad one changes nothing', async () => {
  const served = await serve(db, { limits: { maxClientConn: 10 } });
  served.write({ limits: { maxClientConn: 1 } });
  served.child.kill('SIGHUP');
  await served.says('setting=limits.maxClientConn from=10 to=1');
  await served.connect();
  for (let n = 0; n < 2; n++)
    await expect.poll(() => rejectionOf(served.connect()).then(String)).toContain('may have 1 connections');
  served.write({ limits: { maxClientConn: 0 } });
  served.child.kill('SIGHUP');
  await served.says('reload failed');
  expect((await rejectionOf(served.connect())).message).toContain('may have 1 connections');
  served.write({
    limits: { maxClientConn: 10 },
    auth: { type: 'hba', hbaFile: join(served.folder, 'none') },
  });
  const { length } = served.err;
  served.child.kill('SIGHUP');
  await expect.poll(() => served.err.slice(length)).toContain('reload failed');
  expect((await rejectionOf(served.connect())).message).toContain('may have 1 connections');
});
