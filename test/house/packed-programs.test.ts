// The packed file in programs of every kind: Node itself, test runners and bundlers, with import and require side by side.
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

function requires(entries: readonly string[]): string {
  return entries.map((name) => `require('${name}')`).join(', ');
}

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

  test('imports and requires every entry on Node, and gets the same without a warning', async () => {
    expect(await reportOf('main.mjs')).toEqual(good);
  });

  test('imports and requires the same where Node can not require ES modules', async () => {
    expect(await reportOf('main.mjs', ['--no-experimental-require-module'])).toEqual(good);
  });

  test('finds functions and classes under the names that they are exported with', async () => {
    project.write({
      'names.cjs': `const all = [${requires(all)}];
        const misnamed = all.flatMap((entry) => Object.entries(entry))
          .filter(([name, value]) => typeof value === 'function' && value.name !== name)
          .map(([name, value]) => name + ': ' + value.name);
        console.log(JSON.stringify(misnamed));`,
    });
    expect(await reportOf('names.cjs')).toEqual([]);
  });

  test('can read the package.json, and can not reach past what is exported', async () => {
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

  test('runs in Jest as it is installed, which can not load ES modules', async () => {
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

  test('runs in Jest with ES modules', async () => {
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

  test('runs in Vitest', async () => {
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
    // With every entry by the one that is quick.
    ['esbuild', 'main.mjs'],
    ['rollup', 'few/main.mjs'],
    ['webpack', 'few/main.mjs'],
    ['ncc', 'few/main.mjs'],
  ])(
    'runs when bundled by %s',
    async (bundler, main) => {
      const { stdout } = await project.run(bundlers, [bundler, main, bundler]);
      for (const file of JSON.parse(stdout) as string[]) expect(await reportOf(file)).toEqual(good);
    },
    120_000,
  );
});
