// Each rule: text, finding and its place, fix; the stand-in refuses the text and runs the fixed one.
import type pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDialect } from '../../../src/dialect/dialect.js';
import type { Dialect } from '../../../src/dialect/judgement.js';
import { Linter } from '../../../src/dsql/lint/linter.js';
import { splitScript } from '../../../src/dsql/lint/script.js';
import { lintRules } from '../../../src/dsql-lint.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';
import { type RuleCase, ruleCases } from './cases.js';

let dsql: TestDsql;
let client: pg.Client;
let dialect: Dialect;
const linters = new Map<string | undefined, Linter>();

beforeAll(async () => {
  dsql = await startTestDsql();
  dialect = await createDialect();
  client = await dsql.connect();
  await client.query('CREATE SCHEMA lint');
  await client.query('SET search_path = lint');
  for (const profile of new Set(ruleCases.map(({ profile }) => profile)))
    linters.set(profile, await Linter.load(profile));
}, 60_000);

afterAll(async () => {
  await client?.end();
  await dsql?.stop();
});

/** Runs statements one by one in an empty schema; the first error ends it. */
async function run(texts: readonly string[]): Promise<{ code: string; message: string } | undefined> {
  const statements = texts.flatMap(statementsOf);
  if (statements.length === 0) return undefined;
  try {
    for (const sql of statements) await client.query(sql);
    return undefined;
  } catch (error) {
    return error as { code: string; message: string };
  } finally {
    const ends = ['ROLLBACK', 'DROP SCHEMA lint CASCADE', 'CREATE SCHEMA lint', 'SET search_path = lint'];
    for (const sql of ends) await client.query(sql);
  }
}

/** The stand-in's answer where the text alone is enough for it. */
function refusalOf(text: string): { code: string; message: string } | undefined {
  const judged = statementsOf(text).flatMap((sql) => dialect.judge(sql).statements);
  return judged.find(({ refusal }) => refusal !== undefined)?.refusal;
}

function statementsOf(text: string): string[] {
  return splitScript(text)
    .filter(({ kind }) => kind !== 'meta')
    .map(({ start, end }) => text.slice(start, end));
}

const withoutComments = (text: string) => text.replaceAll(/^-- (?!headgate-ignore).*\r?\n?/gm, '');
const named = ruleCases.map((found): [string, RuleCase] => [
  `${found.rule}: ${found.sql.slice(0, 80)}`,
  found,
]);
const linterOf = ({ profile }: RuleCase) => linters.get(profile) as Linter;

test.each(named)('Cases of the rules of lint: Lint finds %s', async (_name, found) => {
  const { findings } = await linterOf(found).lint(found.sql);
  const [line, column] = found.at;
  const finding = findings.find(({ rule }) => rule === found.rule);
  expect(finding).toMatchObject({ line, column });
  expect(finding?.fix?.level).toBe(found.level);
  if (found.level === 'unsafe') expect(finding?.fix?.loses).toBeTruthy();
});

test.each(named.filter(([, { fixed }]) => fixed !== undefined))(
  'Cases of the rules of lint: Lint fixes %s',
  async (_name, found) => {
    const { text, findings } = await linterOf(found).fix(found.sql, 'convert');
    expect(withoutComments(text).trim()).toBe(found.fixed?.trim());
    expect(findings.filter(({ status }) => status === 'open')).toEqual([]);
    const statuses = findings.filter(({ rule }) => rule === found.rule).map(({ status }) => status);
    expect(statuses).toContain(found.level === undefined ? 'left out' : 'fixed');
  },
);

test.each(named)(
  'Cases of the rules of lint: Fixing twice changes nothing more: %s',
  async (_name, found) => {
    for (const level of ['safe', 'unsafe', 'convert'] as const) {
      const once = (await linterOf(found).fix(found.sql, level)).text;
      expect(await linterOf(found).fix(once, level)).toMatchObject({ text: once, isChanged: false });
    }
  },
);

test('Cases of the rules of lint: The stand-in refuses each text as lint says, and runs each fixed one', {
  timeout: 60_000,
}, async () => {
  const failures: string[] = [];
  for (const [name, found] of named) {
    const { sql, setup = [], profile, isAccepted } = found;
    const report = await linterOf(found).fix(sql, 'convert');
    const errors = report.findings.filter(({ sqlState }) => sqlState !== undefined);
    if (profile === undefined && isAccepted === undefined && errors.length > 0) {
      const refused = refusalOf(sql) ?? (await run([...setup, sql]));
      if (!errors.some(({ sqlState }) => sqlState === refused?.code))
        failures.push(`${name}: ${refused?.code} ${refused?.message}, not ${errors[0]?.sqlState}`);
    }
    const error = report.text.trim() === '' ? undefined : await run([...setup, report.text]);
    if (error !== undefined) failures.push(`${name}: the fixed text fails: ${error.message}`);
  }
  expect(failures).toEqual([]);
});

test('Every rule of lint has a case', () => {
  const cases = new Set<string>(ruleCases.map(({ rule }) => rule));
  const elsewhere = ['nested-too-deep'];
  expect(lintRules.map(({ id }) => id).filter((id) => !cases.has(id))).toEqual(elsewhere);
});

test('A dated rule no longer applies from its day on', async () => {
  for (const { id, until } of lintRules) {
    const found = ruleCases.find(({ rule }) => rule === id);
    if (until === undefined || found === undefined) continue;
    const linter = await Linter.load(until);
    expect((await linter.lint(found.sql)).findings.map(({ rule }) => rule)).not.toContain(id);
  }
});
