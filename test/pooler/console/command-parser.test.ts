// The console's commands are understood however they are written, and what is not understood is answered with a guess.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  bareVerbs,
  type Command,
  databaseVerbs,
  describeCommand,
  optionalDatabaseVerbs,
  showNames,
  shutdownWaits,
} from '../../../src/pooler/console/command.js';
import { parseCommands } from '../../../src/pooler/console/command-parser.js';
import { ConsoleError } from '../../../src/pooler/console/console-error.js';
import { driverSettings } from '../../../src/pooler/console/driver-settings.js';

/** A command, and its words. */
type Written = readonly [Command, readonly string[]];

const names = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 });
const plainNames = fc
  .stringMatching(/^[A-Za-z_][A-Za-z0-9_.-]{0,20}$/)
  .filter((name) => !name.includes('--'));
const written = fc.oneof(
  names.map((name) => [name, `"${name.replaceAll('"', '""')}"`] as const),
  names.map((name) => [name, `'${name.replaceAll("'", "''")}'`] as const),
  plainNames.map((name) => [name, name] as const),
);

const commands: fc.Arbitrary<Written> = fc.oneof(
  fc.constantFrom(...showNames).map((what): Written => [{ verb: 'show', what }, ['show', what]]),
  fc.constantFrom(...showNames).map((what): Written => [{ verb: 'show', what }, ['select', what]]),
  fc
    .constantFrom(...driverSettings.keys())
    .map((name): Written => [{ verb: 'show setting', name }, ['show', name]]),
  fc.constantFrom(...bareVerbs).map((verb): Written => [{ verb }, [verb]]),
  fc.constantFrom(...optionalDatabaseVerbs).map((verb): Written => [{ verb, database: undefined }, [verb]]),
  fc
    .tuple(fc.constantFrom(...optionalDatabaseVerbs, ...databaseVerbs), written)
    .map(([verb, [database, word]]): Written => [{ verb, database } as Command, [verb, word]]),
  fc
    .integer({ min: 1, max: 0x7fff_ffff })
    .map((id): Written => [{ verb: 'kill_client', id }, ['kill_client', String(id)]]),
  fc.constantFrom(...shutdownWaits).map((mode): Written => [{ verb: 'shutdown', mode }, ['shutdown', mode]]),
  fc
    .tuple(plainNames, fc.constantFrom('=', 'to', 'TO'), written)
    .filter(([key]) => !driverSettings.has(key.toLowerCase()) && !/^(names|time|session)$/i.test(key))
    .map(
      ([key, sign, [value, word]]): Written => [
        { verb: 'set', key: key.toLowerCase(), value },
        ['set', key, sign, word],
      ],
    ),
);

const gaps = fc
  .array(fc.constantFrom(' ', '\n', '\t', '\r\n', '-- a comment\n', '/* one /* in */ another; */'), {
    minLength: 1,
    maxLength: 3,
  })
  .map((parts) => ` ${parts.join('')}`);
const ends = fc.constantFrom('', ';', ' ; ', ';;\n', ' -- the end');

/** Words of the console in large and small letters; names and values as they are. */
function inAnyCase(words: readonly string[], isUpper: readonly boolean[]): string[] {
  return words.map((word, index) => (index === 0 && isUpper[index] === true ? word.toUpperCase() : word));
}

function problemOf(text: string): string {
  try {
    parseCommands(text);
  } catch (error) {
    if (error instanceof ConsoleError) return `${error.sqlState} ${error.message}`;
    throw error;
  }
  return '';
}

test('A command is the same in large and small letters, with spaces, comments and semicolons', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(commands, fc.array(gaps, { minLength: 5, maxLength: 5 }), fc.array(fc.boolean())), {
        maxLength: 4,
      }),
      gaps,
      ends,
      (all, between, end) => {
        const text = all
          .map(([[, words], spaces, isUpper]) =>
            inAnyCase(words, isUpper)
              .map((word, index) => (spaces[index] as string) + word)
              .join(''),
          )
          .join(`${between};${between}`);
        expect(parseCommands(text + end)).toEqual(all.map(([[command]]) => command));
      },
    ),
  );
});

test('A command that is any text at all is understood or refused, and nothing else happens', () => {
  const pieces = fc.constantFrom(
    'show',
    'set',
    'kill',
    '"',
    "'",
    ';',
    '=',
    '--',
    '/*',
    '*/',
    ' ',
    'a',
    '\n',
    '\0',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary', maxLength: 200 }),
        fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join('')),
      ),
      (text) => {
        expect(problemOf(text)).toMatch(/^$|^(42601|22023) \S/);
      },
    ),
  );
});

test('A command of the greatest length is answered, even if it is nothing but quotes, comments or one word', () => {
  const long = 60_000;
  for (const text of [
    '"'.repeat(long + 1),
    "'".repeat(long + 1),
    '/*'.repeat(long / 2),
    `SHOW ${'-'.repeat(long)}`,
    'a'.repeat(long),
    `SHOW ${'a'.repeat(long)}`,
    `SET ${'a'.repeat(long)} = 1`,
  ])
    expect(problemOf(text)).toMatch(/^42601 .{10,400}$/s);
});

test.each([
  ['', []],
  [' ;; -- nothing\n /* nothing */ ;', []],
  ['SHOW POOLS', [{ verb: 'show', what: 'pools' }]],
  ['show "Stats" ;', [{ verb: 'show', what: 'stats' }]],
  ['SELECT 1', [{ verb: 'select one' }]],
  ['SHUTDOWN', [{ verb: 'shutdown', mode: 'immediate' }]],
  ['PAUSE Orders-EU', [{ verb: 'pause', database: 'Orders-EU' }]],
  ['PAUSE "say ""hi"""', [{ verb: 'pause', database: 'say "hi"' }]],
  ['SET query_timeout=5', [{ verb: 'set', key: 'query_timeout', value: '5' }]],
  [
    "SET server_check_query = 'select ''a''; --'",
    [{ verb: 'set', key: 'server_check_query', value: "select 'a'; --" }],
  ],
  ["SET server_check_query TO ''", [{ verb: 'set', key: 'server_check_query', value: '' }]],
  ['SET extra_float_digits = 3', [{ verb: 'ignored set' }]],
  ["SET application_name = 'psql'", [{ verb: 'ignored set' }]],
  ['SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY', [{ verb: 'ignored set' }]],
  ["SET TIME ZONE 'UTC'", [{ verb: 'ignored set' }]],
  ['SHOW TRANSACTION ISOLATION LEVEL', [{ verb: 'show setting', name: 'transaction_isolation' }]],
  [
    'SHOW POOLS; PAUSE app',
    [
      { verb: 'show', what: 'pools' },
      { verb: 'pause', database: 'app' },
    ],
  ],
])('A command %j is understood', (text, expected) => {
  expect(parseCommands(text)).toEqual(expected);
});

test.each([
  ['SHOW POLS', "42601 unknown command SHOW 'POLS'; did you mean SHOW POOLS?"],
  ['show stat_totals', "42601 unknown command SHOW 'stat_totals'; did you mean SHOW STATS_TOTALS?"],
  ['PUASE app', "42601 unknown command 'PUASE'; did you mean PAUSE?"],
  [
    'SHUTDOWN WAIT_FOR_CLIENT',
    "42601 unknown command SHUTDOWN 'WAIT_FOR_CLIENT'; did you mean SHUTDOWN WAIT_FOR_CLIENTS?",
  ],
  ['VACUUM', "42601 unknown command 'VACUUM'"],
  ['SHOW POOLS app', "42601 'app' is too much after SHOW POOLS; names with spaces need double quotes"],
  ['PAUSE my db', "42601 'db' is too much after PAUSE; names with spaces need double quotes"],
  ['RELOAD now', "42601 'now' is too much after RELOAD; names with spaces need double quotes"],
  ['DISABLE', '42601 DISABLE needs the name of a database'],
  ['PAUSE ""', '42601 PAUSE is followed by an empty name'],
  ['PAUSE =', '42601 PAUSE is followed by a sign'],
  ['KILL_CLIENT', "42601 KILL_CLIENT needs the client's id, a number that SHOW CLIENTS has"],
  ['KILL_CLIENT 0x1f', "22023 '0x1f' is not the id of a client: that is a number from 1 to 2147483647"],
  [
    'KILL_CLIENT 2147483648',
    "22023 '2147483648' is not the id of a client: that is a number from 1 to 2147483647",
  ],
  ['SET', '42601 SET is written as SET key = value'],
  ['SET verbose', '42601 SET is written as SET key = value'],
  ['SET verbose =', "42601 SET 'verbose' needs one value; put it in single quotes if it has spaces or signs"],
  [
    'SET admin_users = a, b',
    "42601 SET 'admin_users' needs one value; put it in single quotes if it has spaces or signs",
  ],
  ["SHOW 'pools", "42601 the command has a ' that is not closed"],
  ['SHOW /* pools', '42601 the command has a comment that does not end'],
  ['SHOW POOLS; SHOW POLS', "42601 unknown command SHOW 'POLS'; did you mean SHOW POOLS?"],
])('A command %j is refused with what is wrong', (text, problem) => {
  expect(problemOf(text)).toBe(problem);
});

test('A command is told in the log without the value that a setting gets', () => {
  const described = (text: string) => parseCommands(text).map(describeCommand).join();
  expect(described("SET auth_query = 'a secret'")).toBe('SET auth_query');
  expect(described('pause app')).toBe('PAUSE app');
  expect(described('kill')).toBe('KILL');
  expect(described('shutdown wait_for_servers')).toBe('SHUTDOWN WAIT_FOR_SERVERS');
  expect(described('kill_client 3; reload; show pins; select 1; show timezone; set timezone = 1')).toBe(
    'KILL_CLIENT 3,RELOAD,SHOW PINS,SELECT 1,SHOW timezone,SET',
  );
});
