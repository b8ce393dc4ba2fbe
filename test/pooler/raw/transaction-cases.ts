// Scripts about statements that are parsed inside of transactions which change tables and types, and in the pipelines that do so.
import { batch } from './actors.js';
import { close, describeStatement, execute, int4, parse, prepare, query, run, use } from './batches.js';
import type { Case } from './schema-cases.js';

const all = 'select * from t';
const insert = 'insert into t values ($1) returning *';
const table = 'create table t (c int); insert into t values (1), (2)';
const addColumn = "alter table t add d text default 'new'";
const mood = 'select $1::mood';

export const transactionCases: readonly Case[] = [
  {
    name: 'A type whose CREATE is rolled back is nothing to those who make it next',
    setUp: '',
    losesType: true,
    batches: [
      query('A', "begin; create type mood as enum ('sad')"),
      prepare('A', 's', mood),
      use('A', 's', ['sad']),
      query('A', 'rollback'),
      prepare('B', 's', mood),
      query('B', "create type mood as enum ('glad')"),
      prepare('B', 's', mood),
      use('B', 's', ['glad']),
      run('C', mood, ['glad']),
      prepare('C', 's', mood),
      use('C', 's', [Buffer.from('glad')]),
      prepare('A', 'again', mood),
      use('A', 'again', ['glad']),
      use('A', 's', ['glad']),
      close('A', 's'),
      prepare('A', 's', mood),
      use('A', 's', ['glad']),
    ],
  },
  {
    name: 'A type made in a transaction that commits is there for all who prepare it',
    setUp: '',
    batches: [
      query('A', 'begin'),
      query('A', "create type mood as enum ('sad')"),
      prepare('A', 's', mood),
      query('A', 'commit'),
      use('A', 's', ['sad']),
      use('A', 's', [Buffer.from('sad')]),
      prepare('B', 's', mood),
      use('B', 's', ['sad']),
    ],
  },
  {
    name: 'A table whose ALTER is rolled back is as before for all who prepare it',
    setUp: table,
    batches: [
      query('A', 'begin'),
      query('A', 'alter table t alter c type text'),
      prepare('A', 'ins', insert),
      prepare('A', 'all', all),
      use('A', 'ins', ['letters']),
      query('A', 'rollback'),
      prepare('B', 'ins', insert),
      use('B', 'ins', ['3']),
      use('B', 'ins', [int4(4)]),
      use('B', 'ins', ['letters']),
      run('C', insert, ['5']),
      use('A', 'ins', ['6']),
      use('A', 'all'),
      use('A', 'all'),
      describeStatement('A', 'all'),
      prepare('A', 'fresh', all),
      use('A', 'fresh'),
    ],
  },
  {
    name: 'A statement that was parsed in a transaction, never described, keeps the rows of its Parse',
    setUp: table,
    batches: [
      query('A', 'begin'),
      query('A', addColumn),
      parse('A', 's', all),
      query('A', 'rollback'),
      use('A', 's'),
      use('A', 's'),
      query('outsider', addColumn),
      use('A', 's'),
    ],
  },
  {
    name: 'A statement that was parsed before the ALTER in its transaction is refused until that is rolled back',
    setUp: table,
    batches: [
      query('A', 'begin'),
      prepare('A', 's', all),
      use('A', 's'),
      query('A', addColumn),
      use('A', 's'),
      query('A', 'rollback'),
      use('A', 's'),
      execute('A', 's', [], 'binary'),
      prepare('B', 's', all),
      use('B', 's'),
      query('A', 'begin'),
      query('A', addColumn),
      prepare('A', 'wide', all),
      query('A', 'commit'),
      use('A', 's'),
      use('A', 'wide'),
      use('B', 's'),
    ],
  },
  {
    name: 'A savepoint that is rolled back takes the change with it, and not the statement',
    setUp: table,
    batches: [
      query('A', 'begin; savepoint a'),
      query('A', addColumn),
      prepare('A', 's', all),
      use('A', 's'),
      query('A', 'rollback to a'),
      prepare('A', 'narrow', all),
      use('A', 'narrow'),
      use('A', 's'),
      query('A', 'rollback to a'),
      use('A', 'narrow'),
      query('A', 'commit'),
      use('A', 's'),
      use('A', 'narrow'),
      prepare('B', 's', all),
      use('B', 's'),
      close('A', 's'),
      prepare('A', 's', all),
      use('A', 's'),
    ],
  },
  {
    name: 'A savepoint that is released keeps the change',
    setUp: table,
    batches: [
      prepare('A', 'before', all),
      query('A', 'begin; savepoint a'),
      query('A', 'alter table t alter c type bigint'),
      prepare('A', 'ins', insert),
      query('A', 'release a'),
      use('A', 'ins', ['5000000000']),
      query('A', 'commit'),
      use('A', 'ins', ['6000000000']),
      use('A', 'before'),
      prepare('B', 'ins', insert),
      use('B', 'ins', ['7000000000']),
    ],
  },
  {
    name: 'A statement stays when the transaction in which it was parsed fails',
    setUp: table,
    batches: [
      query('A', 'begin'),
      query('A', 'alter table t alter c type bigint'),
      prepare('A', 's', insert),
      query('A', 'select 1 / 0'),
      parse('A', 'too_late', all),
      query('A', 'rollback'),
      use('A', 's', ['3']),
      use('A', 's', ['5000000000']),
      use('A', 'too_late'),
      batch('A', 'parse kept, then fail, in one batch', (s) =>
        s.parse(all, 'kept').parse('select 1 / 0').bind().execute().parse(all, 'skipped').sync(),
      ),
      use('A', 'kept'),
      use('A', 'skipped'),
    ],
  },
  {
    name: 'A change in the middle of a pipeline counts for what is parsed behind it',
    setUp: table,
    batches: [
      prepare('A', 's', all),
      batch('A', 'insert, alter, insert, select and s in one batch', (s) =>
        s
          .parse(insert)
          .bind(['3'])
          .execute()
          .parse('alter table t alter c type text')
          .bind()
          .execute()
          .parse(insert)
          .describeStatement()
          .bind(['letters'])
          .execute()
          .parse(all, 'behind')
          .describeStatement('behind')
          .bind([], 'behind')
          .execute()
          .sync(),
      ),
      use('A', 's'),
      use('A', 'behind'),
      prepare('B', 's', insert),
      use('B', 's', ['more letters']),
      batch('A', 'a pipeline that changes the table and fails', (s) =>
        s
          .parse('alter table t add d int')
          .bind()
          .execute()
          .parse(all, 'lost')
          .bind([], 'behind')
          .execute()
          .sync(),
      ),
      use('A', 'behind'),
      use('A', 'lost'),
      use('A', 's'),
    ],
  },
  {
    name: 'A change between two Syncs of one write counts for what follows',
    setUp: table,
    batches: [
      batch('A', 'select, Sync, alter as a simple query, the same select, Sync', (s) =>
        s
          .parse(all, 'one')
          .bind([], 'one')
          .describePortal()
          .execute()
          .sync()
          .query(addColumn)
          .parse(all, 'two')
          .bind([], 'two')
          .describePortal()
          .execute()
          .sync()
          .bind([], 'one')
          .execute()
          .sync(),
      ),
      use('A', 'one'),
      use('A', 'two'),
      run('B', all),
    ],
  },
  {
    name: 'Statements of one text that mean different tables are kept apart, whoever changes one of them',
    setUp: 'create table t (c int); create schema front; create table front.t (c text)',
    batches: [
      query('A', 'set search_path = front'),
      prepare('A', 's', insert),
      prepare('B', 's', insert),
      use('A', 's', ['letters']),
      use('B', 's', ['1']),
      query('B', 'alter table front.t alter c type int using 0'),
      use('A', 's', ['2']),
      use('B', 's', ['3']),
      query('outsider', 'alter table public.t alter c type text'),
      prepare('B', 'fresh', insert),
      use('B', 'fresh', ['more letters']),
      prepare('A', 'fresh', insert),
      use('A', 'fresh', ['4']),
      query('outsider', 'select * from public.t'),
      query('outsider', 'select * from front.t'),
    ],
  },
  {
    name: 'A portal that is still open keeps its table from being changed',
    setUp: table,
    batches: [
      query('A', 'begin'),
      batch('A', 'one row of a portal', (s) =>
        s.parse(all, 's').bind([], 's', 'p').describePortal('p').execute('p', 1).sync(),
      ),
      query('A', addColumn),
      query('A', 'rollback'),
      use('A', 's'),
      query('outsider', addColumn),
      use('A', 's'),
    ],
  },
];

/** In session mode a client has a server connection for itself, and its statements are those of SQL as well. */
export const sessionCases: readonly Case[] = [
  {
    name: 'EXECUTE runs a statement that was prepared by a message',
    setUp: table,
    batches: [
      parse('A', 'foo', all),
      query('A', 'execute foo'),
      prepare('A', 'sum', 'select $1::int + 1'),
      query('A', 'execute sum(41)'),
      run('A', 'execute sum(1)'),
      query('A', addColumn),
      query('A', 'execute foo'),
      query('A', "select name, from_sql from pg_prepared_statements where name in ('foo', 'sum') order by 1"),
    ],
  },
  {
    name: 'DEALLOCATE gives up a statement that was prepared by a message',
    setUp: table,
    batches: [
      parse('A', 'foo', all),
      parse('A', 'bar', all),
      query('A', 'deallocate foo'),
      use('A', 'foo'),
      query('A', 'deallocate foo'),
      use('A', 'bar'),
      parse('A', 'foo', insert),
      query('A', 'execute foo(3)'),
      query('A', 'deallocate all'),
      use('A', 'foo'),
      query('A', 'execute bar'),
      parse('A', 'bar', all),
      query('A', 'discard all'),
      query('A', 'execute bar'),
      use('A', 'bar'),
    ],
  },
  {
    name: 'A statement that was prepared in SQL can be described, bound and closed by messages',
    setUp: table,
    batches: [
      query('A', `prepare foo(int) as ${insert}`),
      describeStatement('A', 'foo'),
      use('A', 'foo', ['3']),
      use('A', 'foo', [int4(4)]),
      parse('A', 'foo', all),
      query('A', 'execute foo(5)'),
      query('outsider', addColumn),
      use('A', 'foo', ['6']),
      close('A', 'foo'),
      query('A', 'execute foo(7)'),
      parse('A', 'foo', all),
      query('A', `prepare foo as ${all}`),
      query('A', 'execute foo'),
    ],
  },
  {
    name: 'A name is of one client in session mode, in SQL and in messages',
    setUp: table,
    batches: [
      parse('A', 'foo', all),
      parse('B', 'foo', 'select $1::text'),
      query('A', 'execute foo'),
      query('B', "execute foo('mine')"),
      query('B', 'deallocate foo'),
      query('A', 'execute foo'),
      query('B', 'execute foo'),
    ],
  },
];
