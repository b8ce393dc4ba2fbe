// Headgate underneath pg itself: `examples/override-pg-pool`, installed as npm would, without npm and the network.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

const root = join(import.meta.dirname, '../..');
const example = join(root, 'examples/override-pg-pool');
const installed = join(root, 'node_modules');

interface Manifest {
  readonly version: string;
  readonly dependencies: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly overrides?: Record<string, string>;
}

test('docs/drop-in.md prints the files of examples/override-pg-pool', () => {
  const file = (name: string): string => readFileSync(join(example, name), 'utf8');
  const page = readFileSync(join(root, 'docs/drop-in.md'), 'utf8');
  const printed = (language: string): string[] =>
    Array.from(page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm))
      .filter(([, written]) => written === language)
      .map(([, , text = '']) => text);
  const { dependencies, overrides } = JSON.parse(file('package.json')) as Manifest;
  expect(printed('json').map((text) => JSON.parse(text) as unknown)).toEqual([
    JSON.parse(file('pg-pool/package.json')),
    { dependencies, overrides },
  ]);
  expect(printed('js')).toEqual([file('pg-pool/index.js')]);
  expect(printed('ini')).toEqual([file('.npmrc').replace(/^#.*\n/, '')]);
});

describe('a program with Headgate in place of the pg-pool package', () => {
  let db: TestDatabase;
  let project: string;

  beforeAll(async () => {
    project = mkdtempSync(join(tmpdir(), 'headgate-override-'));
    installExample(project);
    db = await withDatabase();
  });
  afterAll(async () => {
    rmSync(project, { recursive: true, force: true });
    await db.drop();
  });

  /** Runs a program there and answers what it printed; a warning fails the test. */
  async function run(...args: string[]): Promise<string[]> {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
      cwd: project,
      env: { ...process.env, DATABASE_URL: db.url, NODE_OPTIONS: '', FORCE_COLOR: '0' },
    });
    expect(stderr).toBe('');
    return stdout.trim().split('\n');
  }

  /** Runs an ES module whose `answer` is what matters. */
  async function answerOf(program: string): Promise<unknown> {
    const lines = await run(
      '--input-type=module',
      '-e',
      `const connectionString = process.env.DATABASE_URL;\n${program}\nconsole.log(JSON.stringify(answer));`,
    );
    return JSON.parse(lines.join('\n'));
  }

  test("a program with Headgate in place of the pg-pool package gets Headgate's pool from pg, as the example says", async () => {
    expect(await run('main.cjs')).toEqual([
      'hello',
      '1 of at most 3 connections, 1 idle',
      'closed, 0 connections left',
    ]);
  });

  test.each([
    ['pg first', "import pg from 'pg'; import { Pool } from 'headgate';"],
    ['headgate first', "import { Pool } from 'headgate'; import pg from 'pg';"],
  ])(
    'a program with Headgate in place of the pg-pool package has one class, by import and by require: %s',
    async (_order, imports) => {
      const program = `${imports}
      import PgPool from 'pg-pool';
      import { createRequire } from 'node:module';
      const require = createRequire(process.cwd() + '/');
      const pool = new Pool({ connectionString });
      const answer = {
        sameFromHeadgate: Pool === pg.Pool,
        sameByRequire: require('pg').Pool === pg.Pool && require('headgate').Pool === Pool,
        isPgPool: pool instanceof pg.Pool && pool instanceof PgPool && new pg.Pool() instanceof Pool,
        client: pool.Client === pg.Client,
        rows: (await pool.query('select 1 as one')).rows,
      };
      await pool.end();`;
      expect(await answerOf(program)).toEqual({
        sameFromHeadgate: true,
        sameByRequire: true,
        isPgPool: true,
        client: true,
        rows: [{ one: 1 }],
      });
    },
  );

  test('queries, connects, emits and ends as with pg-pool, with promises and callbacks', async () => {
    const program = `import pg from 'pg';
      const pool = new pg.Pool({ connectionString, max: 2 });
      const events = [];
      for (const event of ['connect', 'acquire', 'release', 'remove']) pool.on(event, () => events.push(event));
      const client = await pool.connect();
      const counts = [pool.totalCount, pool.idleCount, pool.waitingCount];
      const byClient = (await client.query('select $1::int as n', [1])).rows[0].n;
      client.release();
      const byCallback = await new Promise((resolve, reject) => {
        pool.query('select $1::int as n', [2], (error, result) => (error ? reject(error) : resolve(result.rows[0].n)));
      });
      const failed = await pool.query('select no_such_column').catch((error) => error.code);
      await new Promise((resolve) => pool.end(resolve));
      const afterEnd = await pool.connect().catch((error) => error.code);
      const answer = { isClient: client instanceof pg.Client, counts, byClient, byCallback, failed, events, afterEnd };`;
    expect(await answerOf(program)).toEqual({
      isClient: true,
      counts: [1, 0, 0],
      byClient: 1,
      byCallback: 2,
      failed: '42703',
      events: ['connect', 'acquire', 'release', 'acquire', 'release', 'acquire', 'release', 'remove'],
      afterEnd: 'HG_POOL_CLOSED',
    });
  });

  test("a program with Headgate in place of the pg-pool package has what Headgate adds, and the server's own count never passes the limit", async () => {
    const program = `import pg from 'pg';
      const pool = new pg.Pool({ connectionString, application_name: 'override', max: 3, minIdle: 1 });
      await pool.ready(2);
      const seen = await Promise.all(Array.from({ length: 50 }, async () => {
        const { rows } = await pool.query(
          "select count(*)::int as sessions from pg_stat_activity where application_name = 'override'",
        );
        return rows[0].sessions;
      }));
      const answer = { most: Math.max(...seen), peak: pool.stats().peak, taken: pool.tryConnect() !== undefined };
      await pool.end({ deadline: 1 });`;
    const { most, peak, taken } = (await answerOf(program)) as { most: number; peak: number; taken: boolean };
    expect(most).toBeLessThanOrEqual(3);
    expect(peak).toBe(3);
    expect(taken).toBe(true);
  });

  test.each([
    ['opentelemetry.cjs', 'pg-pool.connect', 401],
    ['dd-trace.cjs', 'pg.pool.acquire', 197],
  ])(
    'a program with Headgate in place of the pg-pool package is traced as pg-pool is: %s has %s',
    async (program, name, count) => {
      const [printed] = await run(program, 'pg.Pool', '200');
      const { spans } = JSON.parse(printed ?? '') as {
        spans: { name: string; trace: string; text?: string }[];
      };
      expect(spans.filter((span) => span.name === name)).toHaveLength(count);
      const owners = new Map(
        spans.filter((span) => span.name.startsWith('request ')).map((root) => [root.trace, root.name]),
      );
      const queries = spans.filter((span) => span.name.startsWith('pg.query'));
      expect(queries).toHaveLength(401);
      expect(queries.filter(({ trace, text }) => !text?.includes(`'${owners.get(trace)}.'`))).toEqual([]);
    },
  );

  test('a program with Headgate in place of the pg-pool package has it also in a library that brings a pg of its own, with the clients of that pg', async () => {
    const program = `import { createRequire } from 'node:module';
      import pg from 'pg';
      const own = createRequire(process.cwd() + '/node_modules/library/')('pg');
      const pool = new own.Pool({ connectionString });
      const { rows } = await pool.query('select 1 as one');
      const answer = {
        isAnother: own !== pg,
        client: pool.Client === own.Client,
        live: pool.stats().live,
        rows,
      };
      await pool.end();`;
    expect(await answerOf(program)).toEqual({ isAnother: true, client: true, live: 1, rows: [{ one: 1 }] });
  });
});

const page = readFileSync(join(root, 'docs/drop-in.md'), 'utf8');

test("the recipe in docs/drop-in.md is the example's, file by file", () => {
  const section = page.split('## In place of the pg-pool package')[1]?.split('\n## ')[0] ?? '';
  const blocks = [...section.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');
  const { dependencies, overrides } = manifestIn(example);
  expect(blocks).toHaveLength(4);
  expect(JSON.parse(blocks[0] ?? '')).toEqual(manifestIn(join(example, 'pg-pool')));
  expect(blocks[1]).toBe(readFileSync(join(example, 'pg-pool/index.js'), 'utf8'));
  expect(JSON.parse(blocks[2] ?? '')).toEqual({ dependencies, overrides });
  expect(readFileSync(join(example, '.npmrc'), 'utf8')).toContain(blocks[3]);
});

test('the recipe in docs/drop-in.md names the version of pg-pool that the tests compare with', () => {
  expect(manifestIn(join(example, 'pg-pool')).version).toBe(manifestIn(join(installed, 'pg-pool')).version);
});

/**
 * What `npm install` makes of the example, with the tracers beside it. Headgate and pg are copied, so that what they load is looked for in this
 * project, and not in the repository; the packages that pg needs beside are linked.
 */
function installExample(project: string): void {
  cpSync(example, project, { recursive: true });
  const modules = join(project, 'node_modules');
  mkdirSync(join(modules, 'headgate'), { recursive: true });
  for (const part of ['package.json', 'dist']) {
    cpSync(join(root, part), join(modules, 'headgate', part), { recursive: true });
  }
  for (const pg of [join(modules, 'pg'), join(modules, 'library/node_modules/pg')]) {
    cpSync(join(installed, 'pg'), pg, { recursive: true });
  }
  cpSync(join(project, 'pg-pool'), join(modules, 'pg-pool'), { recursive: true });
  cpSync(join(root, 'test/pg/tracers'), project, { recursive: true });
  for (const tracer of ['@opentelemetry', 'dd-trace']) {
    symlinkSync(join(installed, tracer), join(modules, tracer), 'junction');
  }
  const { dependencies, optionalDependencies } = manifestIn(join(installed, 'pg'));
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    if (name === 'pg-pool' || !existsSync(join(installed, name))) continue;
    symlinkSync(join(installed, name), join(modules, name), 'junction');
  }
}

function manifestIn(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}
