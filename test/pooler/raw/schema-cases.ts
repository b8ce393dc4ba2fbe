// Scripts about statements whose tables, types and functions change, each with a sentence that says what a client can rely on.
import { type Batch, batch } from './actors.js';
import {
  close,
  describeStatement,
  execute,
  int4,
  parse,
  prepare,
  query,
  run,
  timestamp,
  typeId,
  use,
} from './batches.js';

export interface Case {
  readonly name: string;
  readonly setUp: string;
  readonly batches: readonly Batch[];
  /** Whether statements are used whose parameters are of a type that is gone. */
  readonly losesType?: boolean;
  /** Whether a client keeps its server connection, so that one is not enough for all. */
  readonly pins?: boolean;
}

const all = 'select * from t';
const insert = 'insert into t values ($1) returning *';
const count = 'select count(*) from t';
const table = 'create table t (c int); insert into t values (1), (2)';
const addColumn = "alter table t add d text default 'new'";
const dropColumn = 'alter table t drop d';

const refused: readonly Case[] = [
  {
    name: 'A described statement is refused with 0A000 on every use until the client prepares it again',
    setUp: table,
    batches: [
      prepare('A', 's', all),
      query('outsider', addColumn),
      ...Array.from({ length: 4 }, () => use('A', 's')),
      execute('A', 's', [], 'binary'),
      describeStatement('A', 's'),
      close('A', 's'),
      prepare('A', 's', all),
      use('A', 's'),
      execute('A', 's', [], 'binary'),
    ],
  },
  {
    name: 'A statement that was never described is refused with 0A000, too',
    setUp: table,
    batches: [
      parse('A', 's', all),
      query('outsider', addColumn),
      ...Array.from({ length: 3 }, () => use('A', 's')),
      close('A', 's'),
      parse('A', 's', all),
      use('A', 's'),
    ],
  },
  {
    name: 'A statement whose rows were described by its portal is refused with 0A000',
    setUp: table,
    batches: [
      batch('A', 'parse, bind, describe the portal and execute s', (s) =>
        s.parse(all, 's').bind([], 's').describePortal().execute().sync(),
      ),
      use('A', 's'),
      query('B', addColumn),
      ...Array.from({ length: 3 }, () => use('A', 's')),
    ],
  },
  {
    name: 'A statement is of use again when the table is changed back',
    setUp: table,
    batches: [
      prepare('A', 's', all),
      parse('B', 's', all),
      query('outsider', addColumn),
      use('A', 's'),
      use('B', 's'),
      prepare('B', 'wide', all),
      query('outsider', dropColumn),
      use('A', 's'),
      use('B', 's'),
      use('B', 'wide'),
      query('outsider', addColumn),
      use('A', 's'),
      use('B', 's'),
      use('B', 'wide'),
    ],
  },
  {
    name: 'INSERT RETURNING * that is refused with 0A000 inserts nothing',
    setUp: table,
    batches: [
      prepare('A', 's', insert),
      use('A', 's', ['3']),
      query('B', addColumn),
      ...Array.from({ length: 3 }, () => use('A', 's', ['4'])),
      query('outsider', all),
      run('A', insert, ['5']),
      query('outsider', all),
    ],
  },
  {
    name: 'A statement is refused in the middle of a pipeline, and the rest up to Sync is skipped',
    setUp: table,
    batches: [
      prepare('A', 's', all),
      prepare('A', 'n', count),
      query('outsider', addColumn),
      batch('A', 'n, s, n, Sync, n', (s) =>
        s
          .bind([], 'n')
          .execute()
          .bind([], 's')
          .execute()
          .bind([], 'n')
          .execute()
          .sync()
          .bind([], 'n')
          .execute()
          .sync(),
      ),
      batch('A', 'insert, s, Sync', (s) =>
        s.parse('insert into t values (9)').bind().execute().bind([], 's').execute().sync(),
      ),
      query('outsider', all),
    ],
  },
  {
    name: 'A transaction in which a statement is refused has failed',
    setUp: table,
    batches: [
      prepare('A', 's', all),
      query('outsider', addColumn),
      query('A', 'begin'),
      use('A', 's'),
      query('A', 'select 1'),
      query('A', 'rollback'),
      query('A', 'begin; savepoint a'),
      use('A', 's'),
      query('A', 'rollback to a'),
      run('A', all),
      query('A', 'commit'),
    ],
  },
];

const wrongValues: readonly Case[] = [
  {
    name: 'A value that its type does not take is complained about before rows of another shape are',
    setUp: table,
    batches: [
      prepare('A', 's', insert),
      query('outsider', 'alter table t alter c type text'),
      use('A', 's', ['no number']),
      use('A', 's', [Buffer.from('three')]),
      use('A', 's', ['1', '2']),
      use('A', 's', ['1']),
    ],
  },
];

const freshlyParsed: readonly Case[] = [
  {
    name: 'A fresh statement of a client that never prepared the text takes a timestamptz for what it is',
    setUp: 'create table t (c timestamp)',
    batches: [
      prepare('A', 's', insert),
      use('A', 's', ['2026-01-01 12:00+05']),
      query('outsider', 'alter table t alter c type timestamptz'),
      prepare('B', 's', insert),
      use('B', 's', ['2026-01-01 12:00+05']),
      use('B', 's', [timestamp('2026-01-01T12:00:00Z')]),
      run('C', insert, ['2026-01-01 12:00+05']),
      use('A', 's', ['2026-01-01 12:00+05']),
      query('outsider', all),
    ],
  },
  {
    name: 'A client that was never told the types still has those of its Parse',
    setUp: 'create table t (c timestamp)',
    batches: [
      parse('A', 's', 'insert into t values ($1)'),
      query('outsider', 'alter table t alter c type timestamptz'),
      use('A', 's', ['2026-01-01 12:00+05']),
      use('A', 's', ['2026-01-01 13:00+05']),
      describeStatement('A', 's'),
      query('outsider', all),
    ],
  },
  {
    name: 'Declared types are kept, whatever the column becomes',
    setUp: 'create table t (c int)',
    batches: [
      prepare('A', 'four', insert, [typeId.int4]),
      prepare('A', 'any', insert, [0]),
      prepare('A', 'letters', 'insert into t values ($1::text::int) returning *', [typeId.text]),
      query('outsider', 'alter table t alter c type bigint'),
      prepare('B', 'four', insert, [typeId.int4]),
      prepare('B', 'eight', insert, [typeId.int8]),
      prepare('B', 'any', insert, [0]),
      prepare('B', 'letters', 'insert into t values ($1::text::int) returning *', [typeId.text]),
      use('B', 'four', ['5000000000']),
      use('B', 'four', [int4(4)]),
      use('B', 'eight', ['5000000000']),
      use('B', 'any', ['6000000000']),
      use('B', 'letters', ['7']),
      use('A', 'four', ['8']),
      use('A', 'any', ['8']),
      use('A', 'letters', ['8']),
      query('outsider', all),
    ],
  },
  {
    name: 'A text that could not be parsed is parsed again, and counts when its table is there',
    setUp: '',
    batches: [
      prepare('A', 's', all),
      use('A', 's'),
      prepare('B', 's', all),
      query('outsider', 'create table t (c int)'),
      prepare('A', 's', all),
      use('A', 's'),
      prepare('B', 's', 'select d from t'),
      query('outsider', 'alter table t add d text'),
      prepare('B', 's', 'select d from t'),
      use('B', 's'),
      prepare('C', 's', 'select from where'),
      run('C', 'select d from t'),
    ],
  },
  {
    name: 'A statement whose table is away is refused, and of use when the table is back',
    setUp: table,
    batches: [
      prepare('A', 's', all),
      parse('B', 'n', count),
      query('outsider', 'drop table t'),
      use('A', 's'),
      describeStatement('A', 's'),
      use('B', 'n'),
      prepare('B', 'later', all),
      query('outsider', 'create table t (c int)'),
      use('A', 's'),
      use('A', 's'),
      describeStatement('A', 's'),
      use('B', 'n'),
      prepare('B', 'later', all),
      use('B', 'later'),
    ],
  },
  {
    name: 'A closed name can be given to the same text again, which is parsed anew',
    setUp: 'create table t (c int)',
    batches: [
      prepare('A', 's', insert),
      use('A', 's', ['1']),
      query('outsider', 'alter table t alter c type text'),
      batch('A', 'close, parse, describe and use s in one batch', (s) =>
        s.closeStatement('s').parse(insert, 's').describeStatement('s').bind(['x'], 's').execute().sync(),
      ),
      close('A', 's'),
      use('A', 's', ['y']),
      prepare('A', 's', count),
      use('A', 's'),
    ],
  },
  {
    name: 'A name that is taken is refused with 42P05, and the statement that has it stays as it is',
    setUp: 'create table t (c int)',
    batches: [
      prepare('A', 's', insert),
      prepare('A', 's', insert),
      prepare('A', 's', all),
      query('outsider', 'alter table t alter c type bigint'),
      prepare('A', 's', insert),
      use('A', 's', ['5000000000']),
      describeStatement('A', 's'),
      query('A', 'begin'),
      prepare('A', 's', insert),
      query('A', 'rollback'),
      use('A', 's', ['5']),
      close('A', 's'),
      prepare('A', 's', insert),
      use('A', 's', ['5000000000']),
    ],
  },
];

const names: readonly Case[] = [
  {
    name: 'A table that hides another one by search_path is what fresh statements mean',
    setUp: 'create table t (c int); create schema front',
    batches: [
      query('A', 'set search_path = front, public'),
      query('B', 'set search_path = front, public'),
      prepare('A', 'n', count),
      prepare('A', 'ins', insert),
      use('A', 'ins', ['1']),
      use('A', 'n'),
      prepare('B', 'n', count),
      use('B', 'n'),
      query('outsider', 'create table front.t (c text, d int)'),
      prepare('B', 'fresh_n', count),
      prepare('B', 'fresh_ins', insert),
      use('B', 'fresh_ins', ['no number']),
      use('B', 'fresh_n'),
      run('A', insert, ['another']),
      run('A', count),
      prepare('A', 'fresh_n', count),
      use('A', 'fresh_n'),
      run('C', insert, ['3']),
      query('outsider', 'select count(*) from front.t'),
      query('outsider', 'select count(*) from public.t'),
    ],
  },
  {
    name: 'A table in the schema of the user hides the public one for fresh statements',
    setUp: `${table}; create schema postgres`,
    batches: [
      prepare('A', 'n', count),
      use('A', 'n'),
      query('outsider', 'create table postgres.t (c text)'),
      run('B', insert, ['no number']),
      prepare('B', 'n', count),
      use('B', 'n'),
      prepare('A', 'fresh', insert),
      use('A', 'fresh', ['another']),
      query('outsider', 'select count(*) from postgres.t'),
      query('outsider', 'select count(*) from public.t'),
    ],
  },
  {
    name: 'Statements follow the search_path that the client sets, and are refused where their rows change',
    setUp: 'create table t (c int); create schema front; create table front.t (c text, d int)',
    batches: [
      prepare('A', 'ins', 'insert into t values ($1)'),
      prepare('A', 'n', count),
      prepare('A', 's', all),
      use('A', 'ins', ['1']),
      query('A', 'set search_path = front'),
      use('A', 'ins', ['2']),
      use('A', 'n'),
      use('A', 's'),
      use('A', 's'),
      prepare('A', 'front_s', all),
      query('A', 'set search_path = public'),
      use('A', 'n'),
      use('A', 's'),
      use('A', 'front_s'),
      use('A', 'front_s'),
      prepare('B', 's', all),
      use('B', 's'),
      query('outsider', 'select * from front.t'),
    ],
  },
  {
    name: 'A temporary table hides the public one for its own client alone',
    setUp: table,
    pins: true,
    batches: [
      prepare('B', 'n', count),
      prepare('B', 'ins', insert),
      query('A', 'create temp table t (c text, d text)'),
      prepare('A', 'ins', insert),
      use('A', 'ins', ['mine']),
      run('A', count),
      use('B', 'ins', ['3']),
      use('B', 'n'),
      run('B', insert, ['4']),
      query('A', 'drop table t'),
      run('A', insert, ['5']),
      run('A', count),
      use('A', 'ins', ['6']),
      query('outsider', all),
    ],
  },
  {
    name: 'A function that is replaced answers at once, and is refused with 0A000 when it returns another type',
    setUp: "create function f(int) returns text language sql as $$ select 'first' $$",
    batches: [
      prepare('A', 's', 'select f($1)'),
      use('A', 's', ['1']),
      query(
        'outsider',
        "create or replace function f(int) returns text language sql as $$ select 'second' $$",
      ),
      use('A', 's', ['1']),
      run('B', 'select f($1)', ['1']),
      query(
        'outsider',
        'drop function f(int); create function f(int) returns int language sql as $$ select 3 $$',
      ),
      use('A', 's', ['1']),
      use('A', 's', ['1']),
      prepare('B', 's', 'select f($1)'),
      use('B', 's', ['1']),
      use('B', 's', [int4(1)]),
      query('outsider', 'drop function f(int)'),
      use('A', 's', ['1']),
      use('B', 's', ['1']),
      prepare('C', 's', 'select f($1)'),
    ],
  },
  {
    name: 'A function that is overloaded is chosen anew by fresh statements, and kept by those with types',
    setUp: "create function f(int) returns text language sql as $$ select 'number' $$",
    batches: [
      prepare('A', 's', 'select f($1)'),
      parse('B', 's', 'select f($1)'),
      query('outsider', "create function f(text) returns text language sql as $$ select 'letters' $$"),
      use('A', 's', ['1']),
      use('B', 's', ['1']),
      prepare('B', 'fresh', 'select f($1)'),
      use('B', 'fresh', ['one']),
      run('C', 'select f($1)', ['one']),
      run('C', 'select f($1)', ['1'], { types: [typeId.int4] }),
      query('outsider', 'drop function f(text)'),
      use('B', 's', ['1']),
      run('C', 'select f($1)', ['1']),
    ],
  },
  {
    name: 'A view that is replaced answers with what it selects now',
    setUp: 'create table t (c int, d int); insert into t values (1, 2); create view v as select c from t',
    batches: [
      prepare('A', 's', 'select c from v where c > $1'),
      prepare('A', 'all', 'select * from v'),
      use('A', 's', ['0']),
      query('outsider', 'create or replace view v as select d as c from t'),
      use('A', 's', ['0']),
      use('A', 'all'),
      query('B', 'create or replace view v as select d as c, c as extra from t'),
      use('A', 's', ['0']),
      use('A', 'all'),
      run('C', 'select * from v'),
    ],
  },
];

export const cases: readonly Case[] = [...refused, ...wrongValues, ...freshlyParsed, ...names];
