/** `headgate dsql convert`: a dump of PostgreSQL as statements that Aurora DSQL runs. */
import { unreadableFile } from '../dsql/lint/findings.js';
import type { Command } from './command.js';
import { exitCodeOf, loadLinter, readFormat } from './dsql-lint.js';
import { readOptions } from './options.js';
import { readSql, writeSql } from './sql-files.js';
import { UsageError } from './usage-error.js';

const help = `Usage: headgate dsql convert FILE [--output FILE] [options]

Writes a dump of PostgreSQL, or any SQL file, as statements that Aurora DSQL runs: all fixes of headgate dsql lint, also those
that lose something, COPY as INSERT of at most 1,000 rows, indexes ASYNC, constraints in CREATE TABLE, one DDL statement in
each transaction. Statements that DSQL does not have become comments. FILE may be - for standard input.

  --output FILE     writes there, whole or not at all (standard output)
  --profile DATE    the day whose DSQL is meant (2026-09-15, the newest that is known)
  --format FORMAT   of the report on standard error: text, json, sarif or github (text)
  --quiet           no report

Ends with 0 when everything was converted, with 1 when statements were left out, with 2 when it was called in a wrong way.
`;

const kinds = { output: 'text', profile: 'text', format: 'text', quiet: 'flag' } as const;

export const dsqlConvertCommand: Command = {
  summary: 'write a PostgreSQL dump as statements that Aurora DSQL runs',
  help,
  async run(args, terminal) {
    const { values, positionals } = readOptions(args, kinds);
    const [file, ...others] = positionals;
    if (file === undefined || others.length > 0)
      throw new UsageError('convert needs one file, or - for standard input');
    const format = readFormat(values.format);
    const linter = await loadLinter(values.profile);
    const text = readSql(file);
    if (text === undefined) throw new UsageError(`${file}: ${unreadableFile().message}`);
    const report = await linter.fix(text, 'convert');
    if (values.output === undefined) terminal.out(report.text);
    else writeSql(values.output, report.text);
    const result = {
      profile: linter.profile,
      files: [{ file, findings: report.findings, isChanged: report.isChanged }],
    };
    if (!values.quiet) terminal.err(format(result));
    return exitCodeOf(result, false);
  },
};
