/** Limits of a transaction, of rows and of keys, with small options. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, World } from '../conflicts/world.js';

let world: World;
let client: Client;

beforeAll(async () => {
  world = await World.start({ transactionRows: 10, transactionBytes: 3 * 1_048_576 });
  client = await world.connect();
  await client.must('CREATE TABLE parent (id int PRIMARY KEY)');
  await client.must(
    'CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE)',
  );
  await client.must('CREATE TABLE wide (id int PRIMARY KEY, v text, b bytea)');
  await client.must('CREATE TABLE keyed (k text PRIMARY KEY, v text)');
  await client.must('CREATE INDEX ASYNC ON keyed (v)');
});

afterAll(async () => {
  await world?.stop();
  expect(world.troubles).toEqual([]);
});

const insert = (from: number, to: number): string =>
  `INSERT INTO parent SELECT generate_series(${from}, ${to})`;
const rowLimit = { code: '54000', message: 'transaction row limit exceeded' };

test('the limit of rows takes as many as are allowed, and not one more', async () => {
  expect(await client.run(insert(1, 10))).toMatchObject({ count: 10 });
  expect(await client.run(insert(11, 21))).toMatchObject(rowLimit);
  expect(await client.run('SELECT count(*)::int FROM parent')).toMatchObject({ rows: [{ count: 10 }] });
});

test('the limit of rows counts all statements of a transaction', async () => {
  await client.must('BEGIN');
  await client.must(insert(11, 16));
  await client.must('DELETE FROM parent WHERE id > 12');
  expect(await client.run('UPDATE parent SET id = id WHERE id < 2')).toMatchObject(rowLimit);
  expect(await client.run('COMMIT')).toMatchObject({ ok: true });
  expect(await client.must('SELECT count(*)::int FROM parent')).toEqual([{ count: 10 }]);
});

test('the limit of rows counts what cascades', async () => {
  await client.must('INSERT INTO child SELECT g, 1 FROM generate_series(1, 10) g');
  expect(await client.run('DELETE FROM parent WHERE id = 1')).toMatchObject(rowLimit);
  await client.must('DELETE FROM child WHERE id = 10');
  expect(await client.run('DELETE FROM parent WHERE id = 1')).toMatchObject({ count: 1 });
});

test('the limit of rows leaves the session in order after a statement that was far too large', async () => {
  for (let n = 0; n < 5; n += 1) {
    expect(await client.run(insert(1_000, 60_000))).toMatchObject(rowLimit);
    expect(await client.run('SELECT 1 AS x')).toMatchObject({ rows: [{ x: 1 }] });
  }
});

test('the limit of bytes is checked at COMMIT, and tells both sizes', async () => {
  await client.must('BEGIN');
  for (let n = 0; n < 4; n += 1) await client.must(`INSERT INTO wide VALUES ($1, $2)`, [n, noise(900_000)]);
  const failure = await client.pg.query('COMMIT').catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: '54000',
    message: 'transaction size limit 3mb exceeded',
    detail: 'Current transaction size 4mb > 3mb',
  });
  expect(await client.must('SELECT count(*)::int FROM wide')).toEqual([{ count: 0 }]);
});

test('limits of size closes the connection at a message of more than 10 MiB, without a word', async () => {
  const other = await world.connect();
  await expect(other.pg.query('SELECT length($1)', ['x'.repeat(10 * 1_048_576)])).rejects.toThrow(
    /terminated unexpectedly|EPIPE|ECONNRESET/,
  );
});

test('limits of size refuses a query that needs more temporary space', async () => {
  const sql =
    'SELECT count(*) FROM (SELECT g, repeat(g::text, 20) AS t FROM generate_series(1, 1000000) g ORDER BY t OFFSET 1) x';
  expect(await client.run(sql)).toMatchObject({
    code: '54000',
    message: 'query requires more than allowed temp space of 131072 KB to execute',
  });
});

test('limits of size refuses keys of more than 1,981 bytes, the primary key in a secondary one included', async () => {
  const put = (k: number, v: number) => client.run('INSERT INTO keyed VALUES ($1, $2)', [noise(k), noise(v)]);
  const tooLarge = { code: '54000', message: 'key size too large' };
  expect(await put(500, 1_474)).toMatchObject({ ok: true });
  expect(await put(501, 1_474)).toMatchObject(tooLarge);
  expect(await put(1_982, 0)).toMatchObject(tooLarge);
  expect(await put(3_500, 0)).toMatchObject(tooLarge);
  expect(await client.run(`INSERT INTO keyed VALUES (repeat('x', 2000), '')`)).toMatchObject(tooLarge);
});

test('limits of size refuses columns of more than 1 MiB and rows of more than 2 MiB after compression', async () => {
  const put = (id: number, v: string, b: Buffer | null) =>
    client.run('INSERT INTO wide VALUES ($1, $2, $3)', [id, v, b]);
  const tooLarge = { code: '54000', message: 'maximum row size exceeded' };
  expect(await put(1, 'x'.repeat(3_000_000), null)).toMatchObject({ ok: true });
  expect(await put(2, noise(1_600_000), null)).toMatchObject(tooLarge);
  expect(await put(3, '', Buffer.from(noise(1_600_000), 'base64'))).toMatchObject(tooLarge);
  expect(await put(4, noise(1_000_000), Buffer.alloc(10))).toMatchObject({ ok: true });
});

/** A text of so many letters that can hardly be compressed: 6 bits of each letter count. */
function noise(length: number): string {
  const bytes = Buffer.alloc(Math.ceil((length * 3) / 4));
  for (let at = 0, x = 88_172_645; at < bytes.length; at += 1) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    bytes[at] = x & 0xff;
  }
  return bytes.toString('base64').slice(0, length);
}
