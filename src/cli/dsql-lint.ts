/** `headgate dsql lint`: which statements of SQL files Aurora DSQL refuses, and `--fix`. */
import { readFileSync } from 'node:fs';
import { unreadableFile } from '../dsql/lint/findings.js';
import { Linter } from '../dsql/lint/linter.js';
import { githubReport } from '../dsql/lint/report/github.js';
import { jsonReport } from '../dsql/lint/report/json.js';
import { type LintedFile, type LintResult, summarise } from '../dsql/lint/report/lint-result.js';
import { sarifReport } from '../dsql/lint/report/sarif.js';
import { textReport } from '../dsql/lint/report/text.js';
import { nearest } from '../kernel/nearest.js';
import type { Command } from './command.js';
import { readOptions } from './options.js';
import { findSqlFiles, readSql, writeSql } from './sql-files.js';
import { exitCodes, UsageError } from './usage-error.js';

const help = `Usage: headgate dsql lint FILES [--fix [--unsafe]] [options]

Reports what Aurora DSQL refuses in SQL files, by the rules of headgate dsql-local. FILES are files, folders (all *.sql in
them), patterns ('migrations/**/*.sql') or - for standard input.

  --fix             writes the files with fixes that mean the same on DSQL; with -, writes the text to standard output
  --unsafe          with --fix, also fixes that lose or change something; the report says what
  --profile DATE    the day whose DSQL is meant (2026-09-15, the newest that is known)
  --format FORMAT   text, json, sarif (2.1.0) or github (annotations of GitHub Actions) (text)
  --strict          warnings count as errors

-- headgate-ignore RULE on the line before a finding or its statement suppresses it. docs/dsql-lint.md has all rules.

Ends with 0 when DSQL runs it all, with 1 when there are errors left, with 2 when it was called in a wrong way.
`;

const kinds = {
  fix: 'flag',
  unsafe: 'flag',
  profile: 'text',
  format: 'text',
  strict: 'flag',
} as const;

export const dsqlLintCommand: Command = {
  summary: 'report what Aurora DSQL refuses in SQL files, and fix it',
  help,
  async run(args, terminal) {
    const { values, positionals } = readOptions(args, kinds);
    if (positionals.length === 0) throw new UsageError('lint needs files, folders, or - for standard input');
    if (values.unsafe && !values.fix) throw new UsageError('--unsafe needs --fix');
    const format = readFormat(values.format);
    const linter = await loadLinter(values.profile);
    const isFixing = values.fix === true;
    const files: LintedFile[] = [];
    for (const file of findSqlFiles(positionals)) {
      const text = readSql(file);
      if (text === undefined) {
        files.push({ file, findings: [unreadableFile()], isChanged: false });
        continue;
      }
      if (!isFixing) {
        files.push({ file, findings: (await linter.lint(text)).findings, isChanged: false });
        continue;
      }
      const fixed = await linter.fix(text, values.unsafe ? 'unsafe' : 'safe');
      if (file === '-') terminal.out(fixed.text);
      else if (fixed.isChanged) writeSql(file, fixed.text);
      files.push({ file, findings: fixed.findings, isChanged: fixed.isChanged });
    }
    const result: LintResult = { profile: linter.profile, files };
    const isPiped = isFixing && positionals.includes('-');
    (isPiped ? terminal.err : terminal.out)(format(result));
    return exitCodeOf(result, values.strict === true);
  },
};

const formats: Readonly<Record<string, (result: LintResult) => string>> = {
  text: textReport,
  json: jsonReport,
  sarif: (result) => sarifReport(result, version()),
  github: githubReport,
};

export function readFormat(name = 'text'): (result: LintResult) => string {
  const format = Object.hasOwn(formats, name) ? formats[name] : undefined;
  if (format !== undefined) return format;
  const guess = nearest(name, Object.keys(formats));
  const hint = guess === undefined ? '' : ` Did you mean ${guess}?`;
  throw new UsageError(`--format is one of ${Object.keys(formats).join(', ')}, not '${name}'.${hint}`);
}

/** A day that is none is the user's mistake. */
export async function loadLinter(profile: string | undefined): Promise<Linter> {
  try {
    return await Linter.load(profile);
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('The profile of the DSQL dialect'))
      throw new UsageError(`--profile: ${error.message}`);
    throw error;
  }
}

export function exitCodeOf(result: LintResult, isStrict: boolean): number {
  const { errors, warnings, leftOut } = summarise(result);
  return errors + leftOut > 0 || (isStrict && warnings > 0) ? exitCodes.failed : exitCodes.good;
}

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
