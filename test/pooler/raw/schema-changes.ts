// Changes of a table under the statements `insert into t values ($1) returning *` and `select * from t`, and the script that is played
// for each of them: statements from before the change, fresh ones, and all of them again when the change is taken back.
import type { Batch, Who } from './actors.js';
import {
  binaryText,
  close,
  describeStatement,
  execute,
  int4,
  int8,
  parse,
  prepare,
  query,
  run,
  timestamp,
  use,
  type Value,
} from './batches.js';

export interface Change {
  readonly name: string;
  readonly before: string;
  readonly change: string;
  /** Undefined where there is no way back. */
  readonly back?: string;
  /** Values for statements from before the change, and for fresh ones after it. */
  readonly old: readonly Value[];
  readonly fresh: readonly Value[];
  /** Whether the type of the old parameter is gone. */
  readonly losesType?: boolean;
}

const noon = timestamp('2026-01-01T12:00:00Z');
const table = 'create table t (c int)';

export const changes: readonly Change[] = [
  {
    name: 'a timestamp that becomes a timestamptz',
    before: 'create table t (c timestamp)',
    change: 'alter table t alter c type timestamptz',
    back: 'alter table t alter c type timestamp',
    old: ['2026-01-01 12:00+05', noon],
    fresh: ['2026-01-01 12:00+05', noon],
  },
  {
    name: 'an int that becomes a bigint',
    before: table,
    change: 'alter table t alter c type bigint',
    back: 'alter table t alter c type int using c % 1000',
    old: ['7', int4(8)],
    fresh: ['5000000000', int8(6_000_000_000n), int4(9)],
  },
  {
    name: 'an int that becomes a text',
    before: table,
    change: 'alter table t alter c type text',
    back: 'alter table t alter c type int using length(c)',
    old: ['7', int4(8)],
    fresh: ['no number', binaryText('bytes')],
  },
  {
    name: 'a text that becomes an int',
    before: 'create table t (c text)',
    change: 'alter table t alter c type int using length(c)',
    back: 'alter table t alter c type text',
    old: ['7', binaryText('12')],
    fresh: ['8', int4(9), 'no number'],
  },
  {
    name: 'a varchar that becomes longer',
    before: 'create table t (c varchar(3))',
    change: 'alter table t alter c type varchar(10)',
    back: 'alter table t alter c type varchar(3) using left(c, 3)',
    old: ['abc', binaryText('def')],
    fresh: ['abcdef', binaryText('ghijkl')],
  },
  {
    name: 'a varchar that becomes shorter',
    before: 'create table t (c varchar(10))',
    change: 'alter table t alter c type varchar(3) using left(c, 3)',
    back: 'alter table t alter c type varchar(10)',
    old: ['abcdef', 'abc', binaryText('def')],
    fresh: ['abcdef', 'abc', binaryText('def')],
  },
  {
    name: 'a numeric with another scale',
    before: 'create table t (c numeric(10, 2))',
    change: 'alter table t alter c type numeric(10, 4)',
    back: 'alter table t alter c type numeric(10, 2)',
    old: ['1.23456'],
    fresh: ['1.23456'],
  },
  {
    name: 'an enum with one more value',
    before: "create type mood as enum ('sad', 'glad'); create table t (c mood)",
    change: "alter type mood add value 'mad' before 'glad'",
    old: ['glad', 'mad', binaryText('sad')],
    fresh: ['mad', binaryText('mad')],
  },
  {
    name: 'a type that is dropped and made again',
    before: "create type mood as enum ('sad', 'glad'); create table t (c mood, d int)",
    change:
      "alter table t drop c; drop type mood; create type mood as enum ('glad', 'mad'); alter table t drop d, add c mood, add d int",
    old: ['glad', 'mad'],
    fresh: ['mad', binaryText('glad')],
    losesType: true,
  },
  {
    name: 'a composite type that is dropped and made again',
    before: 'create type pair as (a int, b int); create table t (c pair)',
    change:
      'drop table t; drop type pair; create type pair as (a text, b text, z text); create table t (c pair)',
    old: ['(1,2)'],
    fresh: ['(a,b,z)'],
    losesType: true,
  },
  {
    name: 'a domain with one more constraint',
    before: 'create domain small as int; create table t (c small)',
    change: 'alter domain small add constraint below check (value < 10)',
    back: 'alter domain small drop constraint below',
    old: ['7', '70', int4(8), int4(80)],
    fresh: ['7', '70', int4(8), int4(80)],
  },
  {
    name: 'a column that is dropped and added again, behind the other one',
    before: 'create table t (c int, d text)',
    change: 'alter table t drop c; alter table t add c int',
    back: 'alter table t drop d; alter table t add d text',
    old: ['7', int4(8)],
    fresh: ['no number', binaryText('bytes')],
  },
  {
    name: 'a column that is dropped and added again with another type',
    before: table,
    change: 'alter table t drop c; alter table t add c timestamptz',
    back: 'alter table t drop c; alter table t add c int',
    old: ['7', int4(8)],
    fresh: ['2026-01-01 12:00+05', noon],
  },
  {
    name: 'a column with another name',
    before: table,
    change: 'alter table t rename c to renamed',
    back: 'alter table t rename renamed to c',
    old: ['7', int4(8)],
    fresh: ['7', int4(8)],
  },
  {
    name: 'a column that is added',
    before: table,
    change: "alter table t add d text default 'new'",
    back: 'alter table t drop d',
    old: ['7', int4(8)],
    fresh: ['7', int4(8)],
  },
  {
    name: 'a table that is dropped and made again as it was',
    before: table,
    change: 'drop table t; create table t (c int)',
    back: 'drop table t; create table t (c int)',
    old: ['7', int4(8)],
    fresh: ['7', int4(8)],
  },
  {
    name: 'a table that is dropped and made again with another type',
    before: table,
    change: 'drop table t; create table t (c bigint)',
    back: 'drop table t; create table t (c int)',
    old: ['7', int4(8)],
    fresh: ['5000000000', int8(6_000_000_000n)],
  },
  {
    name: 'a table that is swapped by renaming',
    before: `${table}; create table next_t (c text, d int)`,
    change: 'alter table t rename to old_t; alter table next_t rename to t',
    back: 'alter table t rename to next_t; alter table old_t rename to t',
    old: ['7', int4(8)],
    fresh: ['no number', binaryText('bytes')],
  },
  {
    name: 'a view that is replaced',
    before: 'create table base (c int, d int); create view t as select c from base',
    change: 'create or replace view t as select c, d as extra from base',
    back: 'drop view t; create view t as select c from base',
    old: ['7', int4(8)],
    fresh: ['7', int4(8)],
  },
];

const insert = 'insert into t values ($1) returning *';
const all = 'select * from t';

function each(values: readonly Value[], make: (value: Value) => Batch): Batch[] {
  return values.map(make);
}

/** Everything that two old clients and a new one may do around a change. */
export function script({ change, back, old, fresh }: Change, changer: Who): Batch[] {
  const freshly = (who: Who): Batch[] => [
    prepare(who, 'fresh_ins', insert),
    ...each(fresh, (value) => use(who, 'fresh_ins', [value])),
    prepare(who, 'fresh_all', all),
    execute(who, 'fresh_all'),
    execute(who, 'fresh_all', [], 'binary'),
  ];
  const asBefore = (who: Who): Batch[] => [
    ...each(old, (value) => use(who, 'ins', [value])),
    use(who, 'all'),
    execute(who, 'all', [], 'binary'),
  ];
  return [
    // A is told the types, B is not.
    prepare('A', 'ins', insert),
    prepare('A', 'all', all),
    ...asBefore('A'),
    parse('B', 'ins', insert),
    parse('B', 'all', all),
    query(changer, change),
    ...asBefore('A'),
    describeStatement('A', 'ins'),
    describeStatement('A', 'all'),
    ...each(fresh, (value) => run('A', insert, [value])),
    run('A', all),
    ...freshly('B'),
    ...asBefore('B'),
    ...freshly('C'),
    close('A', 'ins'),
    close('A', 'all'),
    prepare('A', 'ins', insert),
    prepare('A', 'all', all),
    ...each(fresh, (value) => use('A', 'ins', [value])),
    use('A', 'all'),
    query('outsider', all),
    ...(back === undefined ? [] : [query(changer, back), use('C', 'fresh_all')]),
    ...(back === undefined ? [] : [...asBefore('B'), run('A', insert, old.slice(0, 1)), run('A', all)]),
    query('outsider', all),
  ];
}
