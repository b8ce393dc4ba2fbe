/** Open findings as workflow commands of GitHub Actions, which become annotations. */
import type { LintFinding } from '../findings.js';
import type { LintResult } from './lint-result.js';

export function githubReport({ files }: LintResult): string {
  return files
    .flatMap(({ file, findings }) =>
      findings.filter(({ status }) => status !== 'fixed').map((finding) => annotation(file, finding)),
    )
    .join('');
}

function annotation(file: string, finding: LintFinding): string {
  const { severity, line, column, endLine, endColumn, rule, message, reason, advice } = finding;
  const properties: Record<string, string | number> = { file, line, endLine };
  // Columns of several lines are refused.
  if (line === endLine) Object.assign(properties, { col: column, endColumn: Math.max(column, endColumn) });
  properties['title'] = `DSQL: ${rule}`;
  const list = Object.entries(properties).map(([name, value]) => `${name}=${escapeProperty(String(value))}`);
  return `::${severity} ${list.join(',')}::${escapeData(`${message}\n${reason} ${advice}`)}\n`;
}

function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
