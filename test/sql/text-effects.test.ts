// What a text leaves in a session, by tables and properties. test/sql/harmless-on-server.test.ts asks a server.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TextEffects } from '../../src/sql/effects.js';
import { isAsciiSafe, type LexicalSettings } from '../../src/sql/lexical-settings.js';
import { isPlainStatement } from '../../src/sql/plain-statement.js';
import { readTextEffects } from '../../src/sql/text-effects.js';

const usual: LexicalSettings = { clientEncoding: 'UTF8', standardConformingStrings: true, areSure: true };
const escaping: LexicalSettings = { ...usual, standardConformingStrings: false };
const unsure: LexicalSettings = { ...usual, areSure: false };

/** In the middle of other bytes, which must not matter. */
function effectsOf(text: string | Buffer, lexical = usual): TextEffects {
  const bytes = Buffer.concat([Buffer.from("set x;'"), Buffer.from(text), Buffer.from("\0$$'*/;begin")]);
  return readTextEffects(bytes, 7, bytes.length - 12, lexical);
}

function leaves(text: string | Buffer, lexical = usual): string {
  return effectsOf(text, lexical).leaves;
}

function all(wanted: TextEffects['leaves'], texts: readonly string[], lexical = usual): void {
  expect(texts.filter((text) => leaves(text, lexical) !== wanted)).toEqual([]);
}

test('nothing: A text of statements that are known to be harmless leaves nothing', () => {
  all('nothing', [
    '',
    ' ; ; -- nothing\n /* at /* all */ */',
    'select 1',
    'SELECT * FROM t WHERE a = $1 FOR UPDATE',
    '((select 1) union (select 2)) order by 1',
    'insert into t values (1); update t set a = 2; delete from t; merge into t using s on true when matched then delete',
    'values (1)',
    'table t',
    'with x as (insert into t values (1) returning a), y(b) as not materialized (select 1) insert into t select 1',
    'with recursive x as (select 1) merge into t using x on true when matched then do nothing',
    'show all',
    'begin; set local work_mem = 1; set transaction read only; set constraints all deferred; savepoint a; commit and chain',
    "rollback; end; abort; start transaction; release a; prepare transaction 'x'; rollback prepared 'x'",
    'declare c cursor for select 1; fetch 1 from c; move c; close all',
    "lock t; notify c, 'x'; truncate t; copy t from stdin; copy (select 1) to stdout",
    'explain select 1; explain analyze verbose insert into t values (1); explain (analyze, format json) delete from t',
    'explain (select 1); explain (costs off) ((with x as (select 1) select * from x))',
    "select 'set_config', $$set_config$$, E'set_config\\'', B'01', X'ff', N'into', U&'into'",
    "select pg_advisory_xact_lock(1), pg_notify('a', 'b'), pg_backend_pid(), lastval(), pg_get_viewdef(1)",
    'select * from pg_class, pg_stat_activity, pg_unknown_table',
    'select 1 -- set_config\n, 2 /* into /* hold */ set_config */',
  ]);
});

test('set_config() until the end of the transaction leaves nothing', () => {
  all('nothing', [
    "select set_config('a.b', 'c', true)",
    'select set_config($1, $2, true)',
    "select pg_catalog . SET_CONFIG ( 'a.b' , $1::text, /* local */ TRUE), 1",
    "select set_config('a.b', coalesce(f(1, 2), 'x'), true), \"set_config\"('a.c', $1, true) from t",
  ]);
});

test('set_config() in any other form is unclear', () => {
  all('unclear', [
    "select set_config('a.b', 'c', false)",
    "select set_config('a.b', 'c', $1)",
    "select set_config('a.b', 'c', true and false)",
    "select set_config('a.b', 'c', not true)",
    "select set_config('a.b', 'c', (true))",
    "select set_config('a.b', 'c', true, true)",
    "select set_config('a.b', true)",
    "select set_config('seed', '0.5', true)",
    "select set_config('Seed', '0.5', true)",
    "select set_config('se' || 'ed', '0.5', true)",
    "select set_config(E'\\\\x73eed', '0.5', true)",
    "select set_config('se'\n'ed', '0.5', true)",
    "select set_config('a.b', set_config('a.c', 'd', false), true)",
    "select set_config('a.b', set_config('a.c', 'd', true), true)",
    "select set_config(name => 'a.b', value => 'c', is_local => true)",
    "select set_config(('a.b'), 'c', true)",
    "select (set_config)('a.b', 'c', true)",
    "select set_config (1) ('a.b', 'c', true)",
    "select 1 as set_config, 'a', true",
    'select set_config',
    "select set_config('a.b', array['c', 'd'], true)",
    'select set_config(\'a.b\', "true", "true")',
    "select set_config('a.b', 'c', x.true)",
  ]);
});

test('settings: A text of SET, RESET, DISCARD and DEALLOCATE leaves settings', () => {
  all('settings', [
    'set work_mem = 1',
    'set search_path = pg_temp, public',
    'set session authorization default',
    'set session characteristics as transaction read only',
    'set local.a = 1',
    'set transaction.a = 1',
    'set constraints.a to 1',
    'set "local" to 1',
    'reset all; select 1',
    'discard all',
    'deallocate all',
  ]);
});

test('unclear: A statement that is not known to be harmless is unclear', () => {
  all('unclear', [
    'create table t (a int)',
    'create temp table t (a int)',
    'drop table t',
    'do $$ begin end $$',
    "do E''",
    'call p()',
    'listen a',
    'unlisten *',
    'prepare a as select 1',
    'prepare transaction as select 1',
    'execute a',
    "load 'auto_explain'",
    'vacuum',
    'what is this',
    '1',
    '"select" 1',
    '(insert into t values (1); listen a',
    'explain execute a',
    'explain analyze create table t as select 1',
    'explain (values) create table t as select 1',
    'explain',
    'set local seed = 0.5',
    'select 1; listen a; select 1',
  ]);
});

test('unclear: A SELECT that makes a table is unclear', () => {
  all('unclear', [
    'select 1 into t',
    'select 1 INTO/**/t',
    'select 1 as insert into t',
    'select 1 insert into t',
    'select f() insert into t',
    'with x as (select 1) select f() insert into t from x',
    'with insert as (select 1) select 1 insert into t',
    '(select 1 into t)',
    'explain analyze select 1 into t',
    'select 1 as merge into t',
    'values (1) insert into t',
  ]);
});

test('unclear: A cursor that is held is unclear', () => {
  all('unclear', [
    'declare c cursor with hold for select 1',
    'DECLARE /* -- */ c CURSOR WITH /* x */ HOLD FOR SELECT 1',
    'declare c cursor with--\rhold for select 1',
  ]);
});

test('unclear: A function that changes the session is unclear, however its name is written', () => {
  all('unclear', [
    "select set_config('a.b', 'c', false)",
    "select SET_CONFIG/**/('a.b', 'c', false)",
    `select pg_catalog . "set_config"('a.b', 'c', false)`,
    `select U&"set\\005fconfig"('a.b', 'c', false)`,
    `select u&"\\0073et\\+00005fconfig"('a.b', 'c', false)`,
    `select u&"set!005fconfig" uescape '!' ('a.b', 'c', false)`,
    'select pg_advisory_lock(1), pg_advisory_unlock_all()',
    'select setseed(0.5)',
    "select query_to_xml('select 1', true, true, '')",
    "select ts_stat('select 1')",
    'update pg_settings set setting = 1',
    "select (select a from t where x = any(array[(select set_config('a.b', 'c', false))]))",
    'copy (select setseed(0.5)) to stdout',
    'select pg_function_of_a_later_version(1)',
    'select "pg_function_of_a_later_version" /* */ (1)',
    "select set_conf\u0130g('a.b', 'c', false)",
  ]);
});

test('unclear: A text whose tokens have no certain end is unclear', () => {
  all('unclear', [
    "select 'a",
    'select "a',
    'select $$a',
    'select 1 /* /* */',
    'select \\',
    'select $',
    'select {',
  ]);
  all('unclear', [
    'select 1a',
    'select 1into',
    'select 0xff',
    'select 1_000',
    'select $1a',
    'select 1e',
    "select 1e''",
  ]);
  all('unclear', ['select $\u00e9$ $\u00e9$', 'select 1$a$ $a$', "select 'a\0b'", 'select 1 --\0']);
  all('unclear', ["select U&'a'", "select 'a\\'"], escaping);
  all('unclear', ["select 'a\\'; listen a; --'"]);
  all('nothing', ["select 'a\\'; listen a; --'", "select 'a'\n'\\'; listen a'"], escaping);
});

test('unclear: A backslash or a byte beyond ASCII is unclear while lexical settings change', () => {
  all('unclear', ["select '\\'", "select 'ä'"], unsure);
  all('nothing', ["select 'a'"], unsure);
});

test.each([
  ['a continued string', "select 'a' -- c\n '; listen a'", usual],
  ['a continued E string', "select E'a'\n '\\'; listen a'", usual],
  ['a block comment between two strings', "select 'a' /*\n*/ '\\', 1", usual],
  ['a letter that belongs to a name', "select ae'\\', 1", usual],
  ['a dollar in a name', 'select a$a$ , $a$ from t; select 1 $a$', usual],
  ['a comment in an operator', 'select 2 +/* ; listen a */ 1 *-- ; listen a\n 2', usual],
  ['a bit string', "select B'0''; listen a'", usual],
])('strings and encodings: The tokenizer ends a string where the server does: %s', (_what, text, lexical) => {
  expect(leaves(text, lexical)).toBe('nothing');
});

const character = (...bytes: number[]): string => Buffer.from(bytes).toString('latin1');
const inEncoding = (clientEncoding: string, text: string, standardConformingStrings = false): string =>
  leaves(Buffer.from(text, 'latin1'), { clientEncoding, standardConformingStrings, areSure: true });

test.each([
  ['SJIS', character(0x95, 0x5c)],
  ['SHIFT_JIS_2004', character(0x95, 0x5c)],
  ['BIG5', character(0xb3, 0x5c)],
  ['GBK', character(0x81, 0x5c)],
  ['UHC', character(0x81, 0x5c)],
  ['GB18030', character(0x81, 0x5c)],
  ['GB18030', character(0x81, 0x30, 0x81, 0x30)],
  ['SJIS', character(0xb1)],
])('strings and encodings: A backslash in %s may be the second byte of a character', (encoding, letter) => {
  expect(inEncoding(encoding, `select '${letter}', 1`)).toBe('nothing');
  expect(inEncoding(encoding, `select '${letter}'; listen a --'`)).toBe('unclear');
  expect(inEncoding(encoding, `select '${letter}\\'; listen a'`)).toBe('nothing');
});

test('strings and encodings: A character of SHIFT_JIS_2004 that becomes a backslash is unclear', () => {
  expect(inEncoding('SHIFT_JIS_2004', `select '${character(0x81, 0x5f)}'`)).toBe('unclear');
});

test.each(['JOHAB', 'MULE_INTERNAL', 'KLINGON'])(
  'strings and encodings: All beyond ASCII is unclear in %s',
  (encoding) => {
    expect(inEncoding(encoding, "select '\\\\'")).toBe('nothing');
    expect(inEncoding(encoding, `select '${character(0xe4)}'`)).toBe('unclear');
  },
);

test('strings and encodings: A character that is cut off is unclear', () => {
  expect(inEncoding('GBK', `select ${character(0x81)}`)).toBe('unclear');
  expect(inEncoding('GB18030', `select ${character(0x81, 0x30, 0x81)}`)).toBe('unclear');
});

test.each<[string, Partial<TextEffects>]>([
  ['select 1', { mayChangeSchema: false, mayDiscard: false, touchesTransaction: false, statementCount: 1 }],
  ['select 1;; begin;', { touchesTransaction: true, statementCount: 2, mayChangeSchema: false }],
  ['select begin, release from t', { touchesTransaction: false }],
  ['do $$ $$', { touchesTransaction: true, mayChangeSchema: true }],
  ["commit prepared 'x'", { touchesTransaction: true, mayChangeSchema: true }],
  ['create table t (a int)', { mayChangeSchema: true, statementCount: 1 }],
  ['select 1 into t', { mayChangeSchema: true }],
  ['listen a; unlisten b; prepare a as select 1', { mayChangeSchema: false, statementCount: 3 }],
  ['execute a', { mayChangeSchema: true }],
  ["select set_config('a.b', 'c', false) from pg_settings", { mayChangeSchema: false }],
  ["select query_to_xml('')", { mayChangeSchema: true }],
  ['set a.b = 1', { mayDiscard: false, mayChangeSchema: false }],
  ['set a.b to default', { mayDiscard: true }],
  ['set role none', { mayDiscard: true }],
  ['set time zone local', { mayDiscard: true }],
  ['set local a.b = 1', { mayDiscard: false }],
  ['select 1; reset all', { mayDiscard: true }],
  ['deallocate a', { mayDiscard: true }],
  ["load 'auto_explain'", { mayLeaveHidden: true }],
  ['select setseed(0.5)', { mayLeaveHidden: true, mayChangeSchema: false }],
  ['set local seed = 0.5', { mayLeaveHidden: true }],
  ["select dblink_connect('a')", { mayLeaveHidden: true }],
  ["select pg_replication_origin_session_setup('a')", { mayLeaveHidden: true }],
  ["select 'setseed(", { mayLeaveHidden: true }],
  ["select 'a", { mayLeaveHidden: false }],
  ['select pg_advisory_lock(1)', { mayLeaveHidden: false }],
  ["select 'Discard", { mayDiscard: true, mayChangeSchema: true, statementCount: 0 }],
  ["select 'open", { mayDiscard: false, mayChangeSchema: true }],
  [
    'create function f() returns int begin atomic; select 1; end',
    { statementCount: 0, mayChangeSchema: true },
  ],
  ['create rule r as on insert to t do (select 1; select 2)', { statementCount: 0 }],
])('other effects: The effects of a text are known: %s', (text, known) => {
  expect(effectsOf(text)).toMatchObject(known);
});

const words =
  'select insert update delete values with into merge temp hold begin set listen set_config pg_advisory_lock pg_settings ' +
  `lastval pg_unknown "set_config" "pg_unknown" "a" t x1 $1 1 1.5 1a 'text' 'it''s' E'\\\\' $$ $a$ -- /* */ ; ( ) , . :: - / * & ` +
  `U& U&' U&" u&"a" B' N' " ' \\ \n { } as`;
const token = fc.constantFrom(
  ' ',
  ' ',
  ...words.split(/ (?! )/),
  '\0',
  '\x01',
  'ä',
  '\x81',
  '\xdd',
  '_',
  '5',
  '[',
);
const settings = [
  'UTF8',
  'LATIN5',
  'SJIS',
  'SHIFT_JIS_2004',
  'BIG5',
  'GBK',
  'GB18030',
  'JOHAB',
  'NONE',
].flatMap((clientEncoding) =>
  [true, false].flatMap((standardConformingStrings) =>
    [true, false].map((areSure) => ({ clientEncoding, standardConformingStrings, areSure })),
  ),
);

test('plain statements: A name with a doubled quote in it is not plain, since only a part of it would be looked up', () => {
  const bytes = Buffer.from('select "pg_unknown""a"(1)', 'latin1');
  expect(isPlainStatement(bytes, 0, bytes.length, true)).toBe(false);
});

test('plain statements: A plain statement leaves nothing under every lexical setting', () => {
  let plain = 0;
  fc.assert(
    fc.property(
      fc.constantFrom('select', 'with', 'with x as (', 'insert into t', 'values', 'select (', ''),
      fc.array(token, { maxLength: 8 }),
      fc.constantFrom('', ' '),
      (opening, rest, between) => {
        const bytes = Buffer.from(`;${opening} ${rest.join(between)}'`, 'latin1');
        for (const lexical of settings) {
          if (!isPlainStatement(bytes, 1, bytes.length - 1, isAsciiSafe(lexical))) continue;
          plain++;
          expect(readTextEffects(bytes, 1, bytes.length - 1, lexical)).toMatchObject({
            leaves: 'nothing',
            mayChangeSchema: false,
            mayDiscard: false,
            touchesTransaction: false,
            statementCount: 1,
          });
        }
      },
    ),
    { numRuns: 8_000 },
  );
  expect(plain).toBeGreaterThan(5_000);
});
