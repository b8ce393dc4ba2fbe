import { expect, test } from 'vitest';
import { isPlainStatement } from '../../src/sql/plain-statement.js';
import { readStatement } from '../../src/sql/read-statement.js';

/** The reader is asked about plain statements only. */
function isPlain(text: string): boolean {
  const bytes = Buffer.from(text);
  return isPlainStatement(bytes, 0, bytes.length, true);
}

function read(text: string): { isRead: boolean; fingerprint: number } {
  const bytes = Buffer.from(text);
  return { ...readStatement(bytes, 0, bytes.length) };
}

test.each([
  'select 1',
  'SELECT abalance FROM pgbench_accounts WHERE aid = 4711;',
  'values (1), (2)',
  'with a as (select 1) select * from a',
  'with recursive a as materialized (select 1) select * from a where exists (select 2) and a in (1, 2)',
  "select count(*), max( x ), coalesce(a, 'b') from t group by (a, b) having sum(c) > (1)",
  'select row_number() over (partition by a order by b), cast(a as numeric(10, 2)) from t',
  'select \'insert into x\', "for" from t',
  'select now(), extract(year from d), upper(lower(n)) from t limit (2)',
  'select a.b, c.* from a join c on (a.x = c.y) left join lateral (select 1) d on true',
  'select gen_random_uuid()',
  'select $1::int + 1 from "Table" where "from" = $2',
])('readStatement calls a read %s', (text) => {
  expect(isPlain(text)).toBe(true);
  expect(read(text).isRead).toBe(true);
});

test.each([
  'insert into t values (1)',
  'update t set a = 1',
  'delete from t',
  'with a as (delete from t returning *) select * from a',
  'with a as (insert into t values (1) returning *) select * from a',
  'with a as (update t set x = 1 returning *) select * from a',
  'select * from t for update',
  'select * from t FOR SHARE skip locked',
  'select * from t for no key update',
  "select nextval('s')",
  "select setval('s', 1)",
  "select currval('s')",
  'select lastval()',
  'select pg_sleep(1)',
  'select pg_advisory_xact_lock(1)',
  'select pg_notify($1, $2)',
  'select lo_create(1)',
  'select my_function(1)',
  'select public.count(1)',
  'select public . count(1)',
  'select "count"(1)',
  'select "MyFunction" (1)',
  'select größe(1)',
  'select * from my_rows (1)',
  'select txid_current()',
  'select pg_backend_pid()',
  'with t(a) as (select 1) select * from t',
])('readStatement does not call a read %s', (text) => {
  expect(isPlain(text) && read(text).isRead).toBe(false);
});

test('the fingerprint of a statement is the same for texts that differ in literals, case and space', () => {
  const { fingerprint } = read("select a from t where b = 1 and c = 'x'");
  expect(read("SELECT a  FROM t\nWHERE b = 4711 AND c = 'something else'").fingerprint).toBe(fingerprint);
});

test.each(['select b from t where b = 1', 'select a from u where b = 1', 'select a from t where b > 1'])(
  'the fingerprint of a statement is another one for %s',
  (text) => {
    expect(read(text).fingerprint).not.toBe(read('select a from t where b = 1').fingerprint);
  },
);
