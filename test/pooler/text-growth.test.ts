// Every reader of text that comes from the network, on longer and longer texts, up to the longest that the pooler gives it: the work may grow
// with the length, and not with its square. HEADGATE_SEED=<seed> makes the same texts again.
import { describe, expect, test } from 'vitest';
import { createDialect } from '../../src/dialect/dialect.js';
import { readStartup } from '../../src/dsql-local/front/startup.js';
import { readToken } from '../../src/dsql-local/identity/token-parts.js';
import { parseIpAddress } from '../../src/net/ip-address.js';
import { isKnownHost } from '../../src/net/known-host.js';
import { errorFields } from '../../src/observe/error-text.js';
import { type HbaRules, parseHba } from '../../src/pooler/auth/hba.js';
import { type IdentMaps, parseIdentMaps } from '../../src/pooler/auth/ident-map.js';
import { preparePassword } from '../../src/pooler/auth/saslprep.js';
import {
  readClientFinal,
  readClientFirst,
  readServerFinal,
  readServerFirst,
} from '../../src/pooler/auth/scram-messages.js';
import { parseSecret } from '../../src/pooler/auth/secret.js';
import { parseStartupOptions } from '../../src/pooler/clients/login/startup-options.js';
import { deallocatedName } from '../../src/pooler/clients/relay/deallocate.js';
import { RunningQuery } from '../../src/pooler/clients/relay/running-query.js';
import { Swallower, Where } from '../../src/pooler/clients/relay/swallower.js';
import { TextReader } from '../../src/pooler/clients/relay/text-reader.js';
import { parseConnection } from '../../src/pooler/config/connection-string.js';
import { parseCommands } from '../../src/pooler/console/command-parser.js';
import { PoolQueries, QueryBook } from '../../src/pooler/servers/query-stats.js';
import { KeptSettings } from '../../src/pooler/settings/kept-settings.js';
import { LiteralSettings } from '../../src/pooler/settings/literal-settings.js';
import { refusedSettings } from '../../src/pooler/settings/refused-settings.js';
import { isNameList, quotedName, SettingsRegistry } from '../../src/pooler/settings/settings.js';
import { readMilliseconds } from '../../src/pooler/settings/time-value.js';
import { canonicalText } from '../../src/sql/canonical-text.js';
import { isLastingText } from '../../src/sql/lasting-text.js';
import { normalizedText } from '../../src/sql/normalized-text.js';
import { isPlainStatement } from '../../src/sql/plain-statement.js';
import { literal } from '../../src/sql/quote.js';
import { readStatement } from '../../src/sql/read-statement.js';
import { readSettingChange, readTransactionChange } from '../../src/sql/setting-change.js';
import { readSettingWords } from '../../src/sql/setting-words.js';
import { statementsOf } from '../../src/sql/several-statements.js';
import { statementKind } from '../../src/sql/statement-kind.js';
import { readTextEffects } from '../../src/sql/text-effects.js';
import { textFingerprint } from '../../src/sql/text-fingerprint.js';
import { TextPattern } from '../../src/sql/text-pattern.js';
import { pinReasonOf } from '../../src/sql/text-pin-reason.js';
import { beginTagOf, transactionWordOf } from '../../src/sql/transaction-words.js';
import { decodeUnicodeName } from '../../src/sql/unicode-name.js';
import { readErrorFields } from '../../src/wire/error-fields.js';
import { readStartupPacket } from '../../src/wire/startup-packet.js';
import { seededRandom } from '../support/seeded-random.js';
import { complaint, type Reader, randomShape, type Shape, usualShapes } from '../support/text-growth.js';

const random = seededRandom();
const { none } = new SettingsRegistry();
const then = new LiteralSettings(new Map([['TimeZone', 'UTC']]), none);
const now = new LiteralSettings(new Map([['TimeZone', 'Asia/Tokyo']]), none);
const lexical = { clientEncoding: 'UTF8', standardConformingStrings: true, areSure: true };
const told = new Map([
  ['client_encoding', 'UTF8'],
  ['standard_conforming_strings', 'on'],
]);
const inBytes =
  (read: (bytes: Buffer) => unknown): Reader =>
  (text) =>
    read(Buffer.from(text));
const effectsOf = (text: string, reading = lexical): ReturnType<typeof readTextEffects> =>
  readTextEffects(Buffer.from(text), 0, Buffer.byteLength(text), reading);
const clearEffects = effectsOf('do');
const queries = new PoolQueries(new QueryBook(100), 'db', 'me');
const running = new RunningQuery(queries);
const textReader = new TextReader();
const swallower = new Swallower({
  kept: new KeptSettings(new Map()),
  user: 'me',
  setReadOnly: () => {},
  swallowed: () => {},
});
const rules = parseHba('host "a" "b" 127.0.0.1/32 trust\nhost all all all reject\n').value as HbaRules;
const idents = parseIdentMaps('m /^([a-z]+)@example[.]com$ \\1\n').value as IdentMaps;
const dialect = await createDialect();

/** The longest text that the pooler gives a reader, in characters. */
const longest = {
  /** Without a name, a longer one is passed on and not read. */
  parse: 1_048_576,
  query: 262_144,
  /** `isFollowed()` and whoever is behind it. */
  followed: 8_192,
  startup: 10_000,
  console: 65_536,
  /** Of an HTTP request, by Node. */
  header: 16_384,
} as const;

let texts = 0;

/** By the name of what it reads. */
const readers: Readonly<Record<string, readonly [longest: number, read: Reader]>> = {
  'what a text leaves': [longest.parse, effectsOf],
  'what a text leaves, where escapes are not known': [
    longest.parse,
    (text) => effectsOf(text, { ...lexical, clientEncoding: 'SJIS', areSure: false }),
  ],
  'what a text leaves, in an encoding that hides bytes': [
    longest.parse,
    (text) => effectsOf(text, { ...lexical, clientEncoding: 'SJIS' }),
  ],
  'all of a text of a client': [
    longest.parse,
    inBytes((source) => textReader.read({ source, textStart: 0, textEnd: source.length }, told)),
  ],
  'why a client is pinned': [longest.parse, (text) => pinReasonOf(text, clearEffects)],
  'what is set': [longest.parse, readSettingChange],
  'what is set, as far as it is followed': [longest.followed, readSettingChange],
  'what ends a transaction': [longest.parse, readTransactionChange],
  'what is left of a text without comments': [longest.followed, canonicalText],
  'what a transaction word is': [
    longest.query,
    inBytes((bytes) => transactionWordOf(bytes, 0, bytes.length)),
  ],
  'what a transaction begins with': [longest.query, inBytes((bytes) => beginTagOf(bytes, 0, bytes.length))],
  'what is plain': [longest.parse, inBytes((bytes) => isPlainStatement(bytes, 0, bytes.length, true))],
  'what only reads': [longest.parse, inBytes((bytes) => readStatement(bytes, 0, bytes.length))],
  // Another text each time, since verdicts are kept.
  'what kind a statement is': [longest.query, (text) => statementKind(`${text}${texts++}`)],
  'what lasts': [longest.parse, isLastingText],
  'several statements': [longest.parse, statementsOf],
  'the fingerprint of a text': [longest.parse, inBytes((bytes) => textFingerprint(bytes, 0, bytes.length))],
  'a text without its constants': [longest.parse, inBytes((bytes) => normalizedText(bytes, 0, bytes.length))],
  'a text for statistics': [longest.parse, inBytes((bytes) => queries.ofText(bytes, 0, bytes.length))],
  'the pattern of a text': [longest.parse, inBytes((bytes) => TextPattern.of(bytes, 0, bytes.length))],
  'what has the pattern of another text': [
    longest.parse,
    inBytes((bytes) => {
      const beginning = bytes.subarray(0, 1_000);
      return TextPattern.of(beginning, 0, beginning.length)?.matches(bytes, 0, bytes.length);
    }),
  ],
  'settings before Aurora DSQL': [
    longest.parse,
    inBytes((bytes) => readSettingWords(bytes, 0, bytes.length, lexical)),
  ],
  'what is swallowed before Aurora DSQL': [
    longest.query,
    inBytes((bytes) => swallower.judge(bytes, 0, bytes.length, lexical, Where.outside)),
  ],
  'how literals were read': [longest.parse, (text) => then.valuesFor(text, now)],
  'what is deallocated': [
    longest.query,
    inBytes((source) => deallocatedName({ source, textStart: 0, textEnd: source.length })),
  ],
  'names in Unicode': [longest.parse, decodeUnicodeName],
  'a list of names': [longest.query, isNameList],
  'a literal': [longest.query, literal],
  'a quoted name': [longest.query, quotedName],
  'a time': [longest.query, (text) => readMilliseconds('statement_timeout', text)],
  'refused settings': [
    longest.query,
    (text) => [...refusedSettings.values()].map((setting) => setting.read(text)),
  ],
  'the tag of a command': [longest.query, inBytes((bytes) => readTag(bytes))],
  'an error of a server': [
    longest.query,
    (text) => {
      const bytes = Buffer.from(`E....SERROR\0M${text}\0\0`);
      bytes.writeInt32BE(bytes.length - 1, 1);
      return readErrorFields(bytes, 0, bytes.length);
    },
  ],
  'an error for the log': [longest.query, (text) => errorFields(new Error(text))],
  'a startup packet': [
    longest.startup,
    (text) => {
      const bytes = Buffer.from(`....\0\x03\0\0${text.replaceAll(' ', '\0')}\0\0`);
      bytes.writeInt32BE(bytes.length, 0);
      return readStartupPacket(bytes, 0, bytes.length);
    },
  ],
  'options of a startup packet': [longest.startup, parseStartupOptions],
  'a startup packet for the stand-in for Aurora DSQL': [
    longest.startup,
    (text) => {
      const parameters = new Map([
        ['user', 'admin'],
        ['options', text],
      ]);
      return readStartup(
        { kind: 'startup', major: 3, minor: 0, protocolOptions: new Map(), parameters },
        dialect,
      );
    },
  ],
  'a connection string': [longest.startup, parseConnection],
  'a token of IAM': [longest.console, readToken],
  'rules about a user and a database': [
    longest.startup,
    (name) => rules.find({ ...someone, user: name, database: name, address: name }),
  ],
  'a name in an ident map': [longest.startup, (name) => idents.allows('m', name, name)],
  'commands of the console': [longest.console, parseCommands],
  'the header Host': [longest.header, (text) => isKnownHost(text, ['*.example.com'])],
  'an address': [longest.header, parseIpAddress],
  'a password': [longest.console, preparePassword],
  'a secret of a server': [longest.query, parseSecret],
  'the first SCRAM message of a client': [longest.console, inBytes(readClientFirst)],
  'the last SCRAM message of a client': [longest.console, inBytes(readClientFinal)],
  'the first SCRAM message of a server': [longest.console, inBytes(readServerFirst)],
  'the last SCRAM message of a server': [longest.console, inBytes(readServerFinal)],
};

const someone = { isUnix: false, isEncrypted: false, isReplication: false };

function readTag(bytes: Buffer): void {
  running.asksText(Buffer.from('select 1'), 0, 8, false);
  running.tagCame(bytes, 0, bytes.length);
}

/** Texts of this length are of many shapes, those as long as the pooler reads them of a few. */
const usualLength = 8_192;
const [manyShapes, someShapes, fewShapes] = [60, 8, 2];

/** The first complaint. */
function findComplaint(read: Reader, shapes: Iterable<Shape>, most: number): string | undefined {
  for (const shape of shapes) {
    const found = complaint(read, shape, most);
    if (found !== undefined) return found;
  }
  return undefined;
}

function* randomShapes(count: number): Generator<Shape> {
  for (let n = 0; n < count; n++) yield randomShape(random);
}

describe.each(Object.entries(readers))('The work of reading %s', (_name, [most, read]) => {
  test(`the work of reading a text grows no faster than the text, whatever is repeated in it (HEADGATE_SEED=${random.seed})`, () => {
    const shapes = [...usualShapes(), ...randomShapes(manyShapes)];
    expect(findComplaint(read, shapes, Math.min(most, usualLength))).toBeUndefined();
  });

  test(`the work of reading a text grows no faster than the text up to its greatest length (HEADGATE_SEED=${random.seed})`, () => {
    const shapes = [...randomShapes(someShapes)];
    expect(findComplaint(read, shapes, Math.min(most, longest.query))).toBeUndefined();
    if (most > longest.query) expect(findComplaint(read, shapes.slice(0, fewShapes), most)).toBeUndefined();
  });
});

const slowReaders: readonly (readonly [name: string, unit: string, read: Reader])[] = [
  ['a pattern that backtracks', 'a', (text) => /^a*a*!/.test(text)],
  ['a pattern that is tried at every space', ' ', (text) => text.replace(/[\s;]+$/, '')],
  [
    'a quick search from every semicolon',
    'a;',
    (text) => {
      const bytes = Buffer.from(text);
      for (let at = bytes.indexOf(';'); at !== -1; at = bytes.indexOf(';', at + 1)) bytes.indexOf(0, at);
    },
  ],
  [
    'a list that is copied for each of its items',
    'a, ',
    (text) => {
      let list: readonly string[] = [];
      for (const item of text.split(',')) list = [...list, item];
    },
  ],
];

test.each(slowReaders)(
  'A reader with work in proportion to the square of the length, %s, is found',
  (_name, unit, read) => {
    const shape = (length: number): string => `${unit.repeat(length / unit.length)}?`;
    expect(complaint(read, shape, longest.query)).toMatch(
      / microseconds for \d+ characters, and .* for \d+ of /,
    );
  },
);

test('A slow reader whose work is in proportion to the length is not complained about', () => {
  const read = (text: string): void => {
    for (let n = 0; n < 20; n++) effectsOf(text);
  };
  expect(findComplaint(read, randomShapes(20), usualLength)).toBeUndefined();
});
