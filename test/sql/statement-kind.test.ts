/** Which statements may share a connection, judged by their text; checked by tables, by properties and by the server. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type StatementKind, statementKind } from '../../src/sql/statement-kind.js';

function all(kind: StatementKind, texts: readonly string[]): void {
  expect(texts.filter((text) => statementKind(text) !== kind)).toEqual([]);
}

test('a statement is shareable when it reads or writes rows', () => {
  all('shareable', [
    'select 1',
    'SELECT * FROM users WHERE id = $1',
    'insert into t (a) values ($1) returning id',
    'update t set a = 1 where b = 2',
    'delete from t',
    'merge into t using s on t.id = s.id when matched then delete',
    'with x as (insert into t values (1) returning a) select * from x',
    'with x as (select 1) merge into t using x on true when matched then do nothing',
    'insert into temp values (1)',
    'values (1), (2)',
    'table t',
    'show server_version',
    'select a from t for update skip locked',
  ]);
});

test('a statement is shareable whatever space, comments and parentheses come first', () => {
  all('shareable', [
    '  \t\n\r\f\vselect 1',
    '-- begin\nselect 1',
    '-- begin\rselect 1',
    '/* begin; */ select 1',
    '/* a /* nested; */ begin */select 1',
    '((select 1) union (select 2))',
    '(/**/(--\nselect 1))',
  ]);
});

test('a statement is shareable when a semicolon ends it and only space and comments follow', () => {
  all('shareable', ['select 1;', 'select 1 ; \n', 'select 1; -- done', 'select 1; /* done; */ ']);
});

test('a statement is shareable when what looks dangerous is only text', () => {
  all('shareable', [
    "select '; begin'",
    "select 'it''s; begin'",
    "select 'a' 'b; begin'",
    "select 'set_config'",
    "select E'\\\\; begin'",
    "select e'tab\\t; begin'",
    "select '\\d+; begin'",
    "select U&'\\0061; begin'",
    "select b'01', x'ff', n'; begin'",
    'select $$; begin$$',
    "select $tag$; $$ begin ' $other$ $tag$",
    'select $_1a$ ; begin $_1a$',
    'select 1 as "; begin"',
    'select 1 as "a""; begin"',
    'select 1 -- ; begin',
    'select 1 /* ; begin */',
    'select 2 */* ; begin */ 3',
    'select begin, commit, rollback from t',
    'select a$b$c from t',
    'select $1, $2::text',
    'select 1.5e10, 0xff, 1_000, .5',
  ]);
});

test('a statement is shareable when it explains a statement that is', () => {
  all('shareable', [
    'explain select 1',
    'explain analyze insert into t values (1)',
    'explain analyze verbose update t set a = 1',
    'explain (analyze, buffers off, format json) delete from t',
    "explain (analyze, format 'json') select 1",
    'explain (select 1)',
    'explain analyze ((with x as (select 1) select * from x))',
    'explain (costs off) (select 1)',
    'explain values (1)',
  ]);
});

test('a statement is shareable when its locks and notices end with it', () => {
  all('shareable', [
    'select pg_advisory_xact_lock(1)',
    'select pg_try_advisory_xact_lock_shared(1)',
    "select pg_notify('a', 'b')",
    "select nextval('s')",
    'select pg_backend_pid()',
  ]);
});

test('a statement is one of a transaction when it begins, ends or marks one', () => {
  all('transaction', [
    'begin',
    'BEGIN ISOLATION LEVEL SERIALIZABLE',
    'start transaction read only',
    'commit',
    'commit prepared $$x$$',
    'end',
    'rollback to savepoint a',
    'abort',
    'savepoint a',
    'release a',
    "prepare transaction 'x'",
    "prepare /* the */ transaction 'x'",
    '/* x */ begin',
    'bEgIn;',
  ]);
});

test('a statement is one of a transaction when one of several statements does', () => {
  all('transaction', [
    'select 1; begin',
    'select 1;begin',
    ';begin',
    'select 1; /* ; */ -- ;\n commit; select 2',
    'begin; select 1; commit',
    "select ';'; begin",
    'select $a$;$a$; begin',
    'select 1;;begin',
    'begin; set local a.b = 1; update t set a = 1; commit',
    'begin; set transaction isolation level serializable; commit',
    'set constraints all deferred',
    'set local a.b = 1',
  ]);
});

test('a statement belongs to a session when it is made for one', () => {
  all('session', [
    'set search_path = a',
    'set session a = 1',
    'set session characteristics as transaction read only',
    'SET/* c */work_mem = 1',
    'set--\nwork_mem = 1',
    'set local.a = 1',
    'set transaction.a = 1',
    'set constraints.a = 1',
    'set "local" = 1',
    'begin; set work_mem = 1; -- set local \ncommit',
    'set a = 1; begin',
    'begin; select pg_advisory_lock(1); commit',
    'reset all',
    'listen a',
    'unlisten *',
    'prepare a as select 1',
    'prepare "transaction" as select 1',
    'prepare transaction as select 1',
    'prepare transaction (int) as select 1',
    'deallocate all',
    'execute a',
    'discard all',
    'declare c cursor with hold for select 1',
    'fetch 1 from c',
    'move 1 from c',
    'close c',
    "load 'auto_explain'",
    'lock t',
    'explain execute a',
    'explain (analyze) declare c cursor for select 1',
    'select 1; set a.b = 1',
  ]);
});

test('a statement belongs to a session when it makes or uses something temporary', () => {
  all('session', [
    'create temp table t (a int)',
    'create temporary view v as select 1',
    'create local temp table t (a int)',
    'create or replace temp view v as select 1',
    'create table pg_temp.t (a int)',
    'select * from "pg_temp".t',
    'select 1 into temp t',
    'select 1 into temporary table t',
    'select 1 into local temp t',
    'select 1 into/**/temp t',
    'select 1into temp t',
    'select 1 as insert into temp t',
    'select 1 merge into temp t',
    'explain analyze create temp table t as select 1',
    'explain (analyze) create temp table t as select 1',
  ]);
});

test('a statement belongs to a session when it calls what touches the session, however the name is written', () => {
  all('session', [
    "select set_config('a.b', 'c', false)",
    "select SET_CONFIG ('a.b', 'c', false)",
    "select set_config/* ; */('a.b', 'c', false)",
    "select pg_catalog.set_config('a.b', 'c', false)",
    'select pg_catalog . "set_config"($1, $2, $3)',
    "with x as (select set_config('a.b', 'c', false)) select * from x",
    "explain analyze select set_config('a.b', 'c', false)",
    "insert into t select set_config('a.b', 'c', false)",
    'select pg_advisory_lock(1)',
    'select * from pg_try_advisory_lock_shared(1)',
    'select pg_advisory_unlock_all()',
    'select setseed(0.5)',
    "select dblink_connect('a')",
    "select pg_create_logical_replication_slot('a', 'b', true)",
  ]);
});

test('a statement is opaque when it reads what is left in a session, or runs what its text does not show', () => {
  all('opaque', [
    "select currval('s')",
    'select lastval()',
    "select * from dblink('a', 'b') as t(a int)",
    'select setting from pg_settings',
    "update pg_settings set setting = 'off' where name = 'enable_seqscan'",
    "select query_to_xml('select set_config(...)', true, true, '')",
    'select * from pg_replication_slots',
    'select pg_terminate_backend(pg_backend_pid())',
    "begin; select currval('s'); commit",
    'select pg_unknown_function(1)',
    'select * from pg_catalog . "pg_unknown_function" (1)',
  ]);
});

test('a statement runs alone when it is of no known kind', () => {
  all('unknown', [
    '',
    '   ',
    '-- nothing',
    ';',
    'create table t (a int)',
    'drop table t',
    'alter table t add b int',
    'do $$ begin end $$',
    'call p()',
    'copy t from stdin',
    'vacuum',
    'notify a',
    'checkpoint',
    'create function f() returns int begin atomic select 1; end',
    '"select" 1',
    '1 select',
    'selects 1',
    'select1',
    '\ufeffselect 1',
    '\u00a0select 1',
    'select\u00a01',
    '\u3000select 1',
    'explain create table t as select 1',
    'explain (values) create table t as select 1',
    'explain refresh materialized view v',
    'explain',
  ]);
});

test('a statement runs alone when it is more than one', () => {
  all('unknown', [
    'select 1; select 2',
    'select 1;;',
    ';select 1',
    'vacuum; select 1',
    "select ''; select 1",
  ]);
});

test('a statement runs alone when it makes a table out of a query', () => {
  all('unknown', [
    'select 1 into t',
    'with x as (select 1) select * into t from x',
    'select 1 into unlogged t',
    'select 1 as insert into t',
    'with x as (select 1) select f() insert into t',
  ]);
});

test('a statement runs alone when something is never closed', () => {
  all('unknown', [
    "select 'a",
    'select "a',
    'select $$a',
    'select $a$ $b$',
    'select 1 /* /* */',
    "select 'a\\",
  ]);
});

test('a statement runs alone when a quote after a backslash could end the string or not', () => {
  all('unknown', [
    "select '\\'; begin --'",
    "select E'\\'; begin --'",
    "select 'a'\n'\\'; begin --'",
    "select E'a'\n'\\'; begin --'",
    "select 1e'\\'; begin --'",
    "select '\\\\\\'; begin --'",
  ]);
});

test('a statement runs alone when servers disagree about where a token begins', () => {
  all('unknown', [
    "select 1$a$ ' $a$; begin --'",
    "select $1$a$ ' $a$; begin --'",
    "select 1e5$a$ ' $a$; begin --'",
    "select 1_0$a$ ' $a$; begin --'",
    "select 1.$a$ ' $a$; begin --'",
    'select $\ud800$ $\udc01$; begin; $\ud800$',
    'select $é$ $é$',
    `select $${'a'.repeat(100)}$ $${'a'.repeat(100)}$`,
  ]);
});

test('a statement runs alone when a name is written in code points', () => {
  all('unknown', [
    `select U&"set\\005Fconfig"('a.b', 'c', false)`,
    `select u&"set!005Fconfig" UESCAPE '!' ('a.b', 'c', false)`,
  ]);
});

test('a statement runs alone when a NUL cuts it short', () => {
  all('unknown', ['select 1\0', "select 'a\0; begin", 'select 1 -- \0', '\0select 1']);
});

test('a statement runs alone when it is not a text at all', () => {
  expect(statementKind(undefined as unknown as string)).toBe('unknown');
  expect(statementKind({} as unknown as string)).toBe('unknown');
});

const shareable = fc.constantFrom(
  'select 1',
  'select a from t where b = $1',
  'insert into t values (1)',
  'update t set a = 1',
  'with x as (select 1) select * from x',
  'explain (analyze) select 1',
  'values (1)',
);
const space = fc
  .array(fc.constantFrom(' ', '\t', '\n', '-- ; begin\n', '/* ; begin */', '/* /* \' " $$ */ */'), {
    maxLength: 4,
  })
  .map((parts) => ` ${parts.join('')}`);
/** Any text at all, with a preference for what could confuse a scanner. */
const noise = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "'",
        '"',
        '$',
        '$$',
        '$a$',
        '\\',
        '--',
        '/*',
        '*/',
        ';',
        '; begin',
        '\n',
        '(',
        ')',
        'E',
        'U&',
      ),
      fc.string({ unit: 'binary', maxLength: 5 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join('').replaceAll('\0', ''));
/** Whatever is in it, PostgreSQL reads it as one harmless value. */
const hidden = fc.oneof(
  noise.map((text) => `'${text.replaceAll('\\', '').replaceAll("'", "''")}'`),
  noise.map((text) => `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`),
  noise.map((text) => `$q1$${text.replaceAll('$q1', '')}$q1$`),
  noise.map((text) => `"_${text.replaceAll('"', '""')}"`),
  noise.map((text) => `1 --${text.replaceAll(/[\r\n]/g, '')}\n`),
  noise.map((text) => `1 /*${text.replaceAll(/[*/]/g, '')}*/`),
);

test('whatever the text what is hidden in strings, names and comments changes nothing', () => {
  fc.assert(
    fc.property(hidden, hidden, (first, second) => {
      expect(statementKind(`select ${first} , ${second} from t`)).toBe('shareable');
      expect(statementKind(`select ${first} ; begin ${second}`)).toBe('transaction');
    }),
    { numRuns: 2000 },
  );
});

test('whatever the text space, comments and case change nothing', () => {
  const cases = fc.constantFrom<(text: string) => string>(
    (text) => text,
    (text) => text.toUpperCase(),
    (text) => text.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase()),
  );
  const kinds = fc.constantFrom(
    ...['select a from t', 'begin', 'prepare transaction', 'set a', 'create temp table t', 'vacuum t'],
    ...[
      'select set_config',
      'explain analyze select a',
      'explain analyze create temp table t',
      'insert into t',
    ],
  );
  fc.assert(
    fc.property(kinds, cases, fc.array(space, { minLength: 8, maxLength: 8 }), (text, change, spaces) => {
      const words = change(text).split(' ');
      const spread = words.map((word, index) => `${spaces[index]}${word}`).join('') + spaces[7];
      expect(statementKind(spread)).toBe(statementKind(text));
    }),
    { numRuns: 1000 },
  );
});

test('whatever the text a second statement is never shared', () => {
  fc.assert(
    fc.property(
      shareable,
      space,
      noise,
      fc.constantFrom('begin', 'select 1', 'x', '(', '0', "'"),
      (...parts) => {
        const [text, between, rest, something] = parts;
        expect(statementKind(`${text}${between};${between}${something}${rest}`)).not.toBe('shareable');
      },
    ),
    { numRuns: 1000 },
  );
});

test('whatever the text it answers, and the same again', () => {
  fc.assert(
    fc.property(noise, (text) => {
      const kind = statementKind(`select ${text}`);
      expect(['shareable', 'transaction', 'session', 'unknown']).toContain(kind);
      expect(statementKind(`select ${text}`)).toBe(kind);
    }),
    { numRuns: 1000 },
  );
});

test('whatever the text thousands of texts are judged rightly while old verdicts are forgotten', () => {
  for (let round = 0; round < 2; round++) {
    for (let id = 0; id < 3000; id++) {
      expect(statementKind(`select ${id}`)).toBe('shareable');
      expect(statementKind(`begin -- ${id}`)).toBe('transaction');
    }
  }
});

test('whatever the text a text of a million characters is read to its end', () => {
  const long = 'x'.repeat(1_000_000);
  expect(statementKind(`select '${long}'`)).toBe('shareable');
  expect(statementKind(`select '${long}'; begin`)).toBe('transaction');
  expect(statementKind(`select ${'('.repeat(1_000_000)}`)).toBe('shareable');
  expect(statementKind(`select ${'/*'.repeat(500_000)}`)).toBe('unknown');
  expect(statementKind(`select ${'$a'.repeat(500_000)}`)).toBe('shareable');
  expect(statementKind(`select ${"''".repeat(500_000)}`)).toBe('shareable');
});
