// Whatever a client sends is read in a time that grows with its length, and not with the square of it: all others wait meanwhile.
import { describe, expect, test } from 'vitest';
import { LiteralSettings } from '../../../src/pooler/settings/literal-settings.js';
import { SettingsRegistry } from '../../../src/pooler/settings/settings.js';
import { readSettingChange, readTransactionChange } from '../../../src/sql/setting-change.js';
import { readTextEffects, type TextEffects } from '../../../src/sql/text-effects.js';
import { pinReasonOf } from '../../../src/sql/text-pin-reason.js';

const { none } = new SettingsRegistry();
const then = new LiteralSettings(new Map([['TimeZone', 'UTC']]), none);
const now = new LiteralSettings(new Map([['TimeZone', 'Asia/Tokyo']]), none);

/** Of a text that is read as a whole, alone and to be prepared. */
const [alone, prepared] = [262_144, 1_000_000];
const readers: readonly (readonly [string, number, (text: string) => unknown])[] = [
  ['why a client keeps its server', prepared, (text) => pinReasonOf(text, effectsOf('do'))],
  ['what is left', prepared, effectsOf],
  ['what is set', alone, readSettingChange],
  ['what ends', alone, readTransactionChange],
  ['how it was read', prepared, (text) => then.valuesFor(text, now)],
];
function effectsOf(text: string): TextEffects {
  const source = Buffer.from(text);
  const lexical = { clientEncoding: 'UTF8', standardConformingStrings: true, areSure: true };
  return readTextEffects(source, 0, source.length, lexical);
}

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

/** So much of a text that sets something is followed. */
const followed = 8_192;
const settings = [
  [
    'SET ',
    'SET SESSION ',
    'SET a',
    'SET a = ',
    'SET a TO ',
    "SET a = 'x'",
    'SET TIME ZONE ',
    'SET SESSION AUTHORIZATION ',
  ],
  [
    'SET SESSION CHARACTERISTICS AS TRANSACTION ',
    'SET SESSION CHARACTERISTICS AS',
    'SET TRANSACTION ',
    'SET LOCAL ',
  ],
  ['SET LOCAL a = ', 'RESET ', 'RESET SESSION ', 'COMMIT ', 'ROLLBACK AND ', 'SET CONSTRAINTS '],
].flat();

const fillings = [' ', 'a '];
/** As many as a client sends in a moment. Texts of which one took half a second are not done before the test's time is up. */
const inARow = 60;

test.each(settings)('texts that are followed, and begin with %j, come to their end', (beginning) => {
  for (const unit of fillings) {
    const times = Math.floor((followed - beginning.length - 1) / unit.length);
    const text = `${beginning}${unit.repeat(times)}!`;
    for (let n = 0; n < inARow; n++) {
      readSettingChange(text);
      readTransactionChange(text);
    }
  }
  expect(readSettingChange('SET a = 1')?.changes.get('a')).toBe('SET a = 1');
});

// With a square in it, a single one of these takes longer than a test may.
describe.each(['', 'select ', 'set ', 'do $$ ', 'rollback '])('a text that begins with %j', (beginning) => {
  test.each(readers)('comes to its end: %s', (_what, length, read) => {
    for (const unit of repeated) {
      const text = `${beginning}${unit.repeat(length / unit.length)} x`;
      expect(() => read(text)).not.toThrow();
    }
  });
});
