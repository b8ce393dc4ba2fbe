/** Which texts need no closer look, judged by their bytes; checked by tables and against the closer look itself. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isPlainStatement } from '../../src/sql/plain-statement.js';
import { statementKind } from '../../src/sql/statement-kind.js';

/** In the middle of other bytes, which must not matter. */
function isPlain(text: string): boolean {
  const bytes = Buffer.from(`set x;${text};begin`, 'latin1');
  return isPlainStatement(bytes, 6, bytes.length - 6);
}

function all(isWanted: boolean, texts: readonly string[]): void {
  expect(texts.filter((text) => isPlain(text) !== isWanted)).toEqual([]);
}

test('a statement is plain when it reads or writes rows and names nothing of the session', () => {
  all(true, [
    'SELECT abalance FROM pgbench_accounts WHERE aid = 17;',
    '  \t\nselect 1',
    'select 1 ; ; \n',
    'insert into t (a, b) values ($1, $2) returning id',
    'Update t set a = a + 1.5 where b <> 2',
    'delete from t',
    'values (1), (2)',
    'with x as (select 1) select * from x',
    'select a - 1, b / 2, c * 3 from "Mixed Case" where d = any($1)',
    "select 'it''s; begin -- /* set_config('",
    'select "a;b", "--"',
    'select n.contact, last_name, position, settings, current_date, local_time, template from n',
    'select pg_relation_size(1), pg_try_advisory_xact_lock(1)',
  ]);
});

test('a statement is plain and not when it may do something to the session or to a transaction', () => {
  all(false, [
    'begin',
    'commit',
    'set x = 1',
    'reset all',
    'listen c',
    'discard all',
    'select 1; begin',
    "select set_config('a', 'b', false)",
    "select SET_CONFIG('a', 'b', false)",
    'select "set_config"(1)',
    'select pg_advisory_lock(1)',
    'select 1 into temp t',
    'select 1 into temporary t',
    'select 1 into local temp t',
    'select * from pg_temp.t',
    'select lastval()',
    'create temp table t ()',
  ]);
});

test('a statement is plain and not when it takes a closer look to tell', () => {
  all(false, [
    '',
    ';',
    'selects 1',
    'select1',
    '(select 1)',
    'select 1 -- and more',
    'select 1 /* and more */',
    'select $$ text $$',
    "select E'\\'",
    "select 'open",
    'select "open',
    'select U&"d\\0061t"',
    'select 1e5',
    'select 1a',
    'select $1a',
    'select 1 \\ 2',
    'select \0',
  ]);
});

test('a statement is plain only if the closer look finds neither a session nor a transaction in it', () => {
  const words =
    'select insert update delete values with into temp temporary local begin commit set listen set_config pg_advisory_lock ' +
    "currval \"set_config\" \"a\" t x1 $1 1 1.5 'text' 'it''s' E'\\\\' $$ $a$ -- /* */ ; ( ) , . :: - / * & U& \" ' \\ \n";
  const token = fc.constantFrom(' ', ...words.split(/ (?! )/), '\0', 'ä');
  fc.assert(
    fc.property(
      fc.constantFrom('select', 'with', 'insert into', 'values', ''),
      fc.array(token),
      (opening, rest) => {
        for (const text of [`${opening} ${rest.join(' ')}`, `${opening} ${rest.join('')}`]) {
          if (isPlain(text)) expect(['session', 'transaction']).not.toContain(statementKind(text));
        }
      },
    ),
    { numRuns: 20_000 },
  );
});
