// Sequences of messages that clients send, or could send, in order of what they are about.
import { Backend, Frontend } from '../../../src/wire/message-types.js';
import { type Step, step, untilType } from './trace.js';

export interface Trace {
  readonly name: string;
  readonly steps: readonly Step[];
}

const int4 = 23;
const { commandComplete, portalSuspended, copyInResponse, parseComplete, error, bindComplete } = Backend;

/** Every trace leaves its session as it found it, and can be played again in the same one. */
export const traces: readonly Trace[] = [
  // ---- simple queries
  { name: 'a simple query', steps: [step((s) => s.query('select 1 as one'))] },
  { name: 'an empty query', steps: [step((s) => s.query(''))] },
  { name: 'a query of several statements', steps: [step((s) => s.query('select 1; select 2; select 3'))] },
  {
    name: 'an error in the middle of several statements',
    steps: [step((s) => s.query('select 1; select nonsense; select 3')), step((s) => s.query('select 4'))],
  },
  {
    name: 'several queries without waiting',
    steps: [step((s) => s.query('select 1').query('select nonsense').query('select 3').query(''), 4)],
  },
  {
    name: 'a transaction',
    steps: [
      step((s) => s.query('begin')),
      step((s) => s.query('select 1')),
      step((s) => s.query('commit')),
      step((s) => s.query('select 2')),
    ],
  },
  {
    name: 'a transaction that fails',
    steps: [
      step((s) => s.query('begin')),
      step((s) => s.query('select nonsense')),
      step((s) => s.query('select 1')),
      step((s) => s.query('commit')),
    ],
  },
  {
    name: 'a transaction in one write',
    steps: [step((s) => s.query('begin').query('select 1').query('commit').query('select 2'), 4)],
  },
  {
    name: 'a transaction with nothing in it',
    steps: [step((s) => s.query('BEGIN')), step((s) => s.query('COMMIT'))],
  },
  {
    name: 'a transaction with nothing in it that is rolled back',
    steps: [step((s) => s.query('start transaction;')), step((s) => s.query(' ROLLBACK ; '))],
  },
  {
    name: 'BEGIN twice, COMMIT twice',
    steps: [step((s) => s.query('begin').query('begin').query('commit').query('commit'), 4)],
  },
  {
    name: 'BEGIN with options',
    steps: [
      step((s) => s.query('begin isolation level serializable read only')),
      step((s) => s.query('show transaction_isolation')),
      step((s) => s.query('rollback')),
    ],
  },
  {
    name: 'a savepoint',
    steps: [
      step((s) => s.query('begin').query('savepoint a').query('select nonsense').query('rollback to a'), 4),
      step((s) => s.query('select 1').query('commit'), 2),
    ],
  },
  { name: 'notices', steps: [step((s) => s.query("do $$ begin raise notice 'hello'; end $$"))] },
  // ---- extended protocol
  {
    name: 'one extended query',
    steps: [
      step((s) => s.parse('select $1::int4 + 1', '', [int4]).bind(['41']).describePortal().execute().sync()),
    ],
  },
  {
    name: 'a named statement, described and used twice',
    steps: [
      step((s) => s.parse('select $1::text', 's1').describeStatement('s1').sync()),
      step((s) => s.bind(['a'], 's1').execute().bind(['b'], 's1').execute().sync()),
      step((s) => s.closeStatement('s1').sync()),
    ],
  },
  {
    name: 'a named statement, described and closed in batches of their own',
    steps: [
      step((s) => s.parse('select $1::int4 as n, $2::text', 'later').sync()),
      step((s) => s.describeStatement('later').sync()),
      step((s) => s.bind(['1', 'x'], 'later', 'p').describePortal('p').execute('p').sync()),
      step((s) => s.closeStatement('later').sync()),
      step((s) => s.describeStatement('later').sync()),
    ],
  },
  {
    name: 'a name that is taken',
    steps: [
      step((s) => s.parse('select 1', 'taken').sync()),
      step((s) => s.parse('select 2', 'taken').bind([], 'taken').execute().sync()),
      step((s) => s.bind([], 'taken').execute().sync()),
      step((s) => s.closeStatement('taken').parse('select 3', 'taken').bind([], 'taken').execute().sync()),
      step((s) => s.closeStatement('taken').sync()),
    ],
  },
  {
    name: 'a name that does not exist',
    steps: [
      step((s) => s.bind([], 'missing').execute().sync()),
      step((s) => s.describeStatement('missing').sync()),
      step((s) => s.closeStatement('missing').sync()),
      step((s) => s.execute('missing').sync()),
      step((s) => s.describePortal('missing').closePortal('missing').sync()),
      step((s) => s.query('select 1')),
    ],
  },
  {
    name: 'a statement that can not be prepared',
    steps: [
      step((s) => s.parse('select nonsense', 'bad').bind([], 'bad').execute().sync()),
      step((s) => s.bind([], 'bad').execute().sync()),
      step((s) => s.parse('select 1', 'bad').bind([], 'bad').execute().sync()),
      step((s) => s.closeStatement('bad').sync()),
    ],
  },
  {
    name: 'the same text that can not be prepared, under two names, without waiting',
    steps: [
      step((s) => s.parse('select nonsense', 'bad1').sync().parse('select nonsense', 'bad2').sync(), 2),
      step((s) => s.parse('select 1', 'bad1').parse('select 1', 'bad2').sync()),
      step((s) => s.closeStatement('bad1').closeStatement('bad2').sync()),
    ],
  },
  {
    name: 'the same text under two names, without waiting',
    steps: [
      step(
        (s) =>
          s
            .parse('select 7', 'two1')
            .sync()
            .parse('select 7', 'two2')
            .bind([], 'two2')
            .execute()
            .sync()
            .bind([], 'two1')
            .execute()
            .sync(),
        3,
      ),
      step((s) => s.closeStatement('two1').closeStatement('two2').sync()),
    ],
  },
  {
    name: 'the unnamed statement, split over several batches',
    steps: [
      step((s) => s.parse('select $1::int4').sync()),
      step((s) => s.describeStatement().sync()),
      step((s) => s.bind(['1']).execute().sync()),
      step((s) => s.bind(['2']).execute().sync()),
      step((s) => s.query('select 3')),
      step((s) => s.bind(['4']).execute().sync()),
    ],
  },
  {
    name: 'a query with a zero in a string',
    steps: [
      // A text ends with its first zero, so that there is something behind it.
      step((s) => s.bytes(Frontend.query, 0, 0, 0, 17, ...Buffer.from("select 'a\0b'\0"))),
      step((s) => s.query('select 1')),
    ],
  },
  {
    name: 'the same unnamed statement again and again, with others in between',
    steps: [
      step((s) => s.parse('select $1::int4').bind(['1']).execute().sync()),
      step((s) => s.parse('select $1::int4').bind(['2']).execute().sync()),
      step((s) => s.parse('select $1::int8').bind(['3']).execute().sync()),
      step((s) => s.parse('select $1::int4').sync()),
      step((s) => s.bind(['4']).execute().sync()),
      step((s) => s.parse('discard all').bind().execute().sync()),
      step((s) => s.bind(['5']).execute().sync()),
      step((s) => s.parse('select $1::int4').bind(['6']).execute().parse('select $1::int4').sync()),
      step((s) => s.bind(['no number']).execute().sync()),
      step((s) => s.parse('select $1::int4').bind(['7']).execute().sync()),
    ],
  },
  {
    name: 'an unnamed statement that fails, and what is left of the one before',
    steps: [
      step((s) => s.parse('select 1').sync()),
      step((s) => s.parse('select nonsense').sync()),
      step((s) => s.bind().execute().sync()),
    ],
  },
  {
    name: 'an error in a pipeline, and several Syncs',
    steps: [
      step(
        (s) =>
          s
            .parse('select 1')
            .bind()
            .execute()
            .sync()
            .parse('select nonsense')
            .bind()
            .execute()
            .sync()
            .parse('select 3')
            .bind()
            .execute()
            .sync(),
        3,
      ),
    ],
  },
  {
    name: 'an error in the middle of one pipeline',
    steps: [
      step((s) =>
        s
          .parse('select 1')
          .bind()
          .execute()
          .parse('select 1 / $1::int4', 'div')
          .bind(['0'], 'div')
          .execute()
          .parse('select 3', 'third')
          .bind([], 'third')
          .execute()
          .closeStatement('div')
          .sync(),
      ),
      step((s) => s.bind(['1'], 'div').execute().sync()),
      step((s) => s.bind([], 'third').execute().sync()),
      step((s) => s.closeStatement('div').sync()),
    ],
  },
  {
    name: 'a query in a pipeline after an error is ignored',
    steps: [
      step((s) => s.parse('select nonsense').bind().execute().query('select 1').sync().query('select 2'), 2),
    ],
  },
  {
    name: 'a query in a pipeline without a Sync before it',
    steps: [step((s) => s.parse('select 1').bind().execute().query('select 2').sync(), 2)],
  },
  {
    name: 'Sync alone, several times',
    steps: [step((s) => s.sync().sync().sync(), 3)],
  },
  {
    name: 'Flush in place of Sync',
    steps: [
      step((s) => s.parse('select 1').flush(), untilType(parseComplete)),
      step((s) => s.bind().execute().flush(), untilType(commandComplete)),
      step((s) => s.sync()),
    ],
  },
  {
    name: 'an error before a Flush, and messages after it',
    steps: [
      step((s) => s.parse('select nonsense').flush(), untilType(error)),
      step((s) => s.parse('select 1', 'ignored').bind([], 'ignored').execute().query('select 2').sync()),
      step((s) => s.bind([], 'ignored').execute().sync()),
    ],
  },
  {
    name: 'a portal that is fetched from in parts',
    steps: [
      step(
        (s) => s.parse('select generate_series(1, 5)').bind().execute('', 2).flush(),
        untilType(portalSuspended),
      ),
      step((s) => s.execute('', 2).flush(), untilType(portalSuspended)),
      step((s) => s.execute('', 2).sync()),
      step((s) => s.execute('', 2).sync()),
    ],
  },
  {
    name: 'named portals in a transaction',
    steps: [
      step((s) => s.query('begin')),
      step((s) =>
        s.parse('select generate_series(1, 3)', 'gen').bind([], 'gen', 'p1').bind([], 'gen', 'p2').sync(),
      ),
      step((s) => s.execute('p1', 1).execute('p2', 2).execute('p1', 1).sync()),
      step((s) => s.closePortal('p1').execute('p1').sync()),
      step((s) => s.query('rollback')),
      step((s) => s.closeStatement('gen').sync()),
    ],
  },
  {
    name: 'Close of a portal that is called like a statement',
    steps: [
      step((s) => s.parse('select 1', 'same').bind([], 'same', 'same').closePortal('same').sync()),
      step((s) => s.bind([], 'same').execute().sync()),
      step((s) => s.closeStatement('same').sync()),
    ],
  },
  {
    name: 'a transaction in the extended protocol',
    steps: [
      step((s) => s.parse('begin').bind().execute().sync()),
      step((s) => s.parse('select 1').bind().execute().sync()),
      step((s) => s.parse('commit').bind().execute().sync()),
    ],
  },
  {
    name: 'a deferred BEGIN, then the extended protocol',
    steps: [
      step((s) => s.query('begin')),
      step((s) => s.sync()),
      step((s) => s.parse('select $1::int4', 'in_tx').bind(['1'], 'in_tx').execute().sync()),
      step((s) => s.query('rollback')),
      step((s) => s.closeStatement('in_tx').sync()),
    ],
  },
  {
    name: 'a parse error right after BEGIN',
    steps: [
      step((s) => s.query('begin')),
      step((s) => s.parse('select nonsense', 'x').sync()),
      step((s) => s.parse('select 1', 'x').sync()),
      step((s) => s.query('end')),
      step((s) => s.bind([], 'x').sync()),
    ],
  },
  {
    name: 'an empty statement in the extended protocol',
    steps: [step((s) => s.parse('').bind().describePortal().execute().sync())],
  },
  // ---- functions
  {
    name: 'FunctionCall',
    // 177 is int4pl, the sum of two numbers.
    steps: [
      step((s) => s.functionCall(177, ['20', '22'])),
      step((s) => s.functionCall(177, ['x', '22'])),
      step((s) => s.functionCall(177, ['1', '2']).query('select 1'), 2),
    ],
  },
  // ---- COPY
  {
    name: 'COPY in, by a query',
    steps: [
      step((s) => s.query('create table copied (a int4, b text)')),
      step((s) => s.query('copy copied from stdin'), untilType(copyInResponse)),
      step((s) => s.copyData('1\tone\n').copyData('2\ttwo\n').copyDone()),
      step((s) => s.query('select * from copied order by a; drop table copied')),
    ],
  },
  {
    name: 'COPY in, and something behind it in the same query that throws statements away',
    steps: [
      step((s) => s.query('create table copied (a int4)')),
      step((s) => s.query('copy copied from stdin; deallocate all').copyData('1\n').copyDone()),
      step((s) => s.query('copy copied from stdin; deallocate all'), untilType(copyInResponse)),
      step((s) => s.copyData('2\n').copyDone()),
      step((s) => s.query('select count(*) from copied; drop table copied')),
    ],
  },
  {
    name: 'COPY in that fails while the client sends on',
    steps: [
      step((s) => s.query('create table copied (a int4)')),
      step((s) => s.query('copy copied from stdin').copyData('no number\n').copyData('2\n').copyDone()),
      step((s) => s.copyData('3\n').copyDone().query('select count(*) from copied')),
      step((s) => s.query('drop table copied')),
    ],
  },
  {
    name: 'COPY in that the client gives up',
    steps: [
      step((s) => s.query('create table copied (a int4)')),
      step((s) => s.query('copy copied from stdin'), untilType(copyInResponse)),
      step((s) => s.copyData('1\n').copyFail('enough')),
      step((s) => s.query('drop table copied')),
    ],
  },
  {
    name: 'COPY in, in the extended protocol, with a Sync too many',
    steps: [
      step((s) => s.query('create table copied (a int4)')),
      step((s) => s.parse('copy copied from stdin').bind().execute().sync(), untilType(copyInResponse)),
      step((s) => s.copyData('1\n').copyData('2\n').copyDone().sync()),
      step((s) => s.query('select count(*) from copied').query('drop table copied'), 2),
    ],
  },
  {
    name: 'COPY in, in the extended protocol, in one write',
    steps: [
      step((s) => s.query('create table copied (a int4)')),
      step(
        (s) =>
          s
            .parse('copy copied from stdin')
            .bind()
            .execute()
            .copyData('1\n')
            .copyDone()
            .sync()
            .query('select 5'),
        2,
      ),
      step((s) => s.query('drop table copied')),
    ],
  },
  {
    name: 'COPY in, in the extended protocol, that fails',
    steps: [
      step((s) => s.query('create table copied (a int4)')),
      step((s) => s.parse('copy copied from stdin').bind().execute().flush(), untilType(copyInResponse)),
      step((s) => s.copyData('no number\n').copyDone().sync()),
      step((s) => s.query('select 1').query('drop table copied'), 2),
    ],
  },
  {
    name: 'two COPYs in one query, whose data comes at once',
    steps: [
      step((s) => s.query('create table copied (a int4)')),
      step((s) =>
        s
          .query('copy copied from stdin; copy copied from stdin; select count(*) from copied')
          .copyData('1\n')
          .copyDone()
          .copyData('2\n')
          .copyData('3\n')
          .copyDone(),
      ),
      step((s) => s.query('drop table copied')),
    ],
  },
  {
    name: 'COPY out',
    steps: [
      step((s) => s.query('copy (select generate_series(1, 3)) to stdout')),
      step((s) => s.parse('copy (select 1) to stdout').bind().execute().sync()),
    ],
  },
  {
    name: 'replication, which takes another kind of session',
    steps: [
      step((s) => s.query('START_REPLICATION PHYSICAL 0/0')),
      step((s) => s.query('IDENTIFY_SYSTEM').query('select 1'), 2),
    ],
  },
  {
    name: 'messages of a COPY that there is not',
    steps: [step((s) => s.copyData('1\n').copyDone().copyFail('x').query('select 1'))],
  },
  // ---- settings
  {
    name: 'settings that are reported',
    steps: [
      step((s) => s.query("set timezone = 'Europe/Berlin'")),
      step((s) => s.query('show timezone')),
      step((s) => s.query("set datestyle = 'German'")),
      step((s) => s.query('reset timezone')),
      step((s) => s.query('reset datestyle')),
    ],
  },
  {
    name: 'settings in a transaction that is rolled back',
    steps: [
      step((s) => s.query('begin')),
      step((s) => s.query("set timezone = 'Europe/Berlin'").query("set statement_timeout = '7s'"), 2),
      step((s) => s.query('rollback')),
      step((s) => s.query('show statement_timeout')),
      step((s) => s.query('show timezone')),
    ],
  },
  {
    name: 'settings that are not reported',
    steps: [
      step((s) => s.query("set statement_timeout = '7s'")),
      step((s) => s.query('show statement_timeout')),
      step((s) => s.query('reset statement_timeout')),
      step((s) => s.query('show statement_timeout')),
    ],
  },
  {
    name: 'a failed pipeline takes its setting back',
    steps: [
      step((s) => s.parse("set statement_timeout = '7s'").bind().execute().parse('select nonsense').sync()),
      step((s) => s.query('show statement_timeout')),
    ],
  },
  { name: 'DISCARD ALL', steps: [step((s) => s.query('discard all'))] },
  {
    name: 'DISCARD ALL and what was prepared',
    steps: [
      step((s) => s.parse('select 1', 'gone').sync()),
      step((s) => s.query('discard all').parse('select 2', 'gone').bind([], 'gone').execute().sync(), 2),
      step((s) => s.query('deallocate all')),
      step((s) => s.bind([], 'gone').execute().sync()),
    ],
  },
  {
    name: 'DEALLOCATE of a statement that was prepared by messages',
    steps: [
      step((s) => s.parse('select 1', 'named').sync()),
      step((s) => s.query('DEALLOCATE named')),
      step((s) => s.bind([], 'named').execute().sync()),
      step((s) => s.query('deallocate named')),
    ],
  },
  {
    name: 'DEALLOCATE of names that have to be quoted, or that fold to lower case',
    steps: ['a"b', '"', 'Mixed', 'mixed', 'ÄÖ é', 'äÖé', 'spa ced', 'u', 'x', 'all', 'prepare'].flatMap(
      (name) => [
        step((s) => s.parse('select 1', name).sync()),
        ...[
          `deallocate "${name.replaceAll('"', '""')}"`,
          `DEALLOCATE PREPARE "${name.replaceAll('"', '""')}" ;`,
        ].map((text) => step((s) => s.query(text))),
      ],
    ),
  },
  {
    name: 'DEALLOCATE of names that are not quoted',
    steps: [
      ...['mixed', 'MiXeD', 'Äö', 'äö', 'u', 'a"b'].map((name) =>
        step((s) => s.parse('select 1', name).sync()),
      ),
      ...[
        'deallocate MIXED',
        'deallocate MIXED',
        'deallocate Äö',
        'deallocate \t\f ÄÖ',
        'deallocate u&"x"',
        'deallocate u&"\\0078"',
        'deallocate u & "x"',
        'deallocate "a"b"',
        'deallocate "a" "b"',
        'deallocate a""b',
        'deallocate "MiXeD"',
        'deallocate x; select 2',
      ].map((text) => step((s) => s.query(text))),
      ...['Äö', 'äö', 'u', 'a"b'].map((name) =>
        step((s) =>
          s
            .parse(`deallocate "${name.replaceAll('"', '""')}"`)
            .bind()
            .execute()
            .sync(),
        ),
      ),
    ],
  },
  {
    name: 'PREPARE, EXECUTE and DEALLOCATE',
    steps: [
      step((s) => s.query('prepare q as select 11')),
      step((s) => s.query('execute q')),
      step((s) => s.query('deallocate q')),
      step((s) => s.query('discard all')),
    ],
  },
  {
    name: 'bind that waits for nothing after a parse that was sent before a Flush',
    steps: [
      step((s) => s.parse('select 1', 'early').flush(), untilType(parseComplete)),
      step((s) => s.bind([], 'early').flush(), untilType(bindComplete)),
      step((s) => s.execute().closeStatement('early').sync()),
    ],
  },
];
