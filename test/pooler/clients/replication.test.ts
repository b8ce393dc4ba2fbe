import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { sendCancelRequest } from '../../support/cancel-request.js';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';
import { Served } from '../workers/served.js';
import { run, runWell, sayNotRun, scratchFolder } from './programs.js';
import { findSystemPostgres, startSystemPostgres } from './system-postgres.js';

const programs = findSystemPostgres();
const hasBackup = programs !== undefined && existsSync(join(programs, 'pg_basebackup'));
const hasReceiver = programs !== undefined && existsSync(join(programs, 'pg_recvlogical'));
if (programs !== undefined && !(hasBackup && hasReceiver))
  sayNotRun('the tests with pg_basebackup and pg_recvlogical', 'Debian: apt-get install postgresql');

/** A startup packet says this beside the usual; node-postgres passes it on. */
type Options = pg.ClientConfig & { replication: string };

describe.runIf(programs !== undefined)('replication through the pooler', () => {
  const program = (name: string) => join(programs as string, name);
  let server: TestDatabase;
  beforeAll(async () => {
    server = await startSystemPostgres(programs as string, ['wal_level=logical', 'max_wal_senders=10']);
  });
  afterAll(() => server.drop());

  const start = (tree: ConfigTree = {}, files: Record<string, string> = {}): Promise<TestPooler> => {
    const { host, port } = server;
    return startTestPooler(
      server,
      { databases: { '*': { host, port, dbname: 'postgres' } }, ...tree },
      { files },
    );
  };
  const connect = (pooler: TestPooler, replication: string, more: pg.ClientConfig = {}) => {
    const options: Options = { replication, ...more };
    return pooler.connect(options);
  };
  const rowsOf = async (pooler: TestPooler, text: string): Promise<Record<string, unknown>[]> => {
    const client = await pooler.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  };

  /** The server notices some time after the receiver has left. */
  const isReleased = (client: pg.Client) =>
    expect
      .poll(async () => (await client.query('select active from pg_replication_slots')).rows, {
        timeout: 20_000,
      })
      .toEqual([{ active: false }]);

  test.each(['true', 'on', 'yes', '1', 'database'])(
    'a client with replication=%s gets a walsender, which ordinary clients do not',
    async (word) => {
      const pooler = await start();
      const client = await connect(pooler, word, { application_name: 'a standby' });
      const { rows } = await client.query('IDENTIFY_SYSTEM');
      expect(rows[0].dbname).toBe(word === 'database' ? 'postgres' : null);
      expect(
        await rowsOf(
          pooler,
          "select application_name from pg_stat_activity where backend_type = 'walsender' and application_name = 'a standby'",
        ),
      ).toEqual([{ application_name: 'a standby' }]);
      const ordinary = await pooler.connect();
      await expect(ordinary.query('IDENTIFY_SYSTEM')).rejects.toMatchObject({ code: '42601' });
    },
  );

  test('replication=off is an ordinary client, and another word is refused as by PostgreSQL', async () => {
    const pooler = await start();
    const client = await connect(pooler, 'off');
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    await expect(connect(pooler, 'perhaps')).rejects.toMatchObject({ code: '22023' });
    await expect(connect(pooler, 'true', { database: 'pgbouncer' })).rejects.toMatchObject({ code: '0A000' });
  });

  test('a replication client counts in the pool, keeps its server between commands and takes it along when it leaves', async () => {
    const pooler = await start({ pooling: { poolSize: 1 }, timeouts: { queryWaitTimeout: '500ms' } });
    const first = await pooler.connect();
    await first.query('select 1');
    const client = await connect(pooler, 'database');
    const pid = (await client.query('select pg_backend_pid() as pid')).rows[0].pid;
    await client.query("set application_name = 'left behind'");
    await expect(first.query('select 1')).rejects.toMatchObject({ code: '53300' });
    expect((await client.query('select pg_backend_pid() as pid')).rows[0].pid).toBe(pid);
    await client.end();
    const after = (
      await first.query('select pg_backend_pid() as pid, current_setting($1) as name', ['application_name'])
    ).rows[0];
    expect(after.pid).not.toBe(pid);
    expect(after.name).not.toBe('left behind');
    const { rows } = await first.query('select pid from pg_stat_activity where pid = $1', [pid]);
    expect(rows).toEqual([]);
  });

  test.each([
    ['read-only', 'on'],
    ['read-write', 'off'],
  ])('replication goes to the host that target_session_attrs = %s wants', async (wanted, readOnly) => {
    const settings = ['wal_level=logical', 'default_transaction_read_only=on'];
    const other = await startSystemPostgres(programs as string, settings);
    onTestFinished(() => other.drop());
    const hosts = wanted === 'read-only' ? [server, other] : [other, server];
    const pooler = await start({
      databases: {
        [server.database]: {
          host: hosts.map(({ host }) => host),
          port: hosts.map(({ port }) => port),
          dbname: 'postgres',
          loadBalanceHosts: 'disable',
          targetSessionAttrs: wanted,
        },
      },
    });
    for (const word of ['database', 'true']) {
      const client = await connect(pooler, word);
      const { rows } = await client.query('SHOW default_transaction_read_only');
      expect(rows).toEqual([{ default_transaction_read_only: readOnly }]);
    }
  });

  test('the console shows replication clients and their servers by kind', async () => {
    const pooler = await start({ admin: { adminUsers: ['postgres'] } });
    await connect(pooler, 'database');
    await connect(pooler, 'true');
    const console = await pooler.connect({ database: 'pgbouncer' });
    for (const table of ['clients', 'servers']) {
      const { rows } = await console.query(`show ${table}`);
      const kinds = rows.map((row) => row.replication).filter((kind) => kind !== 'none');
      expect(kinds.sort()).toEqual(['logical', 'physical']);
    }
  });

  test('physical replication needs no database: the pool opens nothing else for it', async () => {
    const { host, port } = server;
    const pooler = await start({ databases: { '*': { host, port } } });
    const client = await connect(pooler, 'true', { database: 'replication' });
    expect((await client.query('IDENTIFY_SYSTEM')).rows).toHaveLength(1);
  });

  test('a refused replication client hears why, and no ordinary client of its pool does', async () => {
    await rowsOf(await start(), 'create role unprivileged login');
    const lines: string[] = [];
    const { host, port } = server;
    const log = (_: string, message: string): void => void lines.push(message);
    const pooler = await startTestPooler(
      server,
      {
        databases: { one: { host, port, dbname: 'postgres', user: 'unprivileged', poolSize: 1 } },
        admin: { compatibility: 'pgbouncer' },
      },
      { host: { log } },
    );
    for (let turn = 0; turn < 2; turn++)
      await expect(connect(pooler, 'database', { database: 'one' })).rejects.toMatchObject({
        message: 'login failed',
        code: '08P01',
      });
    expect(lines.filter((line) => /closing because: login failed \(age/.test(line))).toHaveLength(4);
    const ordinary = await pooler.connect({ database: 'one' });
    expect((await ordinary.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  test('an idle server connection makes room for a replication client, and both ends are logged as by PgBouncer', async () => {
    const lines: string[] = [];
    const { host, port } = server;
    const log = (_: string, message: string): void => void lines.push(message);
    const pooler = await startTestPooler(
      server,
      {
        databases: { '*': { host, port, dbname: 'postgres', poolSize: 1 } },
        admin: { compatibility: 'pgbouncer' },
      },
      { host: { log } },
    );
    const ordinary = await pooler.connect();
    await ordinary.query('select 1');
    const client = await connect(pooler, 'database');
    expect(lines.filter((line) => /closing because: evicted for pool_size \(age/.test(line))).toHaveLength(1);
    await client.end();
    await expect.poll(() => lines.join('\n')).toMatch(/closing because: replication client was closed \(age/);
    expect(lines.join('\n')).not.toContain('server conn crashed?');
  });

  test('connections of the reserve stay open, and make room for a replication client as well', async () => {
    const lines: string[] = [];
    const { host, port } = server;
    const log = (_: string, message: string): void => void lines.push(message);
    const pooler = await startTestPooler(
      server,
      {
        databases: { '*': { host, port, dbname: 'postgres' } },
        pooling: { poolSize: 1, reservePoolSize: 1, reservePoolTimeout: '50ms' },
        admin: { compatibility: 'pgbouncer', adminUsers: ['postgres'] },
      },
      { host: { log } },
    );
    const both = [await pooler.connect(), await pooler.connect()];
    await Promise.all(both.map((client) => client.query('begin')));
    await Promise.all(both.map((client) => client.query('select 1')));
    await Promise.all(both.map((client) => client.query('commit')));
    await connect(pooler, 'database');
    expect(lines.filter((line) => /closing because: evicted for pool_size/.test(line))).toHaveLength(2);
    expect(lines.join('\n')).not.toContain('too many servers in the pool');
  });

  test('a cancel request reaches the server of a replication client', async () => {
    const pooler = await start();
    const client = await connect(pooler, 'database');
    const asleep = client.query('select pg_sleep(600)');
    const refused = expect(asleep).rejects.toMatchObject({ code: '57014' });
    const running =
      "select 1 from pg_stat_activity where query = 'select pg_sleep(600)' and state = 'active'";
    await expect.poll(() => rowsOf(pooler, running)).toHaveLength(1);
    await sendCancelRequest(client, pooler);
    await refused;
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  test('HBA rules for the database `replication` are those of physical replication only', async () => {
    const rules = 'host replication postgres all reject\nhost all all all trust\n';
    const pooler = await start({ auth: { type: 'hba', hbaFile: 'hba' } }, { hba: rules });
    await expect(connect(pooler, 'true')).rejects.toMatchObject({ code: '28000' });
    const client = await connect(pooler, 'database');
    expect((await client.query('IDENTIFY_SYSTEM')).rows).toHaveLength(1);
  });

  test('replication works with several workers, and its server connection is given back to all of them', async () => {
    const { host, port } = server;
    const served = new Served(server, {
      databases: { '*': { host, port, dbname: 'postgres' } },
      pooling: { poolSize: 1 },
    });
    await served.says('listening on 127.0.0.1');
    const options: Options = { replication: 'database' };
    for (let turn = 0; turn < 3; turn++) {
      const client = await served.connect(options);
      expect((await client.query('IDENTIFY_SYSTEM')).rows).toHaveLength(1);
      await client.end();
      const ordinary = await served.connect();
      expect((await ordinary.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
      await ordinary.end();
    }
  });

  test.runIf(hasBackup)('pg_basebackup makes a whole copy through the pooler', async () => {
    const pooler = await start();
    const folder = join(scratchFolder(), 'copy');
    await runWell(program('pg_basebackup'), ['-D', folder, '-X', 'stream', '-c', 'fast'], pooler);
    await runWell(program('pg_verifybackup'), [folder], pooler);
    expect(readFileSync(join(folder, 'PG_VERSION'), 'utf8')).toMatch(/^\d+/);
  });

  test.runIf(hasReceiver)('logical decoding streams changes in both directions of CopyBoth', async () => {
    const pooler = await start();
    const client = await pooler.connect();
    await client.query('create table if not exists noted (n int)');
    const slot = ['-d', 'postgres', '--slot', 'through_the_pooler'];
    await runWell(program('pg_recvlogical'), [...slot, '--create-slot', '-P', 'test_decoding'], pooler);
    const { host, port, user } = pooler;
    const env = { ...process.env, PGHOST: host, PGPORT: String(port), PGUSER: user };
    const receiver = spawn(
      program('pg_recvlogical'),
      [...slot, '--start', '--no-loop', '-f', '-', '-F', '1', '-s', '1'],
      { env, stdio: ['ignore', 'pipe', 'ignore'] },
    );
    const closed = new Promise((resolve) => receiver.once('close', resolve));
    const lines: string[] = [];
    const third = new Promise<void>((resolve) =>
      createInterface({ input: receiver.stdout }).on('line', (line) => {
        if (line.startsWith('table')) lines.push(line);
        if (lines.length === 3) resolve();
      }),
    );
    await client.query('insert into noted select generate_series(1, 3)');
    await third;
    expect(lines).toEqual([1, 2, 3].map((n) => `table public.noted: INSERT: n[integer]:${n}`));
    // The receiver's reports of its progress go the other way.
    const { rows } = await client.query('select pg_current_wal_lsn() as lsn');
    await expect
      .poll(
        async () => {
          const said = await client.query(
            'select confirmed_flush_lsn >= $1::pg_lsn as ok from pg_replication_slots',
            [rows[0].lsn],
          );
          return said.rows[0].ok;
        },
        { timeout: 20_000 },
      )
      .toBe(true);
    receiver.kill('SIGINT');
    await closed;
    await isReleased(client);
    // The end of the copy, in both directions, and the goodbye.
    await client.query('insert into noted values (4)');
    const end = await client.query('select pg_current_wal_lsn() as lsn');
    const until = ['--start', '--no-loop', '-f', '-', '--endpos', end.rows[0].lsn];
    const out = await runWell(program('pg_recvlogical'), [...slot, ...until], pooler);
    expect(out).toContain('table public.noted: INSERT: n[integer]:4');
    await isReleased(client);
    const dropped = await run(program('pg_recvlogical'), [...slot, '--drop-slot'], pooler);
    expect(dropped).toMatchObject({ code: 0, stderr: '' });
  });
});
