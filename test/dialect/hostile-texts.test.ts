// Long, deep and random texts: each has a verdict, and the next text is judged normally.
import fc from 'fast-check';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createDialect } from '../../src/dialect/dialect.js';
import type { Dialect } from '../../src/dialect/judgement.js';
import { VerdictCache } from '../../src/dialect/verdict-cache.js';
import { acceptedDdl, acceptedQueries } from './accepted.js';
import { refusals } from './refusals.js';

let dialect: Dialect;
beforeAll(async () => {
  dialect = await createDialect();
});

function expectAlive(): void {
  expect(dialect.judge(`SELECT ${Math.random()} FROM s.t`).statements[0]?.refusal).toBeUndefined();
  expect(dialect.judge(`TRUNCATE t${Math.random()}`.replace('.', '')).statements[0]?.refusal?.code).toBe(
    '0A000',
  );
}

/** A broken instance of the parser is replaced in the background; a new dialect waits until all instances are there. */
async function replaced(): Promise<void> {
  await createDialect();
}

afterEach(async () => {
  if (dialect.judge(`SELECT ${Math.random()}`).statements[0]?.refusal !== undefined) await replaced();
});

const deepTexts: readonly (readonly [string, (depth: number) => string])[] = [
  ['parentheses', (n) => `SELECT ${'('.repeat(n)}1${')'.repeat(n)}`],
  ['subqueries', (n) => `${'SELECT ('.repeat(n)}SELECT 1${')'.repeat(n)}`],
  ['sums', (n) => `SELECT 1${'+1'.repeat(n)}`],
  ['casts', (n) => `SELECT 1${'::int'.repeat(n)}`],
  ['unions', (n) => `SELECT 1${' UNION SELECT 1'.repeat(n)}`],
  ['joins', (n) => `SELECT 1 FROM a${' JOIN a ON true'.repeat(n)}`],
  ['negations', (n) => `SELECT ${'NOT '.repeat(n)}true`],
  ['cases', (n) => `SELECT ${'CASE WHEN a THEN '.repeat(n)}1${' END'.repeat(n)}`],
  ['calls', (n) => `SELECT ${'f('.repeat(n)}${')'.repeat(n)}`],
];

describe.each([1_000, 3_000, 12_000, 50_000])('Depth %i', (depth) => {
  test.each(deepTexts)('Nested %s get a verdict', (_name, text) => {
    const { isMalformed, statements } = dialect.judge(text(depth));
    const refusal = statements[0]?.refusal;
    if (!isMalformed && refusal !== undefined)
      expect(refusal).toEqual({ code: '54001', message: 'stack depth limit exceeded' });
    expect(isMalformed || statements.length === 1).toBe(true);
  });

  test('The dialect judges on after deep texts', async () => {
    await replaced();
    expectAlive();
  });
});

test('A text that is too deep is refused with 54001', () => {
  const { statements } = dialect.judge(`SELECT 1${'+1'.repeat(100_000)}`);
  expect(statements[0]?.refusal).toEqual({ code: '54001', message: 'stack depth limit exceeded' });
});

test('A spare parser takes over at once', async () => {
  await replaced();
  dialect.judge(`SELECT 1${'+2'.repeat(100_000)}`);
  expectAlive();
});

test('A text of many statements is judged', () => {
  const { statements } = dialect.judge('CREATE INDEX ASYNC ON é.t (a);'.repeat(5_000));
  expect(statements).toHaveLength(5_000);
  expect(statements.at(-1)?.job?.table).toBe('t');
  expect(statements.at(-1)?.schemaMentions).toHaveLength(1);
});

test('A text of more than a megabyte is judged', () => {
  const long = `SELECT '${'é'.repeat(600_000)}', s.t.a FROM s.t`;
  const [statement] = dialect.judge(long).statements;
  expect(statement?.schemaMentions.map(({ start, end }) => long.slice(start, end))).toEqual(['s', 's']);
});

test('A text with a zero byte is refused whole', () => {
  expect(dialect.judge('SELECT 1\0; TRUNCATE t').statements[0]?.refusal?.code).toBe('22021');
});

test.each(['', ' \n', ';', '-- nothing', '/* */;;'])('The empty text %j has no statements', (sql) => {
  expect(dialect.judge(sql)).toEqual({ statements: [], isMalformed: false });
});

test('A text that is asked for again gets the same verdict object', () => {
  const text = 'SELECT 1 FROM a';
  expect(dialect.judge(text)).toBe(dialect.judge(text));
});

test('The cache stays within its bytes and keeps what is asked for', () => {
  const cache = new VerdictCache(10_000);
  const verdict = { statements: [], isMalformed: false };
  cache.set('hot', verdict);
  for (let index = 0; index < 1_000; index++) {
    cache.set(`${index}`.padEnd(1_000), verdict);
    expect(cache.get('hot')).toBe(verdict);
  }
  let kept = 0;
  for (let index = 0; index < 1_000; index++) if (cache.get(`${index}`.padEnd(1_000))) kept++;
  expect(kept).toBeLessThanOrEqual(5);
});

test('The cache does not keep texts over a megabyte', () => {
  const cache = new VerdictCache();
  const text = 'x'.repeat(1024 * 1024 + 1);
  cache.set(text, { statements: [], isMalformed: false });
  expect(cache.get(text)).toBeUndefined();
});

const words = [
  ...'SELECT FROM WHERE INSERT INTO UPDATE SET DELETE WITH AS VALUES CREATE TABLE INDEX ASYNC UNIQUE ON ALTER'.split(
    ' ',
  ),
  ...'ADD COLUMN DROP TYPE AWS IAM GRANT REVOKE TO FOR KEY SHARE BEGIN COMMIT numeric serial int text'.split(
    ' ',
  ),
  ...[
    't',
    's.t',
    'a',
    'async',
    '"é"',
    'é',
    '😀',
    "'x'",
    "'é''",
    '$1',
    '1',
    '1e5',
    '$$ $$',
    '$a$',
    '(',
    ')',
    ',',
  ],
  ...[
    ';',
    '.',
    '*',
    '=',
    '::',
    '[]',
    '--',
    '/*',
    '*/',
    '\n',
    '\\',
    '"',
    "'",
    "E'\\''",
    'U&"\\0073"',
    '\ud800',
    '\t',
  ],
];

test('Random texts: Judging never throws, and mentions stay within the text', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...words), { maxLength: 25 }), fc.boolean(), (tokens, isSpaced) => {
      const sql = tokens.join(isSpaced ? ' ' : '');
      for (const statement of dialect.judge(sql).statements) {
        expect(sql).toContain(statement.source);
        let last = 0;
        for (const { start, end } of statement.schemaMentions) {
          expect(start).toBeGreaterThanOrEqual(last);
          expect(end).toBeGreaterThan(start);
          expect(end).toBeLessThanOrEqual(statement.sql.length);
          last = start;
        }
      }
    }),
    { numRuns: 3_000 },
  );
});

test('Random texts: Judging never throws on a known statement that lost or gained a token', () => {
  const known = [
    ...acceptedDdl,
    ...acceptedQueries,
    ...Object.values(refusals).flatMap((rows) => rows.map(([sql]) => sql)),
  ];
  const short = known.filter((sql) => sql.length < 500);
  fc.assert(
    fc.property(
      fc.constantFrom(...short),
      fc.nat(30),
      fc.nat(2),
      fc.constantFrom('', ...words),
      (sql, place, removed, word) => {
        const tokens = sql.split(' ');
        tokens.splice(place % tokens.length, removed, word);
        expect(() => dialect.judge(tokens.join(' '))).not.toThrow();
      },
    ),
    { numRuns: 3_000 },
  );
});

test('Random texts: Random names are found where they stand', () => {
  const name = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 10 })
    .filter((text) => !text.includes('\0'));
  fc.assert(
    fc.property(name, name, (schema, comment) => {
      const quoted = `"${schema.replaceAll('"', '""')}"`;
      const sql = `SELECT '${comment.replaceAll("'", "''")}' FROM ${quoted}.t`;
      const [statement] = dialect.judge(sql).statements;
      const [mention] = statement?.schemaMentions ?? [];
      expect(sql.slice(mention?.start, mention?.end)).toBe(quoted);
    }),
    { numRuns: 500 },
  );
});
