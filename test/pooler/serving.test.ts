// `headgate serve` as an operator runs it: a real pooler in front of a real PostgreSQL, signals, and the log.
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { serve } from '../../src/cli/serve.js';
import { startPooler } from '../../src/cli/serve-pooler.js';
import type { SignalSource } from '../../src/cli/serve-running.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

/** The machine may be busy. */
const soon = { timeout: 10_000, interval: 20 };

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** A folder with files, and the command that is run in it. */
class Operator {
  readonly folder = mkdtempSync(join(tmpdir(), 'headgate-operator-'));
  readonly signals = new EventEmitter();
  readonly #said = new EventEmitter();
  out = '';
  err = '';
  code: Promise<number> | undefined;

  constructor() {
    onTestFinished(async () => {
      this.signals.emit('SIGQUIT');
      await this.code;
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.folder, file), text);
  }

  get port(): number {
    return Number(/listening on 127\.0\.0\.1:(\d+)/.exec(this.out)?.[1]);
  }

  async serve(...args: string[]): Promise<void> {
    const note = (where: 'out' | 'err') => (text: string) => {
      this[where] += text;
      this.#said.emit('said');
    };
    this.code = serve(
      args,
      { out: note('out'), err: note('err'), hasColours: false, showsProgress: false },
      { startPooler, signals: this.signals as unknown as SignalSource, environment: {}, folder: this.folder },
    );
    let isOver = false;
    void this.code.finally(() => {
      isOver = true;
      this.#said.emit('said');
    });
    while (!this.out.includes('listening') && !isOver) await once(this.#said, 'said');
    expect(isOver ? this.err : '').toBe('');
  }

  async connect(options: pg.ClientConfig = {}): Promise<pg.Client> {
    const { user, password, database } = db;
    const client = new pg.Client({
      host: '127.0.0.1',
      port: this.port,
      user,
      password,
      database,
      ...options,
    });
    client.on('error', () => {});
    onTestFinished(() => client.end().catch(() => {}));
    await client.connect();
    return client;
  }
}

const yaml = (more = ''): string => `
databases: { ${db.database}: { host: ${db.host}, port: ${db.port}, password: ${db.password} } }
auth: { type: trust }
listen: { port: 0 }
unixSocket: { dir: '' }
${more}`;

const endOf = (client: pg.Client): Promise<unknown> =>
  new Promise((resolve) => client.once('error', resolve));

async function running(more = '', ...args: string[]): Promise<Operator> {
  const operator = new Operator();
  operator.write('headgate.yaml', yaml(more));
  await operator.serve('--config', 'headgate.yaml', ...args);
  return operator;
}

test('Signals SIGTERM lets a transaction end, and sends its client away then', async () => {
  const operator = await running();
  const [busy, idle] = [await operator.connect(), await operator.connect()];
  await busy.query('begin; select 1');
  const ends = [endOf(busy), endOf(idle)];
  operator.signals.emit('SIGTERM');
  expect(await ends[1]).toMatchObject({ code: '57P01' });
  expect((await busy.query('select 7 as n')).rows).toEqual([{ n: 7 }]);
  await busy.query('commit');
  expect(await ends[0]).toMatchObject({ code: '57P01', hint: expect.stringContaining('Connect again') });
  expect(await operator.code).toBe(0);
});

test('Signals the second SIGTERM waits no longer', async () => {
  const operator = await running();
  const busy = await operator.connect();
  await busy.query('begin; select 1');
  const end = endOf(busy);
  operator.signals.emit('SIGTERM');
  operator.signals.emit('SIGTERM');
  expect(await end).toMatchObject({ code: '57P01' });
  expect(await operator.code).toBe(0);
});

test('Signals with sigterm_mode wait_for_clients: SIGTERM ends no client, and lets no new one in', async () => {
  const operator = await running('admin: { sigtermMode: wait_for_clients }');
  const client = await operator.connect();
  operator.signals.emit('SIGTERM');
  expect((await client.query('select 7 as n')).rows).toEqual([{ n: 7 }]);
  await expect(operator.connect()).rejects.toThrow();
  expect((await client.query('select 8 as n')).rows).toEqual([{ n: 8 }]);
  await client.end();
  expect(await operator.code).toBe(0);
});

test('Signals SIGUSR1 makes clients wait, and SIGUSR2 lets them go on', async () => {
  const operator = await running('admin: { adminUsers: [postgres] }');
  const [client, console] = [await operator.connect(), await operator.connect({ database: 'headgate' })];
  operator.signals.emit('SIGUSR1');
  const asks = client.query('select 1 as one');
  await vi.waitFor(async () => expect((await console.query('SHOW WAITING')).rows).toHaveLength(1), soon);
  operator.signals.emit('SIGUSR2');
  expect((await asks).rows).toEqual([{ one: 1 }]);
});

test('The signal SIGHUP applies a changed configuration, and ends no client', async () => {
  const operator = await running();
  const client = await operator.connect();
  await client.query('begin; select 1');
  operator.write('headgate.yaml', yaml('limits: { maxClientConn: 1 }'));
  operator.signals.emit('SIGHUP');
  await vi.waitFor(
    () => expect(operator.err).toMatch(/setting changed {2}setting=limits\.maxClientConn from=1000 to=1 /),
    soon,
  );
  await expect(operator.connect()).rejects.toMatchObject({ code: '53300' });
  await client.query('commit');
});

test('The log has connects, disconnects, server connections and figures, and no secret', async () => {
  const operator = new Operator();
  const config = yaml('logging: { statsPeriod: 50ms }\nusers: { postgres: { password: sesame-open } }');
  operator.write('headgate.yaml', config.replace('trust', 'scram-sha-256'));
  await operator.serve('--config', 'headgate.yaml');
  const client = await operator.connect({ password: 'sesame-open' });
  await client.query("select 'sesame, too'");
  await client.end();
  await expect(operator.connect({ password: 'sesame-shut' })).rejects.toThrow('authentication failed');
  await expect(operator.connect({ password: 'sesame-open', database: 'nowhere' })).rejects.toThrow(
    'does not exist',
  );
  const expected = ['client connected', 'client disconnected', 'server connection opened', 'client refused'];
  await vi.waitFor(() => {
    for (const text of [...expected, 'statistics of the last period']) expect(operator.err).toContain(text);
  }, soon);
  expect(operator.err).not.toContain('sesame');
  expect(operator.err).toMatch(/client connected {2}user=postgres database=\S+ from=127\.0\.0\.1 port=\d+\n/);
  expect(operator.err).toMatch(
    /client disconnected .* port=\d+ reason="the client said goodbye" duration_ms=\d+\n/,
  );
});

test('The log says why no server connection can be opened, and does not repeat itself for ever', async () => {
  const operator = new Operator();
  operator.write('headgate.yaml', yaml().replace(`port: ${db.port}`, 'port: 1'));
  await operator.serve(
    '--config',
    'headgate.yaml',
    '--query-wait-timeout',
    '1s',
    '--server-login-retry',
    '5ms',
  );
  await expect(operator.connect()).rejects.toThrow();
  const lines = operator.err.split('\n').filter((line) => line.includes('server connection failed'));
  expect(lines[0]).toMatch(/ error server connection failed .* cause=connection_open error=.*attempt=1$/);
  expect(lines.length).toBeLessThan(15);
});

const ini = ({ folder }: Operator): string => `
%include databases.ini
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = 0
unix_socket_dir =
auth_type = md5
auth_file = userlist.txt
admin_users = postgres
pool_mode = transaction
ignore_startup_parameters = extra_float_digits
logfile = ${join(folder, 'pgbouncer.log')}
auth_ldap_options = ldapserver=127.0.0.1
`;

test('--pgbouncer-ini serves clients with what PgBouncer was told, include files and all', async () => {
  const operator = new Operator();
  operator.write('pgbouncer.ini', ini(operator));
  operator.write(
    'databases.ini',
    `[databases]\nshop = host=${db.host} port=${db.port} dbname=${db.database}\n`,
  );
  operator.write('userlist.txt', `"${db.user}" "${db.password}"\n`);
  await operator.serve('--pgbouncer-ini', 'pgbouncer.ini');
  expect(operator.err).toContain('pgbouncer.ini:13  auth_ldap_options: ');
  const client = await operator.connect({ database: 'shop' });
  expect((await client.query('select current_database() as name')).rows).toEqual([{ name: db.database }]);
  const console = await operator.connect({ database: 'pgbouncer' });
  expect((await console.query('SHOW POOLS')).rows).toMatchObject([
    { database: 'shop', pool_mode: 'transaction' },
    { database: 'pgbouncer', pool_mode: 'statement' },
  ]);
  await expect(operator.connect({ database: 'shop', password: 'wrong' })).rejects.toThrow(
    'authentication failed',
  );
  expect(readFileSync(join(operator.folder, 'pgbouncer.log'), 'utf8')).toMatch(
    /LOG process up: PgBouncer .* \(Headgate /,
  );
});

test.runIf(process.platform !== 'win32')(
  'The Unix socket is given to the group that the configuration names',
  async () => {
    const operator = new Operator();
    // A user that is not root can give the socket only to a group of its own.
    const group = process.getuid?.() === 0 ? 1 : (process.getgid?.() as number);
    operator.write(
      'headgate.yaml',
      yaml().replace('listen: { port: 0 }', 'listen: { port: 61432, addresses: [] }'),
    );
    await operator.serve(
      '--config',
      'headgate.yaml',
      '--unix-socket-dir',
      operator.folder,
      '--unix-socket-group',
      String(group),
    );
    const socket = statSync(join(operator.folder, '.s.PGSQL.61432'));
    expect([socket.gid, socket.mode & 0o777]).toEqual([group, 0o777]);
    const client = await operator.connect({ host: operator.folder, port: 61_432 });
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  },
);
