import { expect, test } from 'vitest';
import { isLastingText } from '../../src/sql/lasting-text.js';

test.each([
  'select 1',
  'select * from accounts where id = $1',
  "select * from accounts where status = 'active' and id = $1",
  "select 'it''s ' || name from accounts",
  'select now()',
  "select now() - interval '1 day', 'x'",
  "select NOW () , 'x'",
  "select 'unknown', known_at, snow from knowledge",
  "select nextval('numbers'), 'accounts'::regclass",
  "select regular, 'x' from registers",
  'select today from diary',
  "select today, tomorrow from diary where name = 'x'",
])('a text that means the same whenever it is parsed %s', (text) => expect(isLastingText(text)).toBe(true));

test.each([
  "select 'now'::timestamptz",
  "select * from visits where at > 'today'",
  "select timestamp 'Yesterday 04:05'",
  "select date 'tomorrow', 1",
  "insert into visits (at) values ('now()')",
  "select 'NOW ( )'::timestamptz, now()",
  "select '04:05 today'::timestamp",
  "select 'today04:05'::timestamp",
  "select 'no'\n'w'::timestamptz",
  "select 'int4'::regtype",
  "select 'f(int)'::REGPROCEDURE",
  "select cast('english' as regconfig)",
])('a text that means the same whenever it is parsed not so: %s', (text) =>
  expect(isLastingText(text)).toBe(false),
);
