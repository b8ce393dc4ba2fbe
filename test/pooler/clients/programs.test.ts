import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { SessionCounter } from '../../support/counting.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;
let pooler: TestPooler;
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(db, { pooling: { poolSize: 4 } });
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});

/** Whether a program is on this machine. What is not run must not look as if it had passed. */
function has(program: string): boolean {
  const found = spawnSync(program, ['--version']).status === 0;
  if (!found)
    process.stderr.write(`\n!!! NOT RUN: ${program} is not on this machine; its tests are left out !!!\n\n`);
  return found;
}

interface Output {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

function run(program: string, args: readonly string[], place: TestDatabase = pooler): Promise<Output> {
  const { host, port, user, password, database } = place;
  const environment = {
    ...process.env,
    PGHOST: host,
    PGPORT: String(port),
    PGUSER: user,
    PGPASSWORD: password,
    PGDATABASE: database,
    PGCONNECT_TIMEOUT: '10',
  };
  return new Promise((resolve) => {
    execFile(
      program,
      args,
      { env: environment, timeout: 25_000, maxBuffer: 1 << 26 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code ?? 255);
        resolve({ stdout, stderr, code });
      },
    );
  });
}

const hasPsql = has('psql');
const hasPgbench = has('pgbench');
const hasPgDump = has('pg_dump');

function psql(script: string, place: TestDatabase = pooler): Promise<Output> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-psql-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'script.sql');
  writeFileSync(file, script);
  return run('psql', ['-X', '-A', '-t', '-q', '-f', file], place);
}

describe.runIf(hasPsql)('psql', () => {
  const scripts: Readonly<Record<string, string>> = {
    'queries, errors and transactions': `
      select 1; select 'a', null, 2.5;
      select nonsense;
      begin; select 2; select 1/0; select 3; rollback;
      begin; savepoint a; select 1/0; rollback to a; select 4; commit;
    `,
    'settings and temporary tables': `
      set search_path = pg_catalog, public; show search_path;
      create temp table mine (a int); insert into mine values (1), (2); select sum(a) from mine;
      set timezone = 'Asia/Tokyo'; select timestamptz '2024-01-01 00:00:00+00';
      reset all; show search_path; discard all; select count(*) from pg_class where relname = 'mine';
    `,
    'copy both ways': [
      'drop table if exists copied_by_psql;',
      'create table copied_by_psql (a int, b text);',
      'copy copied_by_psql from stdin;',
      '1\tone',
      '2\ttwo',
      '\\.',
      'copy (select * from copied_by_psql order by a) to stdout;',
      'copy copied_by_psql from stdin;',
      'no number\tx',
      '\\.',
      'select count(*) from copied_by_psql;',
      'drop table copied_by_psql;',
    ].join('\n'),
    'prepared statements, in SQL and by messages': `
      prepare p (int) as select $1 * 2; execute p(21); deallocate p;
      select $1::int + $2::int \\bind 20 22 \\g
      select 'parsed ' || $1 \\parse stmt1
      \\bind_named stmt1 'well' \\g
      \\bind_named stmt1 'again' \\g
      \\close stmt1
    `,
    'cursors and \\gexec, \\gdesc, \\watch': `
      begin; declare c cursor for select generate_series(1, 10); fetch 3 from c; move 2 in c; fetch all from c; commit;
      select 'select ' || n from generate_series(1, 3) as n \\gexec
      select 1 as a, 'b' as b \\gdesc
    `,
  };

  test.each(Object.entries(scripts))(
    'prints the same with the pooler as without: %s',
    async (_name, script) => {
      const direct = await psql(script, db);
      const through = await psql(script);
      expect(through.stdout).toBe(direct.stdout);
      expect(withoutPlaces(through.stderr)).toBe(withoutPlaces(direct.stderr));
      expect(through.code).toBe(direct.code);
    },
  );

  test('shows what is in the database', async () => {
    for (const command of ['\\d', '\\dt *.*', '\\df pg_catalog.abs', '\\l', '\\conninfo', '\\encoding']) {
      const direct = await run('psql', ['-X', '-c', command], db);
      const through = await run('psql', ['-X', '-c', command]);
      expect({ ...through, stdout: '' }).toEqual({ ...direct, stdout: '' });
    }
  });
});

function withoutPlaces(text: string): string {
  return text.replaceAll(/^psql:[^:]+:/gm, 'psql:');
}

describe.runIf(hasPgbench)('pgbench', () => {
  beforeAll(async () => {
    const { code, stderr } = await run('pgbench', ['-i', '-q', '-s', '1']);
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  });

  test.each(['simple', 'extended', 'prepared'])('runs with 16 clients on 4 servers: %s', async (protocol) => {
    await using counter = await SessionCounter.open(db.url.replace(/[^/]+$/, 'postgres'));
    let most = 0;
    let isOver = false;
    const counting = (async () => {
      while (!isOver) most = Math.max(most, await counter.count({ database: db.database }));
    })();
    // With prepared statements, older versions of pgbench wait for one client while others hold the servers.
    const what = protocol === 'prepared' ? ['-S'] : [];
    const args = ['-n', '-c', '16', '-j', '2', '-t', '40', '-M', protocol, ...what];
    const { code, stdout, stderr } = await run('pgbench', args);
    isOver = true;
    await counting;
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/number of transactions actually processed: 640\/640/);
    expect(stdout).toMatch(/number of failed transactions: 0/);
    expect(most).toBeLessThanOrEqual(4);
  });

  test('what was paid in is what there is: no transaction was lost or done twice', async () => {
    const client = await pooler.connect();
    const { rows } = await client.query(`
      select (select sum(abalance) from pgbench_accounts) as accounts, (select sum(bbalance) from pgbench_branches) as branches,
        (select sum(tbalance) from pgbench_tellers) as tellers, (select sum(delta) from pgbench_history) as history`);
    const { accounts, branches, tellers, history } = rows[0];
    expect([branches, tellers, history]).toEqual([accounts, accounts, accounts]);
  });

  test('reads in pipelines', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-pgbench-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const script = join(folder, 'pipeline.sql');
    const read = 'select abalance from pgbench_accounts where aid = :aid;\n';
    writeFileSync(script, `\\set aid random(1, 100000)\n\\startpipeline\n${read.repeat(8)}\\endpipeline\n`);
    for (const protocol of ['extended', 'prepared']) {
      const { code, stdout, stderr } = await run('pgbench', [
        '-n',
        '-c',
        '8',
        '-t',
        '30',
        '-M',
        protocol,
        '-f',
        script,
      ]);
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/number of transactions actually processed: 240\/240/);
    }
  });
});

describe.runIf(hasPgDump)('pg_dump', () => {
  test('dumps the same through the pooler as without it', async () => {
    const client = await pooler.connect();
    await client.query('create table dumped (a int primary key, b text)');
    await client.query("insert into dumped select n, 'row ' || n from generate_series(1, 100) as n");
    const args = ['-t', 'dumped', '--no-comments'];
    const direct = await run('pg_dump', args, db);
    const through = await run('pg_dump', args);
    // A dump and its server can be of versions that do not go together; then neither way works.
    expect(through.code).toBe(direct.code);
    const unique = /^\\(?:un)?restrict .*$/gm;
    expect(through.stdout.replaceAll(unique, '')).toBe(direct.stdout.replaceAll(unique, ''));
  });
});
