// Whatever a client sends is read in a time that grows with its length, and not with the square of it: all others wait meanwhile.
import { describe, expect, test } from 'vitest';
import { pinReasonOf, pinReasonOfUnread } from '../../../src/pooler/session/pin-reason.js';
import { Reading } from '../../../src/pooler/session/reading.js';
import { readSettingChange, readTransactionChange } from '../../../src/pooler/session/setting-change.js';
import { SettingsRegistry } from '../../../src/pooler/settings.js';

const { none } = new SettingsRegistry();
const then = new Reading(new Map([['TimeZone', 'UTC']]), none);
const now = new Reading(new Map([['TimeZone', 'Asia/Tokyo']]), none);

/** Of a text that is read as a whole, alone and to be prepared. The latter may be three times as long. */
const [alone, prepared] = [65_536, 300_000];
const readers: readonly (readonly [string, number, (text: string) => unknown])[] = [
  ['why a client keeps its server', alone, pinReasonOf],
  ['the same where a text is not understood', prepared, pinReasonOfUnread],
  ['what is set', alone, readSettingChange],
  ['what ends', alone, readTransactionChange],
  ['how it was read', prepared, (text) => then.valuesFor(text, now)],
];
const repeated = [
  ['/*', '*/', '/**/', '--', '-- \n', ';', ' ', '\n', '(', "'", "''", '"', '$', '$a$', 'a', '-', '/', '*'],
  [
    "set_config('",
    "set_config('a','",
    'TEMP ',
    'DISCARD TEMP ',
    'DO ',
    'DO LANGUAGE ',
    'CREATE ',
    'pg_create_',
  ],
  ["';", 'SET ', "SET a = 'x', ", 'BEGIN ', 'ON COMMIT ', 'COMMIT AND ', 'PREPARE '],
].flat();

// With a square in it, a single one of these takes longer than a test may.
describe.each(['', 'select ', 'set ', 'do $$ ', 'rollback '])('a text that begins with %j', (beginning) => {
  test.each(readers)('comes to its end: %s', (_what, length, read) => {
    for (const unit of repeated) {
      const text = `${beginning}${unit.repeat(length / unit.length)} x`;
      expect(() => read(text)).not.toThrow();
    }
  });
});

test('a statement is found in whatever line it begins', () => {
  const lines = (statement: string): string => `select 1;${'\n'.repeat(1_000)} \t${statement}`;
  expect(pinReasonOf(lines('prepare p as select 1'))).toBe('prepare in sql');
  expect(pinReasonOf(lines("load 'plpgsql'"))).toBe('library loaded');
  expect(pinReasonOf(lines("prepare transaction 'p'"))).toBeUndefined();
});
