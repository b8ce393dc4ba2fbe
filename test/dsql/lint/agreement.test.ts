// Lint and the dialect judge alike: on every known text, on every day, and on texts that are made up.
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { createDialect } from '../../../src/dialect/dialect.js';
import type { Dialect } from '../../../src/dialect/judgement.js';
import { featureDays } from '../../../src/dialect/profile.js';
import { Linter } from '../../../src/dsql/lint/linter.js';
import { splitScript } from '../../../src/dsql/lint/script.js';
import { convertSql, fixSql, lintSql } from '../../../src/dsql-lint.js';
import {
  acceptedDdl,
  acceptedDrops,
  acceptedOrmTexts,
  acceptedQueries,
  acceptedTransactions,
} from '../../dialect/accepted.js';
import { refusals } from '../../dialect/refusals.js';
import { ruleCases } from './cases.js';

const accepted = [
  ...acceptedDdl,
  ...acceptedQueries,
  ...acceptedTransactions,
  ...acceptedDrops,
  ...acceptedOrmTexts,
];
const refused = Object.values(refusals).flat();
const days = ['2025-05-27', ...new Set(Object.values(featureDays))];

let linter: Linter;
const byDay = new Map<string, { linter: Linter; dialect: Dialect }>();
beforeAll(async () => {
  linter = await Linter.load();
  for (const profile of days)
    byDay.set(profile, { linter: await Linter.load(profile), dialect: await createDialect({ profile }) });
});

const errorsOf = async (sql: string, by = linter) =>
  (await by.lint(sql)).findings.filter(({ severity }) => severity === 'error');

test.each(accepted)('Texts of the dialect: Lint has no error in %s', async (sql) => {
  expect(await errorsOf(sql)).toEqual([]);
});

test.each(refused)('Texts of the dialect: Lint reports %s', async (sql, code, message) => {
  const found = await errorsOf(sql);
  expect(found.map(({ sqlState, message: text }) => [sqlState, text])).toContainEqual([code, message]);
  expect(found.map(({ rule }) => rule)).not.toContain('syntax-error');
});

test('Lint and the dialect agree on every text and every day', () => {
  const texts = [...accepted, ...refused.map(([sql]) => sql)];
  return fc.assert(
    fc.asyncProperty(fc.constantFrom(...days), fc.constantFrom(...texts), async (day, sql) => {
      const { linter: dated, dialect } = byDay.get(day) as { linter: Linter; dialect: Dialect };
      const refusal = dialect.judge(sql).statements[0]?.refusal;
      const found = await errorsOf(sql, dated);
      expect(found.length > 0).toBe(refusal !== undefined);
      if (refusal !== undefined) expect(found.map(({ message }) => message)).toContain(refusal.message);
    }),
    { numRuns: 600 },
  );
});

/** Scripts of known statements with comments, line ends and characters of all sizes between them. */
const scripts = fc
  .array(
    fc.record({
      sql: fc.constantFrom(
        ...accepted,
        ...refused.map(([sql]) => sql),
        ...ruleCases.filter(({ sql }) => sql.length < 500).map(({ sql }) => sql),
      ),
      before: fc.constantFrom('', '-- a comment; with é and 😀\n', '/* b /* c */ */ ', '\r\n\r\n', '\t'),
      behind: fc.constantFrom(';\n', ' ;', ';\r\n', ';\n\n-- end\n'),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) => parts.map(({ sql, before, behind }) => before + sql + behind).join(''));

const levels = ['safe', 'unsafe', 'convert'] as const;

test('A fixed text is not changed again, and nothing is left that the level fixes', () => {
  return fc.assert(
    fc.asyncProperty(scripts, fc.constantFrom(...levels), async (script, level) => {
      const once = await linter.fix(script, level);
      const twice = await linter.fix(once.text, level);
      expect(twice.text).toBe(once.text);
      const reach = levels.slice(0, levels.indexOf(level) + 1) as readonly string[];
      const left = twice.findings.filter(({ fix }) => fix !== undefined && reach.includes(fix.level));
      expect(left).toEqual([]);
    }),
    { numRuns: 150 },
  );
});

test('The dialect accepts each statement of a converted text', () => {
  const { dialect } = byDay.get(days.at(-1) as string) as { dialect: Dialect };
  return fc.assert(
    fc.asyncProperty(scripts, async (script) => {
      const { text } = await linter.fix(script, 'convert');
      for (const { start, end } of splitScript(text)) {
        const { statements, isMalformed } = dialect.judge(text.slice(start, end));
        expect(isMalformed).toBe(false);
        expect(statements.map(({ refusal }) => refusal?.message)).toEqual([undefined]);
      }
    }),
    { numRuns: 150 },
  );
});

test('Lint takes any text, and every finding has a place in it', () => {
  const pieces = fc.constantFrom(
    ...[
      "'",
      '"',
      '$$',
      '$a$',
      '/*',
      '*/',
      '--',
      '\\',
      '\\.',
      ';',
      '\n',
      '\r\n',
      '(',
      ')',
      ',',
      '\0',
      '\uFEFF',
    ],
    ...[
      '😀',
      'é',
      '\uD83D',
      'BEGIN',
      'COPY t FROM stdin;\n',
      'CREATE TABLE t (',
      'id serial',
      'ALTER TABLE t ADD ',
    ],
    ...[
      'CREATE INDEX i ON t USING gin (',
      'CREATE FUNCTION f() BEGIN ATOMIC',
      'END',
      '-- headgate-ignore x\n',
    ],
  );
  const texts = fc.oneof(
    fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(' ')),
    fc.tuple(scripts, pieces, fc.nat()).map(([script, piece, at]) => {
      const cut = at % (script.length + 1);
      return script.slice(0, cut) + piece + script.slice(cut + (at % 7));
    }),
  );
  return fc.assert(
    fc.asyncProperty(texts, async (text) => {
      const lines = text.split('\n').length;
      for (const finding of (await linter.lint(text)).findings) {
        expect(finding.line).toBeGreaterThan(0);
        expect(finding.endLine).toBeLessThanOrEqual(lines);
        expect(finding.column).toBeGreaterThan(0);
      }
      await linter.fix(text, 'convert');
    }),
    { numRuns: 300 },
  );
});

test('A text that nests too deep is reported, and what follows it is checked', async () => {
  const deep = (count: number) =>
    Array.from({ length: count }, (_, at) => `SELECT ${at}${'+1'.repeat(20_000)};\n`).join('');
  const found = (await errorsOf(`${deep(5)}TRUNCATE t`)).map(({ rule, line }) => `${line} ${rule}`);
  expect(found).toEqual([...[1, 2, 3, 4, 5].map((line) => `${line} nested-too-deep`), '6 truncate']);
  await expect(errorsOf(deep(11))).rejects.toThrow('More than 10 statements nest deeper');
});

test('The functions of the library agree with the linter', async () => {
  const sql = 'CREATE TABLE t (id serial PRIMARY KEY, a text[]);';
  const levelsOf = (findings: readonly { rule: string; status: string }[]) =>
    findings.map(({ rule, status }) => `${rule} ${status}`);
  expect(levelsOf((await lintSql(sql)).findings)).toEqual(['serial open', 'array-type open']);
  expect(levelsOf((await fixSql(sql)).findings)).toEqual(['serial fixed', 'array-type open']);
  expect(levelsOf((await fixSql(sql, { unsafe: true })).findings)).toEqual([
    'serial fixed',
    'array-type fixed',
  ]);
  expect((await convertSql(sql, { profile: '2025-05-27' })).profile).toBe('2025-05-27');
  await expect(lintSql(sql, { profile: 'soon' })).rejects.toThrow('must be a day');
});
