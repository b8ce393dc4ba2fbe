// Random lives of three clients and an outsider whose tables, types and functions change, as moves that are filtered to what PostgreSQL
// answers in one way only, and that nobody has to wait for.
import fc from 'fast-check';
import { type Batch, batch, leave, type Who } from './actors.js';
import {
  close,
  describeStatement,
  execute,
  int4,
  parse,
  prepare,
  query,
  run,
  typeId,
  use,
  type Value,
} from './batches.js';

export const setUp = `create schema front; create type mood as enum ('sad', 'glad');
  create table t (a int, w timestamp, m mood);
  create table base (a int, b text); create view v as select a from base;
  create function f(int) returns text language sql as $$ select 'first' $$;
  insert into t values (1, '2026-01-01', 'sad'); insert into base values (1, 'one')`;

/** All have rows: in a failed transaction a statement without rows can be described only by a server that has it. */
interface Statement {
  readonly text: string;
  readonly types?: readonly number[];
  readonly values: readonly Value[];
}

/** Values are of the type that the parameter had when its statement was parsed, so that nothing else is complained about first. */
const statements: readonly Statement[] = [
  { text: 'select * from t', values: [] },
  { text: 'select count(*) from t', values: [] },
  { text: 'select a from t order by a', values: [] },
  { text: 'select * from v', values: [] },
  { text: 'select f($1)', values: ['1'] },
  { text: 'insert into t (a) values ($1) returning *', values: ['1'] },
  { text: 'insert into t (a) values ($1) returning a', values: ['2'] },
  { text: 'insert into t (a) values ($1) returning *', types: [typeId.int4], values: [int4(3)] },
  { text: 'insert into t (w) values ($1) returning w', values: ['2026-01-01 12:00+05'] },
  { text: 'insert into t (m) values ($1) returning m', values: ['sad'] },
  { text: 'select * from t where a = $1', values: ['1'] },
  { text: 'update t set a = $1 where a = $2 returning a', values: ['1', '2'] },
  { text: 'select $1::mood', values: ['sad'] },
];

const alter = (column: string, type: string, using = `${column}::text::${type}`): string =>
  `alter table public.t alter ${column} type ${type} using ${using}`;

const changes: readonly string[] = [
  ...['int', 'bigint', 'text', 'numeric(6, 2)', 'varchar(3)', 'varchar(8)'].map((type) => alter('a', type)),
  alter('w', 'timestamp', 'w'),
  alter('w', 'timestamptz', 'w'),
  'alter table public.t add d text',
  'alter table public.t drop d',
  'alter table public.t drop a; alter table public.t add a int',
  'alter table public.t rename a to b',
  'alter table public.t rename b to a',
  'drop table public.t; create table public.t (a int, w timestamp, m mood)',
  'drop table public.t; create table public.t (m mood, w timestamptz, a bigint)',
  'create table public.next_t (a int, w timestamp, m mood)',
  'alter table public.t rename to old_t; alter table public.next_t rename to t',
  'drop table if exists public.old_t',
  "alter type mood add value if not exists 'mad'",
  "drop type public.mood cascade; create type public.mood as enum ('sad', 'mad'); alter table public.t add m mood",
  'create or replace view public.v as select a from public.base where a > 0',
  'create or replace view public.v as select a, b from public.base',
  'drop view public.v; create view public.v as select a from public.base',
  "create or replace function public.f(int) returns text language sql as $$ select 'second' $$",
  'drop function public.f(int); create function public.f(int) returns int language sql as $$ select 3 $$',
  "create function public.f(text) returns text language sql as $$ select 'letters' $$",
  'drop function public.f(text)',
  'drop table if exists front.t',
];

/** Whether PostgreSQL finds out that an old statement means the new table is a matter of chance: only fresh ones are used. */
const shadow = 'create table front.t (a text, w timestamptz, m text)';

const plain = [
  'select * from public.t',
  'set search_path = front, public',
  'set search_path = public',
  'reset search_path',
  'savepoint s',
  'rollback to s',
  'release s',
];

export type Move =
  | { readonly do: 'prepare' | 'parse' | 'prepareAndUse'; readonly name: string; readonly of: Statement }
  | { readonly do: 'use' | 'execute' | 'executeBinary' | 'describe' | 'close'; readonly name: string }
  | { readonly do: 'run'; readonly of: Statement }
  | { readonly do: 'change'; readonly text: string }
  | { readonly do: 'changeInPipeline'; readonly text: string; readonly of: Statement }
  | { readonly do: 'begin' | 'commit' | 'rollback' | 'forget' | 'leave' }
  | { readonly do: 'query'; readonly text: string };

export interface Step {
  readonly who: Who;
  readonly move: Move;
}

const is = <Name extends string>(...names: readonly Name[]): fc.Arbitrary<Name> => fc.constantFrom(...names);
const name = is('x', 'y', '');

/** A move of which the statement and the change are not yet chosen. */
type Choose = (statement: Statement, change: string) => Move;

function choices<Fields extends object>(
  fields: fc.Arbitrary<Fields>,
  make: (fields: Fields, statement: Statement, change: string) => Move,
): fc.Arbitrary<Choose> {
  return fields.map((drawn) => (statement, change) => make(drawn, statement, change));
}

const clientMove: fc.Arbitrary<Choose> = fc.oneof(
  {
    weight: 8,
    arbitrary: choices(
      fc.record({ do: is('prepare', 'prepare', 'parse', 'prepareAndUse'), name }),
      (drawn, of) => ({ ...drawn, of }),
    ),
  },
  {
    weight: 12,
    arbitrary: choices(
      fc.record({ do: is('use', 'use', 'use', 'execute', 'executeBinary', 'describe', 'close'), name }),
      (drawn) => drawn,
    ),
  },
  { weight: 3, arbitrary: choices(fc.record({ do: is('run') }), (drawn, of) => ({ ...drawn, of })) },
  {
    weight: 4,
    arbitrary: choices(fc.record({ do: is('change') }), (drawn, _of, text) => ({ ...drawn, text })),
  },
  {
    weight: 1,
    arbitrary: choices(fc.record({ do: is('changeInPipeline') }), (drawn, of, text) => ({
      ...drawn,
      of,
      text,
    })),
  },
  {
    weight: 4,
    arbitrary: choices(fc.record({ do: is('begin', 'commit', 'rollback') }), (drawn) => drawn),
  },
  {
    weight: 3,
    arbitrary: choices(fc.record({ do: is('query'), text: fc.constantFrom(...plain) }), (drawn) => drawn),
  },
  { weight: 1, arbitrary: choices(fc.record({ do: is('forget', 'leave') }), (drawn) => drawn) },
);
const outsiderMove: fc.Arbitrary<Choose> = choices(fc.record({ do: is('change') }), (drawn, _of, text) => ({
  ...drawn,
  text,
}));

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ who: is<Who>('A', 'A', 'B', 'C'), move: clientMove }) },
  { weight: 1, arbitrary: fc.record({ who: fc.constant<Who>('outsider'), move: outsiderMove }) },
);

/** Clients of one life share a few statements, and the same few changes come again and again. */
export const lives: fc.Arbitrary<Step[]> = fc
  .record({
    known: fc.shuffledSubarray([...statements], { minLength: 1, maxLength: 3 }),
    usual: fc.shuffledSubarray([...changes, shadow], { minLength: 2, maxLength: 5 }),
    steps: fc.array(fc.tuple(step, fc.nat(20), fc.nat(20)), { minLength: 12, maxLength: 40 }),
  })
  .map(({ known, usual, steps }) =>
    steps.map(([{ who, move }, statement, change]) => ({
      who,
      move: move(known[statement % known.length] as Statement, usual[change % usual.length] as string),
    })),
  );

interface Life {
  readonly statements: Map<string, Statement>;
  isInTransaction: boolean;
  hasChanged: boolean;
}

/** From then on every statement without a name is kept. */
const boundAgain = [run('A', 'select 1'), use('A', '')];

/**
 * The batches of a life. Left out are: uses of names that the client has not prepared, or not since a table began to hide another one;
 * changes while another client is in a transaction, which would wait for it; and all batches of others that would wait for a change which
 * is not committed, or for the only server connection.
 */
export function batchesOf(steps: readonly Step[], servers: 'one' | 'several'): Batch[] {
  const lives = new Map<Who, Life>();
  const batches: Batch[] = [];
  for (const { who, move } of steps) {
    const mine = lives.get(who) ?? { statements: new Map(), isInTransaction: false, hasChanged: false };
    lives.set(who, mine);
    const others = [...lives].filter(([other]) => other !== who).map(([, life]) => life);
    // A batch has one statement for each Parse.
    if (move.do === 'changeInPipeline' && move.text.includes(';')) continue;
    const isChange = move.do === 'change' || move.do === 'changeInPipeline';
    if (others.some(({ hasChanged }) => hasChanged)) continue;
    if (isChange && others.some(({ isInTransaction }) => isInTransaction)) continue;
    if (servers === 'one' && who !== 'outsider' && others.some(({ isInTransaction }) => isInTransaction))
      continue;
    // The statement would wait for a row that another transaction has changed.
    if (isUpdate(move, mine) && others.some(({ isInTransaction }) => isInTransaction)) continue;
    const next = batchOf(who, move, mine);
    if (next === undefined) continue;
    batches.push(next);
    if (isChange && mine.isInTransaction) mine.hasChanged = true;
    if (isChange && move.text === shadow) for (const life of lives.values()) life.statements.clear();
  }
  for (const [who, { isInTransaction }] of lives) if (isInTransaction) batches.push(query(who, 'rollback'));
  return [...boundAgain, ...batches, query('outsider', 'select * from public.t')];
}

function isUpdate(move: Move, { statements }: Life): boolean {
  let text: string | undefined;
  if ('of' in move) text = move.of.text;
  else if ('name' in move) text = statements.get(move.name)?.text;
  return text?.startsWith('update') === true;
}

function batchOf(who: Who, move: Move, mine: Life): Batch | undefined {
  switch (move.do) {
    case 'run':
      mine.statements.set('', move.of);
      return run(who, move.of.text, move.of.values, { types: move.of.types ?? [] });
    case 'change':
    case 'query':
      mine.statements.delete('');
      return query(who, move.text);
    case 'changeInPipeline':
      mine.statements.delete('');
      return batch(who, `in one batch: ${move.text}; ${move.of.text}`, (s) =>
        s
          .parse(move.text)
          .bind()
          .execute()
          .parse(move.of.text, '', move.of.types)
          .bind(move.of.values, '', '', {
            formats: move.of.values.map((value) => (Buffer.isBuffer(value) ? 1 : 0)),
          })
          .describePortal()
          .execute()
          .sync(),
      );
    case 'begin':
      if (mine.isInTransaction) return undefined;
      mine.isInTransaction = true;
      return query(who, 'begin');
    case 'commit':
    case 'rollback':
      if (!mine.isInTransaction) return undefined;
      mine.isInTransaction = mine.hasChanged = false;
      return query(who, move.do);
    case 'forget':
    case 'leave':
      if (mine.isInTransaction) return undefined;
      mine.statements.clear();
      return move.do === 'leave' ? leave(who) : query(who, 'deallocate all');
    default:
      return statementBatch(who, move, mine);
  }
}

type StatementMove = Extract<Move, { readonly name: string }>;

function statementBatch(who: Who, move: StatementMove, mine: Life): Batch | undefined {
  const { name } = move;
  if ('of' in move) {
    const { text, types = [], values } = move.of;
    const had = mine.statements.has(name);
    mine.statements.set(name, move.of);
    if (move.do === 'prepareAndUse')
      return batch(who, `close, parse and use ${name}: ${text}`, (s) =>
        s
          .closeStatement(name)
          .parse(text, name, types)
          .bind(values, name, '', { formats: values.map((value) => (Buffer.isBuffer(value) ? 1 : 0)) })
          .describePortal()
          .execute()
          .sync(),
      );
    if (name === '' || !had)
      return move.do === 'parse' ? parse(who, name, text, types) : prepare(who, name, text, types);
    return batch(who, `close and ${move.do} ${name}: ${text}`, (s) => {
      s.closeStatement(name).parse(text, name, types);
      return move.do === 'parse' ? s.sync() : s.describeStatement(name).sync();
    });
  }
  const known = mine.statements.get(name);
  if (known === undefined) return undefined;
  switch (move.do) {
    case 'close':
      mine.statements.delete(name);
      return close(who, name);
    case 'describe':
      return describeStatement(who, name);
    case 'executeBinary':
      return execute(who, name, known.values, 'binary');
    default:
      return (move.do === 'use' ? use : execute)(who, name, known.values, 'text');
  }
}
