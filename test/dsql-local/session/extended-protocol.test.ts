/** Parse, Bind, Describe, Execute, Close, Flush and Sync, answered message by message as PostgreSQL answers them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Backend } from '../../../src/wire/message-types.js';
import { int4 } from '../../pooler/raw/batches.js';
import { type Script, type Step, step, untilType } from '../../pooler/raw/trace.js';
import { Pair } from './pair.js';

let pair: Pair;

beforeAll(async () => {
  pair = await Pair.start();
  await pair.setUp(
    'CREATE TABLE t (id int PRIMARY KEY, v text)',
    `INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 20) g`,
  );
});

afterAll(async () => {
  await pair?.stop();
});

const write = (script: (s: Script) => Script): Step => step(script);
const insert = 'INSERT INTO t VALUES ($1, $2) RETURNING id';
/** Parse, Bind, Describe and Execute without a name. */
const whole = (s: Script, sql: string, values: readonly (string | null)[] = []): Script =>
  s.parse(sql).bind(values).describePortal().execute();

const scripts: Readonly<Record<string, readonly Step[]>> = {
  'a statement without a name': [write((s) => whole(s, 'SELECT v FROM t WHERE id = $1', ['3']).sync())],
  'a write without a name': [
    write((s) => whole(s, insert, ['100', 'x']).sync()),
    write((s) => whole(s, 'DELETE FROM t WHERE id > $1', ['20']).sync()),
  ],
  'named statements, described and used again and again': [
    write((s) => s.parse('SELECT id, v FROM t WHERE id < $1', 'read').describeStatement('read').sync()),
    write((s) => s.parse(insert, 'write', [23, 25]).describeStatement('write').sync()),
    write((s) => s.bind(['3'], 'read').execute().bind(['2'], 'read').describePortal().execute().sync()),
    write((s) => s.bind(['101', 'a'], 'write').execute().bind(['102', null], 'write').execute().sync()),
    write((s) => s.parse('SELECT 1', 'read').sync()),
    write((s) => s.closeStatement('read').closeStatement('nothing').sync()),
    write((s) => s.bind(['3'], 'read').sync()),
    write((s) => whole(s, 'DELETE FROM t WHERE id > 20').sync()),
  ],
  'a named statement whose Parse has failed is not there, and the name is free': [
    write((s) => s.parse('SELECT * FROM missing', 'n').sync()),
    write((s) => s.bind([], 'n').execute().sync()),
    write((s) => s.parse(insert, 'n').describeStatement('n').sync()),
    write((s) => s.bind(['103', 'y'], 'n').execute().sync()),
    write((s) => whole(s, 'DELETE FROM t WHERE id > 20').sync()),
  ],
  'a named statement whose Bind or Execute has failed stays': [
    write((s) => s.parse(insert, 'n').bind(['x', 'y'], 'n').execute().sync()),
    write((s) => s.bind(['1', 'again'], 'n').describePortal().execute().sync()),
    write((s) => s.parse(insert, 'm').bind(['2', 'again'], 'm').describePortal().execute().sync()),
    write((s) => s.bind(['104', 'z'], 'm').execute().sync()),
    write((s) => s.bind(['105', 'z'], 'n').execute().sync()),
    write((s) => whole(s, 'DELETE FROM t WHERE id > 20').sync()),
  ],
  'an empty statement': [
    write((s) => s.parse('').bind().describePortal().execute().sync()),
    write((s) => s.parse('-- nothing', 'e').describeStatement('e').bind([], 'e').execute().sync()),
  ],
  'errors of Parse': [
    write((s) => s.parse('SELEC').bind().execute().sync()),
    write((s) => s.parse('SELECT 1; SELECT 2').bind().execute().sync()),
    write((s) => s.parse('SELECT x FROM t').sync()),
  ],
  'errors of Bind': [
    write((s) => s.bind([], 'missing').execute().sync()),
    write((s) => s.parse('SELECT $1::int').bind([]).execute().sync()),
    write((s) => s.parse('SELECT $1::int').bind(['x']).execute().sync()),
    write((s) => s.parse(insert).bind(['1']).execute().sync()),
    write((s) => s.execute('missing').sync()),
    write((s) => s.describePortal('missing').sync()),
    write((s) => s.describeStatement('missing').sync()),
    write((s) => s.query('SELECT 1')),
    write((s) => s.bind([]).sync()),
  ],
  'a Query ends the unnamed statement, also where it is BEGIN': [
    write((s) => s.parse(insert).sync()),
    write((s) => s.query('BEGIN')),
    write((s) => s.bind(['106', 'x']).execute().sync()),
    write((s) => s.query('ROLLBACK')),
  ],
  'several Executes before one Sync are one transaction': [
    write((s) =>
      whole(whole(whole(s, insert, ['107', 'a']), insert, ['108', 'b']), 'SELECT count(*) FROM t').sync(),
    ),
    write((s) => whole(whole(s, 'SELECT 1'), 'SELECT 2').sync()),
    write((s) => whole(s, 'DELETE FROM t WHERE id > 20').sync()),
  ],
  'an error in the middle of a batch skips the rest, and undoes the whole': [
    write((s) => whole(whole(whole(s, insert, ['109', 'a']), 'SELECT 1/0'), insert, ['110', 'b']).sync()),
    write((s) => whole(whole(s, 'SELECT 5'), 'SELECT 1/0').sync()),
    write((s) => whole(whole(s, 'SELECT 5'), 'SELEC').sync()),
    write((s) => whole(whole(s, 'SELECT 5'), insert, ['1', 'x']).sync()),
    write((s) => s.query('SELECT count(*) FROM t')),
  ],
  'BEGIN, writes and COMMIT in one batch': [
    write((s) => whole(whole(whole(s, 'BEGIN'), insert, ['111', 'a']), 'COMMIT').sync()),
    write((s) => whole(whole(whole(s, 'BEGIN'), insert, ['112', 'a']), 'ROLLBACK').sync()),
    write((s) => whole(whole(whole(s, insert, ['113', 'a']), 'COMMIT'), 'SELECT 1/0').sync()),
    write((s) => whole(whole(whole(s, insert, ['114', 'a']), 'BEGIN'), 'SELECT 1').sync()),
    write((s) => whole(s, 'COMMIT').sync()),
    write((s) => s.query('SELECT id FROM t WHERE id > 20 ORDER BY id')),
    write((s) => whole(s, 'DELETE FROM t WHERE id > 20').sync()),
  ],
  'BEGIN and COMMIT as named statements': [
    write((s) => s.parse('BEGIN', 'b').describeStatement('b').parse('COMMIT', 'c').sync()),
    write((s) => s.bind([], 'b', 'pb').describePortal('pb').execute('pb').closePortal('pb').sync()),
    write((s) => s.parse('SELECT 1', 'b').sync()),
    write((s) => s.bind([], 'c').execute().sync()),
    write((s) => s.closeStatement('b').bind([], 'b').sync()),
  ],
  'a failed transaction up to its end': [
    write((s) => s.parse('SELECT 1', 'one').parse('ROLLBACK', 'back').sync()),
    write((s) => whole(s, 'BEGIN').sync()),
    write((s) => whole(s, 'SELECT 1/0').sync()),
    write((s) => whole(s, 'SELECT 1').sync()),
    write((s) => s.bind([], 'one').execute().sync()),
    write((s) => s.parse('SELEC').sync()),
    write((s) => s.parse('', 'empty').sync()),
    write((s) => s.closeStatement('one').sync()),
    write((s) => whole(s, insert, ['115', 'x']).sync()),
    write((s) => s.bind([], 'back').execute().sync()),
    write((s) => whole(s, 'SELECT 1').sync()),
  ],
  'COMMIT of a failed transaction answers ROLLBACK': [
    write((s) => whole(whole(s, 'BEGIN'), 'SELECT 1/0').sync()),
    write((s) => whole(s, 'COMMIT').sync()),
  ],
  'rows in parts': [
    write((s) => s.parse('SELECT id FROM t ORDER BY id').bind().execute('', 2).execute('', 3).sync()),
    write((s) => s.execute('', 1).sync()),
    write((s) => whole(s, 'BEGIN').sync()),
    write((s) => s.parse('SELECT id FROM t ORDER BY id').bind([], '', 'p').execute('p', 2).sync()),
    write((s) => s.execute('p', 2).sync()),
    write((s) => whole(s, 'SELECT 1').execute('p', 1).sync()),
    write((s) => s.execute('p').execute('p').sync()),
    write((s) => s.closePortal('p').execute('p').sync()),
    write((s) => whole(s, 'ROLLBACK').sync()),
  ],
  'rows in parts of writes and of locked rows': [
    write((s) => whole(s, 'BEGIN').sync()),
    write((s) =>
      s.parse('UPDATE t SET v = v WHERE id < 6 RETURNING id').bind([], '', 'u').execute('u', 2).sync(),
    ),
    write((s) => s.execute('u', 2).sync()),
    write((s) => s.execute('u').sync()),
    write((s) =>
      s
        .parse('SELECT id FROM t WHERE id < 6 ORDER BY id FOR UPDATE')
        .bind([], '', 'f')
        .execute('f', 2)
        .sync(),
    ),
    write((s) => s.execute('f', 2).sync()),
    write((s) => s.execute('f').closePortal('f').sync()),
    write((s) => whole(s, 'COMMIT').sync()),
    write((s) => s.execute('u').sync()),
  ],
  'Flush in place of Sync': [
    step(
      (s) => s.parse('SELECT v FROM t WHERE id = $1', 'f').describeStatement('f').flush(),
      untilType(Backend.rowDescription),
    ),
    step((s) => s.bind(['1'], 'f').execute().flush(), untilType(Backend.commandComplete)),
    step((s) => s.bind(['2'], 'f', 'p').execute('p', 1).flush(), untilType(Backend.portalSuspended)),
    step((s) => s.execute('p').flush(), untilType(Backend.commandComplete)),
    step((s) => whole(s, insert, ['116', 'x']).flush(), untilType(Backend.commandComplete)),
    step((s) => s.parse('SELECT 1/0').bind().execute().flush(), untilType(Backend.error)),
    write((s) => whole(s, 'SELECT 1').sync()),
    write((s) => s.query('SELECT count(*) FROM t')),
  ],
  'binary values and results': [
    write((s) =>
      s
        .parse('SELECT $1::int + 1, v FROM t WHERE id = $1')
        .bind([int4(4)], '', '', { formats: [1], resultFormats: [1] })
        .describePortal()
        .execute()
        .sync(),
    ),
    write((s) =>
      s
        .parse(insert)
        .bind([int4(117), 'x'], '', '', { formats: [1, 0], resultFormats: [1] })
        .describePortal()
        .execute()
        .sync(),
    ),
    write((s) => whole(s, 'DELETE FROM t WHERE id > 20').sync()),
  ],
  'COPY OUT': [write((s) => s.parse('COPY t TO STDOUT').bind().describePortal().execute().sync())],
  'DEALLOCATE ALL': [
    write((s) => s.parse('SELECT 1', 'n').parse('BEGIN', 'b').sync()),
    write((s) => whole(s, 'DEALLOCATE ALL').sync()),
    write((s) => s.bind([], 'n').execute().sync()),
    write((s) => s.bind([], 'b').execute().sync()),
    write((s) => s.parse('SELECT 2', 'n').bind([], 'n').execute().sync()),
    write((s) => whole(whole(s, 'BEGIN'), insert, ['118', 'x']).sync()),
    write((s) => whole(s, 'ROLLBACK').sync()),
  ],
  'a Query in place of Sync': [
    step((s) => s.parse('SELECT 7', 'q').query('SELECT 8')),
    write((s) => s.bind([], 'q').execute().sync()),
  ],
  'messages of COPY outside of one are passed over': [
    write((s) => s.copyData('x').copyDone().copyFail('y').sync()),
    write((s) => s.query('SELECT 1')),
  ],
};

test.each(Object.entries(scripts))(
  'the extended protocol is answered as PostgreSQL answers: %s',
  async (_name, steps) => {
    await pair.same(steps);
  },
);

test('the extended protocol answers SHOW server_version and CREATE INDEX ASYNC by both protocols', async () => {
  const show = 'T server_version: 25 -1 -1 0.0 0';
  const sql = 'CREATE INDEX ASYNC t_v ON t (v)';
  const { local } = await pair.play([
    write((s) => s.query('SHOW server_version')),
    write((s) => s.parse('SHOW server_version', 'v').describeStatement('v').bind([], 'v').execute().sync()),
    write((s) => s.parse(sql).bind().describePortal().execute().sync()),
    write((s) => s.query(sql.replace('t_v', 't_v2'))),
  ]);
  const lines = local.map((line) => line.replace(/^D [a-z2-7]{26}$/, 'D job'));
  const job = ['T job_id: 25 -1 -1 0.0 0', 'D job', 'C CREATE INDEX', 'Z I', '--'];
  expect(lines).toEqual([
    ...[show, 'D 16.15', 'C SHOW', 'Z I', '--'],
    ...['1', 't ', show, '2', 'D 16.15', 'C SHOW', 'Z I', '--'],
    ...['1', '2', ...job],
    ...job,
  ]);
});

test('the extended protocol answers what came before a refused statement first', async () => {
  const { local } = await pair.play([write((s) => whole(whole(s, 'SELECT 1'), 'TRUNCATE t').sync())]);
  expect(local).toEqual([
    ...['1', '2', 'T ?column?: 23 4 -1 0.0 0', 'D 1', 'C SELECT 1'],
    'E ERROR 0A000 unsupported statement: Truncate {}',
    ...['Z I', '--'],
  ]);
});

test('the extended protocol refuses FunctionCall messages, and goes on', async () => {
  const { local } = await pair.play([
    write((s) => s.functionCall(1, ['2'])),
    write((s) => s.query('SELECT 1')),
  ]);
  expect(local.slice(0, 3)).toEqual(['E ERROR 0A000 function call message not supported {}', 'Z I', '--']);
});
