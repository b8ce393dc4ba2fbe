/** COPY FROM STDIN by both protocols: as in PostgreSQL, and in transactions that conflict. */

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Backend } from '../../../src/wire/message-types.js';
import { type Script, type Step, step, untilType } from '../../pooler/raw/trace.js';
import { conflict } from '../conflicts/world.js';
import { connectRaw, Pair } from './pair.js';

let pair: Pair;

beforeAll(async () => {
  pair = await Pair.start({ transactionRows: 100 });
  await pair.setUp('CREATE TABLE t (id int PRIMARY KEY, v text)');
});

beforeEach(async () => {
  await pair.setUp('DELETE FROM t');
});

afterAll(async () => {
  await pair?.stop();
});

const asked = untilType(Backend.copyInResponse);
const copy = 'COPY t FROM STDIN';
const query = (sql: string): Step => step((s: Script) => s.query(sql));
const begun = step((s) => s.query(copy), asked);
const begunExtended = step((s) => s.parse(copy).bind().describePortal().execute().sync(), asked);
const count = query('SELECT count(*), max(v) FROM t');

const scripts: Readonly<Record<string, readonly Step[]>> = {
  'rows in pieces': [begun, step((s) => s.copyData('1\ta\n2\t').copyData('b\n').copyDone()), count],
  'no rows': [begun, step((s) => s.copyDone()), count],
  CopyFail: [begun, step((s) => s.copyData('1\ta\n').copyFail('changed my mind')), count],
  'a bad row': [begun, step((s) => s.copyData('1\ta\nx\ty\n').copyData('3\tc\n').copyDone()), count],
  'a duplicate key': [begun, step((s) => s.copyData('1\ta\n1\tb\n').copyDone()), count],
  'a table that is missing': [query('COPY missing FROM STDIN'), query('SELECT 1')],
  'the extended protocol': [begunExtended, step((s) => s.copyData('1\ta\n').copyDone().sync()), count],
  'CopyFail by the extended protocol': [
    begunExtended,
    step((s) => s.copyData('1\ta\n').copyFail('no').sync()),
    count,
  ],
  'a bad row by the extended protocol': [
    begunExtended,
    step((s) => s.copyData('x\n').copyData('2\tb\n').copyDone().sync()),
    count,
  ],
  'a transaction': [
    query('BEGIN'),
    begun,
    step((s) => s.copyData('1\ta\n').copyDone()),
    count,
    query('ROLLBACK'),
    count,
  ],
  'an error in a transaction': [
    query('BEGIN'),
    begun,
    step((s) => s.copyFail('no')),
    count,
    query('COMMIT'),
    count,
  ],
  'several statements in a text': [
    step((s) => s.query(`${copy}; SELECT count(*) FROM t`), asked),
    step((s) => s.copyData('1\ta\n').copyDone()),
    count,
  ],
  CSV: [
    step((s) => s.query('COPY t (v, id) FROM STDIN (FORMAT csv)'), asked),
    step((s) => s.copyData('"a,""b",7\n').copyDone()),
    count,
  ],
};

test.each(Object.entries(scripts))(
  'COPY FROM STDIN is answered as PostgreSQL answers: %s',
  async (_name, steps) => {
    await pair.same(steps);
  },
);

test('COPY FROM STDIN closes the connection of a client that sends a Query in place of rows', async () => {
  const { local } = await pair.play([begun, step((s) => s.query('SELECT 1'), 'closed')]);
  expect(local.slice(2)).toEqual(['--']);
});

test('COPY FROM STDIN counts its rows for the limit of a transaction', async () => {
  const rows = Array.from({ length: 101 }, (_, n) => `${n}\tx\n`).join('');
  const { local } = await pair.play([begun, step((s) => s.copyData(rows).copyDone()), count]);
  expect(local[2]).toBe('E ERROR 54000 transaction row limit exceeded {}');
  expect(local[6]).toBe('D 0 | NULL');
});

test('COPY FROM STDIN goes on in a transaction that has lost a row to another one, and fails at COMMIT', async () => {
  const a = await pair.world.connect();
  const b = await pair.world.connect();
  await a.must(`INSERT INTO t VALUES (1, 'x')`);
  for (const client of [a, b]) await client.must('BEGIN');
  for (const client of [a, b]) await client.must(`UPDATE t SET v = v || 'y'`);
  const stream = b.pg.query(copyFrom('COPY public.t FROM STDIN'));
  await pipeline(Readable.from(['2\tb\n', '3\tc\n']), stream);
  expect(await b.must('SELECT id FROM t ORDER BY id')).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
  await a.must('COMMIT');
  expect(await b.run('COMMIT')).toMatchObject(conflict);
});

test('COPY FROM STDIN works with pg-copy-streams in both directions, and reports a failure', async () => {
  const { pg } = await pair.world.connect();
  await pipeline(
    Readable.from(Array.from({ length: 50 }, (_, n) => `${n}\t${'x'.repeat(1000)}\n`)),
    pg.query(copyFrom(copy)),
  );
  let bytes = 0;
  for await (const chunk of pg.query(copyTo('COPY t TO STDOUT'))) bytes += (chunk as Buffer).length;
  expect(bytes).toBe(50 * 1002 + 90);
  const again = pipeline(Readable.from(['1\ty\n']), pg.query(copyFrom(copy)));
  await expect(again).rejects.toMatchObject({ code: '23505' });
  await expect(pg.query('SELECT 1')).resolves.toMatchObject({ rowCount: 1 });
});

test('COPY FROM STDIN ends the COPY of a client that leaves', async () => {
  const session = await connectRaw(pair.world.dsql);
  const { writer } = begun.send;
  session.socket.write(Buffer.from(writer.buffer.subarray(0, writer.length)));
  await session.until(Backend.copyInResponse);
  session.socket.destroy();
  const other = await pair.world.connect();
  await expect.poll(() => pair.world.dsql.connections).toBe(4);
  await other.must('DROP TABLE IF EXISTS nothing');
  expect(pair.world.troubles).toEqual([]);
});
