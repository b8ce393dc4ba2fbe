// Several runners at once: one works, the others wait or leave, and one that comes back after a takeover does no harm.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type DsqlPool,
  type MigrateOptions,
  type MigrateResult,
  type MigrationPool,
  type MigrationProgress,
  migrate,
} from '../../../src/dsql.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { rejectionOf } from '../../support/outcomes.js';
import { FrozenPool } from './frozen-pool.js';
import { contentOf, Folder, patient, poolTo, recordsIn } from './scene.js';

const program = join(import.meta.dirname, '../../../dist/cli/main.js');

let dsql: TestDsql;
let pool: DsqlPool;
let db: ReturnType<typeof patient>;
let expected: unknown;

/** A statement that is run twice shows: as an index or rows too many. */
const folder = new Folder({
  '1.sql': `CREATE TABLE app.account (id int, v int);
INSERT INTO app.account VALUES (1, 1);
CREATE INDEX ASYNC ON app.account (v);
ALTER TABLE app.account ADD CHECK (v > 0) NOT VALID;`,
  '2.sql': 'INSERT INTO app.account VALUES (2, 2);',
});

function run(by: MigrationPool, options: Partial<MigrateOptions> = {}): Promise<MigrateResult> {
  return migrate(by, { directory: folder.path, schema: 'records', ...options });
}

async function outcome(): Promise<unknown> {
  return { content: await contentOf(db, ['app']), records: await recordsIn(db, 'records') };
}

async function cleanUp(): Promise<void> {
  await db.query('DROP SCHEMA IF EXISTS records CASCADE');
  await db.query('DROP SCHEMA IF EXISTS app CASCADE');
  await db.query('CREATE SCHEMA app');
}

async function expireLease(): Promise<void> {
  await db.query(
    `UPDATE records.migration_lock SET expires_at = now() - interval '1 second' WHERE part = 'lease'`,
  );
}

beforeAll(async () => {
  dsql = await startTestDsql();
  pool = poolTo(dsql, 10);
  db = patient(pool);
  await cleanUp();
  await run(pool);
  expected = await outcome();
  await cleanUp();
});
afterAll(async () => {
  folder.remove();
  await pool?.end();
  await dsql?.stop();
});
afterEach(async () => {
  await cleanUp();
  expect(dsql.troubles).toEqual([]);
});

test('Runners at once: Of four runners that begin at once, one runs each statement, and all end well', async () => {
  const results = await Promise.all(Array.from({ length: 4 }, () => run(pool)));
  expect(results.reduce((sum, { steps }) => sum + steps, 0)).toBe(5);
  expect(await outcome()).toEqual(expected);
});

test('Runners at once: a runner that is told not to wait ends at once, and names the runner at work', async () => {
  const first = new FrozenPool(pool, /\nCREATE TABLE app/);
  const working = run(first);
  await first.frozen;
  const error = await rejectionOf(run(pool, { wait: 0 }));
  expect(error).toMatchObject({ reason: 'lease_held' });
  expect(error.message).toMatch(
    /^Another runner is at work: process \d+ on \S+ since \S+\. Run it again later\.$/,
  );
  first.thaw();
  await working;
  expect(await outcome()).toEqual(expected);
});

test('Runners at once: A runner that waits tells for whom, and finds nothing left to run', async () => {
  const first = new FrozenPool(pool, /\nCREATE TABLE app/);
  const working = run(first);
  await first.frozen;
  const events: MigrationProgress[] = [];
  const waiting = run(pool, {
    onProgress: (event) => {
      events.push(event);
      if (event.type === 'waiting') first.thaw();
    },
  });
  expect(await working).toMatchObject({ steps: 5 });
  expect(await waiting).toMatchObject({ steps: 0, files: [] });
  expect(events[0]).toMatchObject({ type: 'waiting' });
});

test('Runners at once: A lease is renewed while its runner works, and is not taken meanwhile', async () => {
  const first = new FrozenPool(pool, /\nCREATE TABLE app/);
  const working = run(first, { leaseTtl: '1s' });
  await first.frozen;
  const expiry = async (): Promise<number> => {
    const { rows } = await db.query(`SELECT expires_at FROM records.migration_lock WHERE part = 'lease'`);
    return Number(rows[0].expires_at);
  };
  const before = await expiry();
  while ((await expiry()) < before + 1_000) await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await rejectionOf(run(pool, { wait: 0 }))).toMatchObject({ reason: 'lease_held' });
  first.thaw();
  expect(await working).toMatchObject({ steps: 5 });
});

test.each([
  ['a record', /\nINSERT INTO "records".migration_steps/],
  ['the COMMIT of a record', /^INSERT INTO "records".migration_steps.*\nCOMMIT$/s],
  ['a table', /\nCREATE TABLE app/],
  ['DML', /\nINSERT INTO app/],
  ['the COMMIT of DML', /^INSERT INTO app.*\nCOMMIT$/],
  ['an index without a name', /\nCREATE INDEX/],
  ['a constraint without a name', /\nALTER TABLE/],
])(
  'Takeover: A runner that was frozen before %s and wakes up after a takeover changes nothing, and stops',
  async (_what, pattern) => {
    const frozen = new FrozenPool(pool, pattern);
    const stopped = rejectionOf(run(frozen));
    await Promise.race([frozen.frozen, stopped.then((error) => Promise.reject(error))]);
    await expireLease();
    await run(pool, { wait: 0 });
    expect(await outcome()).toEqual(expected);
    frozen.thaw();
    const error = await stopped.catch(() => undefined);
    expect(error).toMatchObject({ reason: 'lease_lost' });
    expect(await outcome()).toEqual(expected);
  },
);

test('A statement of a runner that wakes up after its successor has looked, and before that runs it, does not happen', async () => {
  const [first, second] = [new FrozenPool(pool, /\nCREATE INDEX/), new FrozenPool(pool, /\nCREATE INDEX/)];
  const stopped = rejectionOf(run(first));
  await first.frozen;
  await expireLease();
  const successor = run(second, { wait: 0 });
  await second.frozen;
  first.thaw();
  expect(await stopped).toMatchObject({ reason: 'lease_lost' });
  second.thaw();
  expect(await successor).toMatchObject({ steps: 3 });
  expect(await outcome()).toEqual(expected);
});

describe('Processes', () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  function start(leaseTtl: string): {
    child: ChildProcess;
    ended: Promise<{ code: number | null; out: string; err: string }>;
  } {
    const { host, port, region, caFile, accessKeyId, secretAccessKey } = dsql;
    const flags = ['--host', host, '--port', String(port), '--region', region, '--ca', caFile];
    const child = spawn(
      process.execPath,
      [
        program,
        'dsql',
        'migrate',
        folder.path,
        '--schema',
        'records',
        '--lease-ttl',
        leaseTtl,
        '--json',
        ...flags,
      ],
      {
        env: { ...process.env, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    children.push(child);
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    const ended = new Promise<{ code: number | null; out: string; err: string }>((resolve) =>
      child.once('close', (code) => resolve({ code, out, err })),
    );
    return { child, ended };
  }

  test('Two processes at once run each statement once, and both end with 0', async () => {
    // Long enough for a machine on which a process may not run for seconds.
    const results = await Promise.all([start('60s').ended, start('60s').ended]);
    const said = JSON.stringify(results, undefined, 2);
    expect(
      results.map(({ code, err }) => [code, err]),
      said,
    ).toEqual([
      [0, ''],
      [0, ''],
    ]);
    const steps = results.flatMap(({ out }) =>
      out.split('\n').filter((line) => line.includes('"step done"')),
    );
    expect(steps, said).toHaveLength(5);
    expect(await outcome()).toEqual(expected);
  }, 60_000);

  test('A process that is killed in the middle is completed by the next one', async () => {
    const { child, ended } = start('1s');
    child.stdout?.on('data', (text: string) => {
      if (text.includes('"step done"')) child.kill('SIGKILL');
    });
    await ended;
    const { code, err } = await start('60s').ended;
    expect([code, err]).toEqual([0, '']);
    expect(await outcome()).toEqual(expected);
  }, 60_000);
});
