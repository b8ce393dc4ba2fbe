// Scripts about statements without a name that are used in more than one batch while tables change.

import { batch } from './actors.js';
import { describeStatement, execute, parse, prepare, query, run, use } from './batches.js';
import type { Case } from './schema-cases.js';

const all = 'select * from t';
const dropColumn = 'alter table t drop d';
const addColumn = "alter table t add d text default 'new'";

export const unnamedCases: readonly Case[] = [
  {
    name: 'An unnamed statement that is parsed in one batch and bound in the next keeps its types and its rows',
    setUp: 'create table t (c timestamp)',
    batches: [
      prepare('A', '', 'insert into t values ($1)'),
      query('outsider', 'alter table t alter c type timestamptz'),
      use('A', '', ['2026-01-01 12:00+05']),
      use('A', '', ['2026-01-01 13:00+05']),
      parse('A', '', all),
      query('B', addColumn),
      use('A', ''),
      use('A', ''),
      prepare('A', '', all),
      use('A', ''),
      execute('A', '', [], 'binary'),
      query('outsider', all),
    ],
  },
  {
    name: 'Unnamed statements of two clients with the same text are kept apart',
    setUp: 'create table t (c timestamp)',
    batches: [
      prepare('A', '', 'insert into t values ($1)'),
      query('outsider', 'alter table t alter c type timestamptz'),
      run('B', 'insert into t values ($1)', ['2026-01-01 12:00+05']),
      use('A', '', ['2026-01-01 12:00+05']),
      prepare('A', '', all),
      query('B', addColumn),
      run('B', all),
      use('A', ''),
      describeStatement('A', ''),
      query('outsider', all),
    ],
  },
  {
    name: 'An unnamed statement that was run from Parse to Sync keeps its types and its rows for later batches',
    setUp: 'create table t (c timestamp)',
    batches: [
      run('A', 'insert into t values ($1)', ['2026-01-01 12:00']),
      query('outsider', 'alter table t alter c type timestamptz'),
      query('B', 'select 1'),
      use('A', '', ['2026-01-01 13:00+05']),
      run('A', all),
      query('outsider', addColumn),
      query('B', 'select 1'),
      describeStatement('A', ''),
      use('A', ''),
      run('A', all),
      query('outsider', dropColumn),
      prepare('A', 'same', all),
      query('B', addColumn),
      describeStatement('A', ''),
      use('A', ''),
      query('outsider', all),
    ],
  },
  {
    name: 'A table that is dropped behind the Parse of an unnamed statement, in its batch, fails nothing else',
    setUp: 'create table t (c int)',
    batches: [
      prepare('A', 'drops', 'drop table t'),
      batch('A', 'parse, then drop', (s) => s.parse(all).bind([], 'drops').execute().sync()),
      batch('A', 'run, then drop', (s) =>
        s
          .parse('create table t (c int)')
          .bind()
          .execute()
          .parse(all)
          .bind()
          .execute()
          .bind([], 'drops')
          .execute()
          .sync(),
      ),
      query('outsider', "select to_regclass('t')"),
    ],
  },
];
