// Every reader of text that comes from the network, on texts of n and of 4n characters: the work may grow with the length, and not with its
// square. Processor time is compared, the least of several runs, so that a busy machine makes no difference.
import { describe, expect, test } from 'vitest';
import { parseIpAddress } from '../../src/net/ip-address.js';
import { isKnownHost } from '../../src/net/known-host.js';
import { preparePassword } from '../../src/pooler/auth/saslprep.js';
import {
  readClientFinal,
  readClientFirst,
  readServerFinal,
  readServerFirst,
} from '../../src/pooler/auth/scram-messages.js';
import { parseStartupOptions } from '../../src/pooler/clients/login/startup-options.js';
import { deallocatedName } from '../../src/pooler/clients/relay/deallocate.js';
import { parseCommands } from '../../src/pooler/console/command-parser.js';
import { LiteralSettings } from '../../src/pooler/settings/literal-settings.js';
import { refusedSettings } from '../../src/pooler/settings/refused-settings.js';
import { isNameList, quotedName, SettingsRegistry } from '../../src/pooler/settings/settings.js';
import { readMilliseconds } from '../../src/pooler/settings/time-value.js';
import { isLastingText } from '../../src/sql/lasting-text.js';
import { isPlainStatement } from '../../src/sql/plain-statement.js';
import { literal } from '../../src/sql/quote.js';
import { readSettingChange, readTransactionChange } from '../../src/sql/setting-change.js';
import { readSettingWords } from '../../src/sql/setting-words.js';
import { statementsOf } from '../../src/sql/several-statements.js';
import { statementKind } from '../../src/sql/statement-kind.js';
import { readTextEffects } from '../../src/sql/text-effects.js';
import { pinReasonOf } from '../../src/sql/text-pin-reason.js';
import { transactionWordOf } from '../../src/sql/transaction-words.js';
import { decodeUnicodeName } from '../../src/sql/unicode-name.js';

const { none } = new SettingsRegistry();
const then = new LiteralSettings(new Map([['TimeZone', 'UTC']]), none);
const now = new LiteralSettings(new Map([['TimeZone', 'Asia/Tokyo']]), none);
const lexical = { clientEncoding: 'UTF8', standardConformingStrings: true, areSure: true };
const inBytes =
  (read: (bytes: Buffer) => unknown) =>
  (text: string): unknown =>
    read(Buffer.from(text));
const effectsOf = inBytes((bytes) => readTextEffects(bytes, 0, bytes.length, lexical)) as (
  text: string,
) => ReturnType<typeof readTextEffects>;
const clearEffects = effectsOf('do');

/** By the name of what it reads. */
const readers: Readonly<Record<string, (text: string) => unknown>> = {
  'what a text leaves': effectsOf,
  'what a text leaves, where escapes are not known': inBytes((bytes) =>
    readTextEffects(bytes, 0, bytes.length, { ...lexical, clientEncoding: 'SJIS', areSure: false }),
  ),
  'why a client is pinned': (text) => pinReasonOf(text, clearEffects),
  'what is set': readSettingChange,
  'what ends a transaction': readTransactionChange,
  'what a transaction word is': inBytes((bytes) => transactionWordOf(bytes, 0, bytes.length)),
  'what is plain': inBytes((bytes) => isPlainStatement(bytes, 0, bytes.length, true)),
  'what kind a statement is': statementKind,
  'what lasts': isLastingText,
  'several statements': statementsOf,
  'settings before Aurora DSQL': inBytes((bytes) => readSettingWords(bytes, 0, bytes.length, lexical)),
  'how literals were read': (text) => then.valuesFor(text, now),
  'what is deallocated': inBytes((source) =>
    deallocatedName({ source, textStart: 0, textEnd: source.length }),
  ),
  'names in Unicode': decodeUnicodeName,
  'a list of names': isNameList,
  'a literal': literal,
  'a quoted name': quotedName,
  'a time': (text) => readMilliseconds('statement_timeout', text),
  'refused settings': (text) => [...refusedSettings.values()].map((setting) => setting.read(text)),
  'options of a startup packet': parseStartupOptions,
  'commands of the console': parseCommands,
  'the header Host': (text) => isKnownHost(text, ['*.example.com']),
  'an address': parseIpAddress,
  'a password': preparePassword,
  'the first SCRAM message of a client': inBytes(readClientFirst),
  'the last SCRAM message of a client': inBytes(readClientFinal),
  'the first SCRAM message of a server': inBytes(readServerFirst),
  'the last SCRAM message of a server': inBytes(readServerFinal),
};

const beginnings = [
  ['', "'", '"', 'SET ', 'SET a = ', 'SET a TO ', "SET a = '", 'SET SESSION CHARACTERISTICS AS TRANSACTION '],
  [
    'SET TRANSACTION ',
    'SET LOCAL a = ',
    'RESET ',
    'COMMIT ',
    'DEALLOCATE ',
    "select '",
    'select (',
    'n,,n=,r=',
  ],
].flat();
const units = [
  [' ', 'a', '1', '.', ',', ';', "'", '"', '""', "''", '(', '\\', '$', '/*', '--', '\n', '-c ', '=', 'a, '],
  ['a.', ' ;', "'a' ", 'now ', 'SET ', 'U&"', '\\+', 'E', 'r=', '[:'],
].flat();
const ends = ['', '\n!'];

/** Four times the text may take four times as long, and some more; with its square it would be sixteen times. */
const mostGrowth = 10;
const shortText = 1_000;
/** What takes less than this, in microseconds, is of no concern, however it grows. */
const leastMicros = 4_000;
const tries = 6;

function micros(read: (text: string) => unknown, text: string): number {
  const before = process.cpuUsage();
  try {
    read(text);
  } catch {
    // Most of these are no text of the kind.
  }
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Undefined where the work grows with the length. */
function complaint(read: (text: string) => unknown, shape: (length: number) => string): string | undefined {
  const long = shape(4 * shortText);
  let [leastShort, leastLong] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let n = 0; n < tries; n++) {
    leastLong = Math.min(leastLong, micros(read, long));
    if (leastLong < leastMicros) return undefined;
    leastShort = Math.min(leastShort, micros(read, shape(shortText)));
    if (leastLong < mostGrowth * leastShort) return undefined;
  }
  return `${leastShort} and ${leastLong} microseconds for ${JSON.stringify(long.slice(0, 60))}`;
}

describe.each(Object.keys(readers))('The time for reading %s', (name) => {
  const read = readers[name] as (text: string) => unknown;
  test('grows no faster than the text', () => {
    for (const beginning of beginnings)
      for (const unit of units)
        for (const end of ends) {
          const shape = (length: number): string =>
            beginning + unit.repeat(Math.floor(length / unit.length)) + end;
          expect(complaint(read, shape)).toBeUndefined();
        }
  });
});

test('a reader whose work grows with the square of the length would be seen', () => {
  const slow = (text: string): boolean => /^a*a*!/.test(text);
  expect(complaint(slow, (length) => 'a'.repeat(length))).toMatch(/microseconds/);
});
