import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { has, type Output, type Place, run, runWell, scratchFolder } from './programs.js';

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

function psql(script: string, place: Place): Promise<Output> {
  const file = join(scratchFolder(), 'script.sql');
  writeFileSync(file, script);
  return run('psql', ['-X', '-A', '-t', '-q', '-f', file], place);
}

function withoutPlaces(text: string): string {
  return text.replaceAll(/^psql:[^:]+:/gm, 'psql:');
}

describe.runIf(has('psql'))('psql', () => {
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
    'cursors and \\gexec, \\gdesc, FETCH_COUNT': `
      begin; declare c cursor for select generate_series(1, 10); fetch 3 from c; move 2 in c; fetch all from c; commit;
      select 'select ' || n from generate_series(1, 3) as n \\gexec
      select 1 as a, 'b' as b \\gdesc
      \\set FETCH_COUNT 7
      select generate_series(1, 30);
      select 1 / (n - 10) from generate_series(1, 30) as n;
    `,
    'errors that are rolled back to, one by one': `
      \\set ON_ERROR_ROLLBACK on
      begin; select 1; select nonsense; select 2; select 1/0; select 3; commit;
    `,
    'a new connection in the middle': `
      set work_mem = '5MB'; show work_mem;
      \\connect
      show work_mem; select 'still here';
    `,
    'notifications, notices and settings of a function': `
      do $$ begin raise notice 'first'; raise warning 'second'; end $$;
      listen here; notify here, 'to myself'; select 1; unlisten *;
      create function pg_temp.f() returns text language sql set work_mem = '9MB' as 'select current_setting(''work_mem'')';
      select pg_temp.f();
    `,
  };

  test.each(Object.entries(scripts))(
    'prints the same with the pooler as without: %s',
    async (_name, script) => {
      const direct = withoutProcessIds(await psql(script, db));
      const through = withoutProcessIds(await psql(script, pooler));
      expect(through.stdout).toBe(direct.stdout);
      expect(withoutPlaces(through.stderr)).toBe(withoutPlaces(direct.stderr));
      expect(through.code).toBe(direct.code);
    },
  );

  test('psql shows what is in the database', async () => {
    for (const command of ['\\d', '\\dt *.*', '\\df pg_catalog.abs', '\\l', '\\conninfo', '\\encoding']) {
      const direct = await run('psql', ['-X', '-c', command], db);
      const through = await run('psql', ['-X', '-c', command], pooler);
      expect({ ...through, stdout: '' }).toEqual({ ...direct, stdout: '' });
    }
  });

  test('psql runs a script of thousands of statements, with COPY and failed transactions between them', async () => {
    const lines = ['create table big_script (n int primary key, t text);'];
    for (let n = 0; n < 1500; n += 3) {
      lines.push(
        `insert into big_script values (${n}, 'row ${n}');`,
        `begin; insert into big_script values (${n + 1}, 'undone'); select 1/0; commit;`,
        'copy big_script from stdin;',
        `${n + 2}\tcopied`,
        '\\.',
      );
    }
    lines.push("select count(*), sum(n), count(*) filter (where t = 'copied') from big_script;");
    const { stdout, code } = await psql(lines.join('\n'), pooler);
    expect(code).toBe(0);
    expect(stdout.trim()).toBe(`1000|${500 * 499 * 3 + 1000}|500`);
  });

  test('copies files into the database and out of it', async () => {
    const folder = scratchFolder();
    const [from, to] = [join(folder, 'in.csv'), join(folder, 'out.csv')];
    // A few megabytes, so that the data comes in many pieces.
    const rows = Array.from(
      { length: 40_000 },
      (_, n) => `${n},"text, with ""quotes"" and ${'x'.repeat(60)}"\n`,
    );
    writeFileSync(from, rows.join(''));
    const args = ['-X', '-q', '-v', 'ON_ERROR_STOP=1'];
    const commands = [
      'create table copied_file (n int, t text)',
      `\\copy copied_file from '${from}' csv`,
      `\\copy (select * from copied_file order by n) to '${to}' csv force quote t`,
    ];
    await runWell('psql', [...args, ...commands.flatMap((command) => ['-c', command])], pooler);
    expect(readFileSync(to, 'utf8') === rows.join('')).toBe(true);
  });

  test('psql says where a file can not be copied, and goes on', async () => {
    const file = join(scratchFolder(), 'bad.csv');
    writeFileSync(file, `${'1,one\n'.repeat(20_000)}x,two\n${'3,three\n'.repeat(20_000)}`);
    const script = `create table copied_badly (n int, t text);\n\\copy copied_badly from '${file}' csv\nselect count(*) from copied_badly;\n`;
    const { stdout, stderr } = await psql(script, pooler);
    expect(stderr).toMatch(
      /invalid input syntax for type integer: "x"\nCONTEXT: {2}COPY copied_badly, line 20001/,
    );
    expect(stdout.trim()).toBe('0');
  });

  test('psql stops at the first error where it is told to, and undoes all in one transaction', async () => {
    const commands = ['create table undone (n int)', 'select nonsense', 'select 2'];
    const stops = ['-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1', ...commands.flatMap((text) => ['-c', text])];
    const stopped = await run('psql', ['-1', ...stops], pooler);
    expect(stopped.code).toBe(1);
    expect(stopped.stdout).not.toContain('2');
    const { stdout } = await run(
      'psql',
      ['-X', '-A', '-t', '-c', "select to_regclass('undone') is null"],
      pooler,
    );
    expect(stdout.trim()).toBe('t');
    const several = await run('psql', ['-X', '-A', '-t', '-c', 'select 1; select 1/0; select 3'], pooler);
    const direct = await run('psql', ['-X', '-A', '-t', '-c', 'select 1; select 1/0; select 3'], db);
    expect(several).toEqual(direct);
  });
});

/** A notification carries the number of the server's process, which is another one each time. */
function withoutProcessIds(output: Output): Output {
  return { ...output, stdout: output.stdout.replaceAll(/PID \d+/g, 'PID') };
}
