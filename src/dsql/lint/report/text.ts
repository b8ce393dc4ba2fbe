/** Findings for a person: place, severity, message and rule in one line, what to do below it. */
import type { LintFinding } from '../findings.js';
import { type LintResult, summarise } from './lint-result.js';

export function textReport(result: LintResult): string {
  const lines = result.files.flatMap(({ file, findings }) =>
    findings.flatMap((finding) => linesFor(file, finding)),
  );
  return [...lines, summaryLine(result), ''].join('\n');
}

function linesFor(file: string, finding: LintFinding): string[] {
  const { line, column, severity, message, rule, reason, advice, fix, status } = finding;
  const state = status === 'open' ? severity : status;
  const lines = [`${file}:${line}:${column}: ${state}: ${message} (${rule})`];
  if (status !== 'fixed') lines.push(`    ${reason} ${advice}`);
  if (status === 'open' && fix?.level === 'safe') lines.push('    --fix fixes it.');
  if (status === 'open' && fix?.level === 'unsafe') lines.push('    --fix --unsafe fixes it.');
  if (fix?.loses !== undefined)
    lines.push(`    ${status === 'fixed' ? 'Lost or changed' : 'The fix loses or changes'}: ${fix.loses}.`);
  return lines;
}

function summaryLine(result: LintResult): string {
  const { files, errors, warnings, fixed, leftOut, fixable, unsafe } = summarise(result);
  const parts = [
    `${counted(files, 'file')}, DSQL of ${result.profile}: ${counted(errors, 'error')}`,
    counted(warnings, 'warning'),
  ];
  if (fixed > 0) parts.push(`${fixed} fixed`);
  if (leftOut > 0) parts.push(`${leftOut} left out`);
  const hints = [];
  if (fixable > 0) hints.push(`--fix fixes ${fixable}`);
  if (unsafe > 0) hints.push(`--fix --unsafe fixes ${unsafe} that lose or change something`);
  return `${parts.join(', ')}.${hints.length > 0 ? ` ${hints.join('; ')}.` : ''}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
