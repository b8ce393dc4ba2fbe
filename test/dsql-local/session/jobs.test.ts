/** Jobs of CREATE INDEX ASYNC and ALTER TABLE ASYNC. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, World } from '../conflicts/world.js';

let world: World;
let client: Client;

beforeAll(async () => {
  world = await World.start();
  client = await world.connect();
  await client.must('CREATE TABLE t (id int PRIMARY KEY, v int)');
  await client.must('INSERT INTO t VALUES (1, 5), (2, 5)');
});

afterAll(async () => {
  await world?.stop();
});

async function jobOf(sql: string): Promise<string> {
  const [row] = await client.must(sql);
  return String(row?.['job_id']);
}

const stateOf = (id: string) =>
  client.must('SELECT status, details, job_type, object_name FROM sys.jobs WHERE job_id = $1', [id]);

test('a job has an id of 26 letters, a row in sys.jobs, and can be waited for', async () => {
  const id = await jobOf('CREATE INDEX ASYNC t_v ON t (v)');
  expect(id).toMatch(/^[a-z2-7]{26}$/);
  const [job] = await client.must('SELECT * FROM sys.jobs WHERE job_id = $1', [id]);
  expect(Object.keys(job ?? {})).toEqual([
    'job_id',
    'status',
    'details',
    'job_type',
    'class_id',
    'object_id',
    'object_name',
    'start_time',
    'update_time',
  ]);
  expect(job).toMatchObject({ status: 'completed', job_type: 'INDEX_BUILD' });
  expect(await client.run(`CALL sys.wait_for_job('${id}')`)).toMatchObject({ ok: true });
});

test('a job is refused by a bad id, by SELECT and by a subquery', async () => {
  expect(await client.run(`CALL sys.wait_for_job('nonsense')`)).toMatchObject({
    code: '22P02',
    message: 'Unable to convert text to UUID',
  });
  expect(await client.run(`SELECT sys.wait_for_job('nonsense')`)).toMatchObject({ code: '42809' });
  expect(await client.run('CALL sys.wait_for_job((SELECT job_id FROM sys.jobs LIMIT 1))')).toMatchObject({
    ok: false,
    message: 'cannot use subquery in CALL argument',
  });
});

test('a job fails where the rows are not unique, while the statement succeeds', async () => {
  const id = await jobOf('CREATE UNIQUE INDEX ASYNC t_u ON t (v)');
  expect(await stateOf(id)).toMatchObject([
    {
      status: 'failed',
      job_type: 'INDEX_BUILD',
      details: expect.stringContaining('could not create unique index'),
    },
  ]);
  expect(await client.run(`CALL sys.wait_for_job('${id}')`)).toMatchObject({ ok: false });
});

test('a job that fails leaves an invalid index, which enforces nothing and can be dropped and built anew', async () => {
  await client.must('CREATE TABLE d (id int PRIMARY KEY, v int)');
  await client.must('INSERT INTO d VALUES (1, 5), (2, 5)');
  const build = '/* again */ CREATE UNIQUE INDEX ASYNC d_v ON d (v)';
  expect(await stateOf(await jobOf(build))).toMatchObject([{ status: 'failed' }]);
  const validity = `SELECT indisvalid, indisunique FROM pg_index WHERE indexrelid = 'd_v'::regclass`;
  expect(await client.must(validity)).toEqual([{ indisvalid: false, indisunique: true }]);
  await client.must('INSERT INTO d VALUES (3, 5)');
  expect(await client.run(build)).toMatchObject({ code: '42P07' });
  await client.must('DELETE FROM d WHERE id > 1');
  await client.must('DROP INDEX d_v');
  expect(await stateOf(await jobOf(build))).toMatchObject([{ status: 'completed' }]);
  expect(await client.must(validity)).toEqual([{ indisvalid: true, indisunique: true }]);
  expect(await client.run('INSERT INTO d VALUES (3, 5)')).toMatchObject({ code: '23505' });
});

test('a job fails at once where the statement itself is wrong', async () => {
  expect(await client.run('CREATE INDEX ASYNC ON missing (v)')).toMatchObject({ code: '42P01' });
  expect(await client.run('CREATE INDEX ASYNC t_v ON t (v)')).toMatchObject({ code: '42P07' });
});

test('a job validates a constraint', async () => {
  await client.must('ALTER TABLE t ADD CONSTRAINT small CHECK (v < 100) NOT VALID');
  const id = await jobOf('ALTER TABLE ASYNC t VALIDATE CONSTRAINT small');
  expect(await stateOf(id)).toMatchObject([{ status: 'completed' }]);
  await client.must('ALTER TABLE t ADD CONSTRAINT tiny CHECK (v < 5) NOT VALID');
  const failed = await jobOf('ALTER TABLE ASYNC t VALIDATE CONSTRAINT tiny');
  expect(await stateOf(failed)).toMatchObject([
    { status: 'failed', details: expect.stringContaining('tiny') },
  ]);
  expect(world.troubles).toEqual([]);
});

test('a job is undone with its transaction', async () => {
  await client.must('BEGIN');
  const id = await jobOf('CREATE INDEX ASYNC t_back ON t (v)');
  await client.must('ROLLBACK');
  expect(await stateOf(id)).toEqual([]);
});
