// psql and pgbench against the stand-in, with full verification of its certificate.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { has, type Output, run } from '../../pooler/clients/programs.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';

let dsql: TestDsql;
const folder = mkdtempSync(join(tmpdir(), 'headgate-programs-'));
beforeAll(async () => {
  dsql = await startTestDsql();
  await dsql.run('CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL)');
  await dsql.reset();
});
afterAll(async () => {
  await dsql.stop();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(async () => {
  await dsql.reset();
  expect(dsql.troubles).toEqual([]);
});

/** By the cluster's name, which leads to the loopback. */
function conninfo(more = ''): string {
  const { endpoint, caFile, host } = dsql;
  return `host=${endpoint} hostaddr=${host} sslmode=verify-full sslrootcert=${caFile} ${more}`;
}

async function runThere(program: string, args: readonly string[], user = 'admin'): Promise<Output> {
  const password = await dsql.token({ user });
  const { endpoint: host, port } = dsql;
  return run(program, args, { host, port, user, password, database: 'postgres' });
}

describe.skipIf(!has('psql', '--version', 'postgresql-client'))('psql', () => {
  const psql = (text: string, more?: string): Promise<Output> =>
    runThere('psql', ['-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', conninfo(more), '-c', text]);

  test('psql connects with sslmode=verify-full and runs statements', async () => {
    const { code, stdout, stderr } = await psql('SELECT 1 + 1; SHOW server_version; SELECT current_user');
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '2\n16.15\nadmin\n', stderr: '' });
    expect(dsql.logins).toMatchObject([{ user: 'admin', serverName: dsql.endpoint }]);
  });

  test('psql lists tables and describes one', async () => {
    expect((await psql('\\dt')).stdout).toContain('public|counters|table|admin');
    expect((await psql('\\d counters')).stdout).toContain('id|integer||not null|');
  });

  test('psql shows the refusal of a wrong token with its hint', async () => {
    const { endpoint: host, port } = dsql;
    const password = await dsql.token({ region: 'eu-west-1' });
    const { code, stderr } = await run('psql', ['-X', '-d', conninfo(), '-c', 'SELECT 1'], {
      host,
      port,
      user: 'admin',
      password,
      database: 'postgres',
    });
    expect(code).toBe(2);
    expect(stderr).toContain('FATAL:  unable to accept connection, access denied');
    expect(stderr).toContain("HINT:  Credential should be scoped to a valid region, not 'eu-west-1'.");
  });

  test('psql is refused without TLS, and with a certificate of another authority', async () => {
    const plain = await psql('SELECT 1', 'sslmode=disable sslrootcert=');
    expect([plain.code, plain.stderr]).toEqual([2, expect.stringContaining('TLS is required')]);
    writeFileSync(join(folder, 'other.pem'), '');
    const other = await psql('SELECT 1', `sslrootcert=${join(folder, 'other.pem')}`);
    expect(other.code).toBe(2);
  });

  test.skipIf(libpqVersion() < 17)('psql begins with TLS at once: sslnegotiation=direct', async () => {
    expect((await psql('SELECT 1', 'sslnegotiation=direct')).stdout).toBe('1\n');
    expect(dsql.logins).toMatchObject([{ isDirectTls: true }]);
  });
});

describe.skipIf(!has('pgbench'))('pgbench', () => {
  test.each(['simple', 'extended', 'prepared'])(
    'pgbench runs a script of transactions without conflicts by the %s protocol',
    async (protocol) => {
      const script = join(folder, `${protocol}.sql`);
      writeFileSync(
        script,
        [
          '\\set id random(1, 1000000000)',
          'BEGIN;',
          'INSERT INTO counters VALUES (:id, 0) ON CONFLICT (id) DO NOTHING;',
          'UPDATE counters SET n = n + 1 WHERE id = :id;',
          'SELECT n FROM counters WHERE id = :id;',
          'COMMIT;',
        ].join('\n'),
      );
      const { code, stdout, stderr } = await runThere('pgbench', [
        '-n',
        '-M',
        protocol,
        '-c',
        '4',
        '-t',
        '25',
        '-f',
        script,
        conninfo(),
      ]);
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain('number of transactions actually processed: 100/100');
    },
  );
});

/** 0 where there is no psql. */
function libpqVersion(): number {
  try {
    return Number(/\(PostgreSQL\) (\d+)/.exec(execFileSync('psql', ['--version']).toString())?.[1] ?? 0);
  } catch {
    return 0;
  }
}
