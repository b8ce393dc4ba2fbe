import { describe, expect, test } from 'vitest';
import { isLastingText } from '../../src/sql/lasting-text.js';

describe('a text that means the same whenever it is parsed', () => {
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
  ])('%s', (text) => expect(isLastingText(text)).toBe(true));

  test.each([
    "select 'now'::timestamptz",
    "select * from visits where at > 'today'",
    "select timestamp 'Yesterday 04:05'",
    "select date 'tomorrow', 1",
    "select '04:05 today'::timestamp",
    "select 'today04:05'::timestamp",
    "select 'no'\n'w'::timestamptz",
    "select 'int4'::regtype",
    "select 'f(int)'::REGPROCEDURE",
    "select cast('english' as regconfig)",
  ])('not so: %s', (text) => expect(isLastingText(text)).toBe(false));
});
