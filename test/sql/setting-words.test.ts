import { expect, test } from 'vitest';
import { readSettingWords } from '../../src/sql/setting-words.js';

const lexical = { clientEncoding: 'UTF8', standardConformingStrings: true, areSure: true };

function read(text: string): unknown[] | undefined {
  const bytes = Buffer.from(text);
  return readSettingWords(bytes, 0, bytes.length, lexical)?.map(({ words }) => words);
}

const set = (name: string, value: string | undefined, isLocal = false) => ({
  kind: 'set',
  name,
  value,
  isLocal,
});

test.each([
  ['SET statement_timeout = 5000', set('statement_timeout', '5000')],
  ["set Session Statement_Timeout to '5s';", set('statement_timeout', '5s')],
  ['SET LOCAL lock_timeout TO -1', set('lock_timeout', '-1', true)],
  ['/* a */ SET -- b\n client_min_messages TO Warning ;;', set('client_min_messages', 'warning')],
  ['SET statement_timeout TO DEFAULT', set('statement_timeout', undefined)],
  ["SET statement_timeout TO 'default'", set('statement_timeout', 'default')],
  ["SET \"Statement_Timeout\" = 'it''s'", set('statement_timeout', "it's")],
  ['SET search_path = \'a\', b, "C"', set('search_path', 'a, b, c')],
  ["SET TIME ZONE 'UTC'", set('timezone', 'UTC')],
  ["SET NAMES 'utf8'", set('client_encoding', 'utf8')],
  ["SET my.own = 'x'", set('my.own', 'x')],
  ['RESET statement_timeout', { kind: 'reset', name: 'statement_timeout' }],
  ['RESET ALL', { kind: 'resetAll' }],
  ['SHOW statement_timeout', { kind: 'show', name: 'statement_timeout' }],
  ['SHOW TIME ZONE', { kind: 'show', name: 'timezone' }],
  ["SET ROLE 'admin'", { kind: 'role', role: 'admin', isLocal: false }],
  ['SET LOCAL ROLE admin', { kind: 'role', role: 'admin', isLocal: true }],
  ['SET ROLE NONE', { kind: 'role', role: undefined, isLocal: false }],
  ['RESET ROLE', { kind: 'role', role: undefined, isLocal: false }],
  [
    "SELECT pg_catalog.set_config('search_path', '', false)",
    { kind: 'setConfig', name: 'search_path', value: '', isLocal: false },
  ],
  [
    "SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'",
    { kind: 'setConfig', name: 'bytea_output', value: 'hex', isLocal: false },
  ],
  ['LOCK TABLE public.a, ONLY "B c".d * IN ACCESS SHARE MODE', { kind: 'lock' }],
  [
    'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY',
    {
      kind: 'transaction',
      isSession: false,
      isolation: 'repeatable read',
      isReadOnly: true,
      isDeferrable: undefined,
    },
  ],
  [
    'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE NOT DEFERRABLE',
    { kind: 'transaction', isSession: true, isolation: undefined, isReadOnly: false, isDeferrable: false },
  ],
])('statements about settings are read from their tokens %s', (text, expected) => {
  expect(read(text)).toEqual([expected]);
});

test('statements about settings are read from their tokens several statements of one text are read one by one', () => {
  expect(read('SET a = 1; SHOW b;\nRESET c; ')).toEqual([
    set('a', '1'),
    { kind: 'show', name: 'b' },
    { kind: 'reset', name: 'c' },
  ]);
});

test.each([
  'SELECT 1',
  'SET statement_timeout = 5000; SELECT 1',
  "SET statement_timeout = E'5\\x73'",
  "SET statement_timeout = U&'5'",
  'SET statement_timeout = $$5s$$',
  "SET statement_timeout = '5' 's'",
  'SET statement_timeout = 5 s',
  'SET statement_timeout',
  "SET statement_timeout = '5s",
  'SET CONSTRAINTS ALL DEFERRED',
  'SET SESSION AUTHORIZATION x',
  "SELECT set_config('statement_timeout', $2, false)",
  "SELECT set_config('statement_timeout', '1', false), 2",
  "SELECT set_config('statement_timeout', '1', false) FROM pg_settings WHERE name = 'other'",
  "SELECT set_config('statement_timeout', '1', false) FROM users",
  'SHOW ALL',
  'LOCK TABLE a IN EXCLUSIVE MODE',
  'LOCK TABLE a',
  "SET TRANSACTION SNAPSHOT '1'",
  "SET statement_timeout = '5ä'",
  '',
  ';',
])('whatever is not understood to its last token goes to the server %s', (text) => {
  expect(read(text)?.every((words) => words !== undefined)).not.toBe(true);
});

test('whatever is not understood to its last token goes to the server where strings may mean something else, nothing is read', () => {
  const bytes = Buffer.from("SET statement_timeout = '5s'");
  const unsure = { ...lexical, areSure: false };
  expect(readSettingWords(bytes, 0, bytes.length, unsure)).toBeUndefined();
  const escaping = { ...lexical, standardConformingStrings: false };
  expect(readSettingWords(bytes, 0, bytes.length, escaping)).toBeUndefined();
});
