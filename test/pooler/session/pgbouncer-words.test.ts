// A pooler that was given a pgbouncer.ini says what PgBouncer says: to clients, in its log and on its console.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { hasSystemCalls } from '../../../src/net/system-calls.js';
import { type ConfigTree, startTestPooler } from '../../support/pooler.js';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';

let db: TestDatabase;
let server: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  server = await startPostgres();
  db = { ...server, drop: async () => {} };
});
afterAll(() => server.stop());

async function start(tree: ConfigTree = {}) {
  const lines: string[] = [];
  const log = (level: string, message: string): void => void lines.push(`${level} ${message}`);
  const admin = { compatibility: 'pgbouncer', ...tree['admin'] };
  const pooler = await startTestPooler(db, { ...tree, admin }, { host: { log } });
  return { pooler, lines };
}

async function failure(client: Promise<unknown>): Promise<string> {
  const error = await client.then(
    () => undefined,
    (thrown: unknown) => thrown as { severity?: string; code?: string; message: string },
  );
  return `${error?.severity} ${error?.code} ${error?.message}`;
}

test('a client that comes and goes is logged as PgBouncer logs it', async () => {
  const { pooler, lines } = await start();
  const client = await pooler.connect();
  await client.query('select 1');
  await client.end();
  await expect.poll(() => lines.join('\n')).toContain('client close request');
  const name = String.raw`C-0x[0-9a-f]+: ${db.database}/${db.user}@127\.0\.0\.1:\d+`;
  expect(lines.join('\n')).toMatch(
    new RegExp(`^info ${name} login attempt: db=${db.database} user=${db.user} tls=no replication=no$`, 'm'),
  );
  expect(lines.join('\n')).toMatch(
    /^info S-0x[0-9a-f]+: \S+ new connection to server \(from 127\.0\.0\.1:\d+\)$/m,
  );
  expect(lines.join('\n')).toMatch(
    new RegExp(`^info ${name} closing because: client close request \\(age=\\d+s\\)$`, 'm'),
  );
});

test('a database that there is not is refused, and logged, in PgBouncer’s words', async () => {
  const { pooler, lines } = await start();
  expect(await failure(pooler.connect({ database: 'nowhere' }))).toBe(
    'FATAL 08P01 no such database: nowhere',
  );
  expect(lines.join('\n')).toMatch(/closing because: no such database: nowhere \(age=0s\)/);
  expect(lines.join('\n')).toMatch(/^warn C-0x\S+ \S+ pooler error: no such database: nowhere$/m);
});

test('timeouts end the connection with 08P01 and the name that PgBouncer gives them', async () => {
  const { pooler } = await start({
    pooling: { poolSize: 1, poolMode: 'session' },
    timeouts: { queryTimeout: '200ms', queryWaitTimeout: '100ms' },
  });
  const holder = await pooler.connect();
  await holder.query('select 1');
  expect(await failure((await pooler.connect()).query('select 1'))).toBe('FATAL 08P01 query_wait_timeout');
  expect(await failure(holder.query('select pg_sleep(60)'))).toBe('FATAL 08P01 query timeout');
});

test('a client is told the pool mode and the number of prepared statements, as since 1.26', async () => {
  const { pooler } = await start({ pooling: { poolMode: 'transaction', maxPreparedStatements: 7 } });
  const client = new pg.Client({ ...pooler, host: '127.0.0.1' });
  const told = new Map<string, string>();
  (client as unknown as { connection: NodeJS.EventEmitter }).connection.on(
    'parameterStatus',
    (message: { parameterName: string; parameterValue: string }) =>
      told.set(message.parameterName, message.parameterValue),
  );
  await client.connect();
  await client.end();
  expect(told.get('pgbouncer.pool_mode')).toBe('transaction');
  expect(told.get('pgbouncer.max_prepared_statements')).toBe('7');
  expect(told.get('pgbouncer.version')).toMatch(/^1\.26\./);
});

test('max_prepared_statements, changed on the console, holds for connected clients and open server connections', async () => {
  const { pooler } = await start({
    pooling: { poolMode: 'transaction', poolSize: 1 },
    admin: { adminUsers: [db.user] },
  });
  const client = await pooler.connect();
  const ask = async (n: number) =>
    (await client.query({ name: `s${n}`, text: `select ${n}::int as n` })).rows[0];
  for (let n = 1; n <= 6; n++) await ask(n);
  const count = async () =>
    (await client.query('select count(*)::int as n from pg_prepared_statements')).rows[0].n;
  expect(await count()).toBe(6);
  const console = await pooler.connect({ database: 'pgbouncer' });
  await console.query('set max_prepared_statements = 2');
  expect(await ask(7)).toEqual({ n: 7 });
  expect(await count()).toBeLessThanOrEqual(3);
  for (let n = 1; n <= 6; n++) expect(await ask(n)).toEqual({ n });
  expect(await count()).toBeLessThanOrEqual(3);
});

test.skipIf(!hasSystemCalls())(
  'who runs the pooler is its administrator by the Unix socket as user pgbouncer, and nobody else is',
  async () => {
    const dir = mkdtempSync(join(tmpdir(), 'hg-'));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    // With port 0 there is no Unix socket.
    const { port } = await freePort();
    const { pooler } = await start({ listen: { port }, unixSocket: { dir } });
    const console = (host: string) =>
      pooler.connect({ host, port, database: 'pgbouncer', user: 'pgbouncer' });
    const client = await console(dir);
    const { rows } = await client.query({ text: 'show clients', queryMode: 'simple' } as pg.QueryConfig);
    expect(rows).toHaveLength(1);
    expect(await failure(client.query('kill_client 4711'))).toBe('ERROR 08P01 client not found');
    expect(await failure(client.query('kill nowhere'))).toBe('ERROR 08P01 no such database: nowhere');
    expect(await failure(client.query('set max_client_conn = many'))).toBe('ERROR 08P01 SET failed');
    expect(await failure(console('127.0.0.1'))).toBe('FATAL 08P01 not allowed');
  },
);

async function freePort(): Promise<{ port: number }> {
  const { createServer } = await import('node:net');
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return { port };
}
