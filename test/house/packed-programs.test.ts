// The packed file in programs of every kind: Node itself, test runners and bundlers, with import and require side by side.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryNames } from '../../scripts/lib/package-entries.mjs';
import { type PackedProject, packedProject, root } from '../support/packed-project.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

const jest = join(root, 'node_modules/jest/bin/jest.js');
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const bundlers = join(root, 'test/support/bundlers.mjs');
const entries = entryNames(root);
const all = entries.map((name) => (name === 'index' ? 'headgate' : `headgate/${name}`));

/** One module imports, another one requires, and the report says whether they got the same. */
function programWith(entries: readonly string[]): Record<string, string> {
  return {
    'program.mjs': `${entries.map((name, index) => `import * as entry${index} from '${name}';`).join('\n')}
      import { Pool, HeadgateError } from 'headgate';
      import PgPool, { Pool as namedPgPool } from 'headgate/pg-pool';
      import required from './required.cjs';
      export async function report() {
        const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 1 });
        const { rows } = await pool.query('select 40 + 2 as answer');
        await pool.end();
        const error = await pool.connect().catch((error) => error);
        const loaded = [${entries.map((_name, index) => `entry${index}`).join(', ')}];
        return {
          answer: rows[0].answer,
          isPool: pool instanceof required.headgate.Pool,
          isError: error instanceof required.headgate.HeadgateError && error instanceof HeadgateError,
          isPgPool: PgPool === required.pgPool && PgPool === namedPgPool,
          errorName: error.name,
          differing: loaded.flatMap((entry, index) => {
            const other = required.all[index];
            if (typeof other === 'function') return other === entry.default ? [] : [index];
            return Object.keys(other).filter((key) => key !== '__esModule' && other[key] !== entry[key]);
          }),
        };
      }`,
    'required.cjs': `exports.all = [${requires(entries)}];
      exports.headgate = require('headgate');
      exports.pgPool = require('headgate/pg-pool');`,
    'main.mjs': `import { report } from './program.mjs';
      report().then((said) => console.log(JSON.stringify(said)));`,
  };
}

function versionOf(name: string): string {
  const manifest = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

function requires(entries: readonly string[]): string {
  return entries.map((name) => `require('${name}')`).join(', ');
}

/** What a program does with a pool, for versions of pg that are years apart. */
const everyWay = `const pg = require('pg');
  const { Pool } = require('headgate');
  const settings = { connectionString: process.env.DATABASE_URL, max: 2 };
  const codeOf = ({ code }) => code;
  async function main() {
    const pool = new Pool(settings);
    const events = [];
    for (const name of ['connect', 'acquire', 'release', 'remove']) pool.on(name, () => events.push(name));
    const first = await pool.query('select $1::int + 1 as answer', [41]);
    const removed = new Promise((resolve) => pool.once('remove', resolve));
    const failed = await pool.query('select nothing').catch(codeOf);
    await removed;
    const client = await pool.connect();
    await client.query('begin');
    const inside = await client.query({ text: 'select $1::text as t', values: ['x'], rowMode: 'array' });
    await client.query('rollback');
    client.release();
    const byCallback = await new Promise((resolve) => pool.query('select 1 as one', (error, result) => resolve(error ?? result.rows)));
    const killer = new pg.Client(settings);
    await killer.connect();
    const lost = new Promise((resolve) => pool.once('error', (error) => resolve(error.code)));
    await killer.query("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()");
    const lostCode = await lost;
    await killer.end();
    const after = await pool.query('select 2 as two');
    await pool.end();
    const pipelined = new Pool({ ...settings, max: 1, pipeline: { depth: 8 } });
    const many = await Promise.all(Array.from({ length: 50 }, (_, n) => pipelined.query('select $1::int as n', [n])));
    await pipelined.end();
    console.log(JSON.stringify({
      version: require('pg/package.json').version,
      answer: first.rows[0].answer, failed, inside: inside.rows, byCallback, lostCode, after: after.rows,
      isPgPool: pool instanceof pg.Pool, isPgClient: client instanceof pg.Client,
      pipelined: many.every(({ rows }, n) => rows[0].n === n), events: events.join(' '),
    }));
  }
  main();`;
const everyAnswer = {
  answer: 42,
  failed: '42703',
  inside: [['x']],
  byCallback: [{ one: 1 }],
  lostCode: '57P01',
  after: [{ two: 2 }],
  isPgPool: true,
  isPgClient: true,
  pipelined: true,
  events:
    'connect acquire release acquire release remove connect acquire release acquire release remove connect acquire release remove',
};

const good = {
  answer: 42,
  isPool: true,
  isError: true,
  isPgPool: true,
  errorName: 'PoolClosedError',
  differing: [],
};

describe('a program with the packed file among its packages', () => {
  let project: PackedProject;
  let db: TestDatabase;
  beforeAll(async () => {
    db = await withDatabase();
    project = await packedProject(['jest', 'vitest']);
    project.write(programWith(all));
    const few = Object.entries(programWith(['headgate', 'headgate/pg-pool', 'headgate/prometheus']));
    project.write(Object.fromEntries(few.map(([file, text]) => [`few/${file}`, text])));
  }, 60_000);
  afterAll(async () => {
    project?.remove();
    await db?.drop();
  });

  async function reportOf(file: string, args: readonly string[] = []): Promise<unknown> {
    const { stdout, stderr } = await project.run(args[0] ?? file, args[0] ? [...args.slice(1), file] : [], {
      DATABASE_URL: db.url,
    });
    expect(stderr).toBe('');
    return JSON.parse(stdout);
  }

  test('a program with the packed file among its packages imports and requires every entry on Node, and gets the same without a warning', async () => {
    expect(await reportOf('main.mjs')).toEqual(good);
  });

  test('a program with the packed file among its packages imports and requires the same where Node can not require ES modules', async () => {
    expect(await reportOf('main.mjs', ['--no-experimental-require-module'])).toEqual(good);
  });

  test('a program with the packed file among its packages finds functions and classes under the names that they are exported with', async () => {
    project.write({
      'names.cjs': `const all = [${requires(all)}];
        const misnamed = all.flatMap((entry) => Object.entries(entry))
          .filter(([name, value]) => typeof value === 'function' && value.name !== name)
          .map(([name, value]) => name + ': ' + value.name);
        console.log(JSON.stringify(misnamed));`,
    });
    expect(await reportOf('names.cjs')).toEqual([]);
  });

  test('a program with the packed file among its packages has the live page, and the script of the report of a simulation', async () => {
    project.write({
      'report.cjs': `const { existsSync } = require('node:fs');
        const { htmlReport, readScenario, simulate } = require('headgate/simulator');
        const scenario = readScenario({ duration: '2s', services: [{ name: 'a', kind: 'DsqlPool' }] });
        const page = htmlReport({ scenario, result: simulate(scenario) });
        const files = ['index.html', 'licenses.md'].map((name) => 'node_modules/headgate/dist/page/' + name);
        console.log(JSON.stringify([page.includes('With uPlot (MIT)'), ...files.map((file) => existsSync(file))]));`,
    });
    expect(await reportOf('report.cjs')).toEqual([true, true, true]);
  });

  test('a program with the packed file among its packages can read the package.json, and can not reach past what is exported', async () => {
    project.write({
      'reach.cjs': `const { name } = require('headgate/package.json');
        import('headgate/dist/index.js').catch((error) => console.log(JSON.stringify([name, error.code])));`,
    });
    expect(await reportOf('reach.cjs')).toEqual(['headgate', 'ERR_PACKAGE_PATH_NOT_EXPORTED']);
  });

  const jestTest = (report: string) => `test('headgate', async () => {
      ${report}
      expect(said).toEqual(${JSON.stringify(good)});
    });`;

  test('a program with the packed file among its packages runs in Jest as it is installed, which can not load ES modules', async () => {
    project.write({
      'jest/default.test.js': `const all = [${requires(all)}];
        const { Pool, PoolClosedError, HeadgateError } = require('headgate');
        const PgPool = require('headgate/pg-pool');
        test('headgate', async () => {
          const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 1 });
          expect((await pool.query('select 40 + 2 as answer')).rows).toEqual([{ answer: 42 }]);
          await pool.end();
          await expect(pool.connect()).rejects.toBeInstanceOf(PoolClosedError);
          await expect(pool.connect()).rejects.toBeInstanceOf(HeadgateError);
          expect(pool).toBeInstanceOf(require('pg').Pool);
          const other = new PgPool({ connectionString: process.env.DATABASE_URL, max: 1 });
          expect((await other.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
          await other.end();
          expect(all.length).toBe(${entries.length});
        });`,
    });
    const { stderr } = await project.run(jest, ['--rootDir', 'jest', '--ci', '-i'], { DATABASE_URL: db.url });
    expect(stderr).toContain('1 passed');
  });

  test('a program with the packed file among its packages obeys the fake timers of Jest, and the real ones after them', async () => {
    project.write({
      'jest-fakes/fakes.test.js': `const { EventEmitter } = require('node:events');
        class Client extends EventEmitter {
          _queryable = true;
          connect(done) { Promise.resolve().then(() => done()); }
          end(done) { Promise.resolve().then(() => done?.()); }
        }
        const settings = { Client, max: 1, connectionTimeoutMillis: 5_000, idleTimeoutMillis: 10_000 };
        afterEach(() => jest.useRealTimers());
        const choices = [undefined, { doNotFake: ['nextTick', 'queueMicrotask'] }, { doNotFake: ['Date', 'performance'] }];
        const all = [...choices, { advanceTimers: 20 }, { legacyFakeTimers: true }];
        const cases = all.flatMap((options) => [[options, 'before'], [options, 'after']]);
        test.each(cases)('fakes %j that begin %s Headgate is loaded', async (options, order) => {
            jest.resetModules();
            if (order === 'before') jest.useFakeTimers(options);
            const pool = new (require('headgate').Pool)(settings);
            const held = await pool.connect();
            for (let round = 0; round < 3; round++) {
              jest.useFakeTimers(options);
              const [client, late] = [round ? await pool.connect() : held, pool.connect().catch((error) => error)];
              jest.advanceTimersByTime(4_000);
              expect(pool.waitingCount).toBe(1);
              jest.advanceTimersByTime(2_000);
              expect((await late).message).toContain('timeout exceeded');
              client.release();
              jest.advanceTimersByTime(9_000);
              expect(pool.totalCount).toBe(1);
              jest.advanceTimersByTime(2_000);
              expect(pool.totalCount).toBe(0);
              jest.useRealTimers();
            }
            jest.useFakeTimers(options);
            await new Promise((resolve) => pool.end(resolve));
        });
        test('the real ones', async () => {
          const pool = new (require('headgate').Pool)({ ...settings, connectionTimeoutMillis: 20, idleTimeoutMillis: 20 });
          jest.useFakeTimers();
          const client = await pool.connect();
          jest.useRealTimers();
          await expect(pool.connect()).rejects.toThrow('timeout exceeded');
          const removed = new Promise((resolve) => pool.once('remove', resolve));
          client.release();
          await removed;
          await pool.end();
        });`,
    });
    const { stderr } = await project.run(jest, ['--rootDir', 'jest-fakes', '--ci', '-i']);
    expect(stderr).toContain('11 passed');
  });

  test('a program with the packed file among its packages runs in Jest with ES modules', async () => {
    project.write({
      'jest-esm/esm.mjs': jestTest(
        `const { report } = await import('../program.mjs'); const said = await report();`,
      ),
    });
    const config = {
      rootDir: 'jest-esm',
      transform: {},
      testRegex: 'mjs$',
      moduleFileExtensions: ['mjs', 'js', 'cjs'],
    };
    const args = ['--no-warnings', jest, '--config', JSON.stringify(config), '--ci', '-i'];
    const { stderr } = await project.run('--experimental-vm-modules', args, { DATABASE_URL: db.url });
    expect(stderr).toContain('1 passed');
  });

  test('a program with the packed file among its packages runs in Vitest', async () => {
    project.write({
      'vitest/headgate.test.mjs': `import { expect, test } from 'vitest';
        import { report } from '../program.mjs';
        ${jestTest('const said = await report();')}`,
    });
    const { stdout } = await project.run(vitest, ['run', '--root', 'vitest'], {
      DATABASE_URL: db.url,
      VITEST: '',
    });
    expect(stdout).toContain('1 passed');
  });

  test.each([
    ['8.11.0', 'pg-8-11'],
    [versionOf('pg'), 'pg'],
  ])('a program with the packed file among its packages works with pg %s', async (version, name) => {
    project.withPg(name, name);
    project.write({ [`${name}/main.cjs`]: everyWay });
    expect(await reportOf(`${name}/main.cjs`)).toEqual({ version, ...everyAnswer });
  });

  test('a program with the packed file among its packages warns of a second copy of pg, and takes the client that it is given', async () => {
    project.withPg('two', 'pg-8-11');
    project.write({
      'two/main.cjs': `const pg = require('../node_modules/pg');
        const { Pool } = require('headgate');
        const chosen = new Pool({ Client: pg.Client });
        process.once('warning', ({ name, code, message }) =>
          console.log(JSON.stringify({ name, code, message, chosen: chosen.Client === pg.Client })));
        setImmediate(() => [new Pool(), new Pool()]);`,
    });
    const { stdout } = await project.run('--no-warnings', ['two/main.cjs']);
    const said = JSON.parse(stdout) as Record<string, unknown>;
    expect(said).toMatchObject({ name: 'HeadgateWarning', code: 'HG_TWO_COPIES_OF_PG', chosen: true });
    expect(said['message']).toContain('Headgate uses 8.11.0');
    expect(said['message']).toContain(`the program has ${versionOf('pg')}`);
    expect(said['message']).toContain('new Pool({ Client: pg.Client })');
  });

  test.each([
    // With every entry by the one that is quick.
    ['esbuild', 'main.mjs'],
    ['rollup', 'few/main.mjs'],
    ['webpack', 'few/main.mjs'],
    ['ncc', 'few/main.mjs'],
  ])(
    'a program with the packed file among its packages runs when bundled by %s',
    async (bundler, main) => {
      const { stdout } = await project.run(bundlers, [bundler, main, bundler]);
      for (const file of JSON.parse(stdout) as string[]) expect(await reportOf(file)).toEqual(good);
    },
    120_000,
  );
});
