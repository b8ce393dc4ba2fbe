/** The findings of each file and their counts, from which the reports are made. */
import type { LintFinding } from '../findings.js';

export interface LintedFile {
  /** As it was named; `-` is standard input. */
  readonly file: string;
  readonly findings: readonly LintFinding[];
  /** Written, or to be written. */
  readonly isChanged: boolean;
}

export interface LintResult {
  readonly profile: string;
  readonly files: readonly LintedFile[];
}

export interface LintSummary {
  readonly files: number;
  /** Open ones. */
  readonly errors: number;
  readonly warnings: number;
  readonly fixed: number;
  readonly leftOut: number;
  /** Open ones that --fix fixes, and those that need --unsafe. */
  readonly fixable: number;
  readonly unsafe: number;
}

export function summarise({ files }: LintResult): LintSummary {
  const all = files.flatMap(({ findings }) => findings);
  const open = all.filter(({ status }) => status === 'open');
  const count = (findings: readonly LintFinding[], test: (finding: LintFinding) => boolean) =>
    findings.filter(test).length;
  return {
    files: files.length,
    errors: count(open, ({ severity }) => severity === 'error'),
    warnings: count(open, ({ severity }) => severity === 'warning'),
    fixed: count(all, ({ status }) => status === 'fixed'),
    leftOut: count(all, ({ status }) => status === 'left out'),
    fixable: count(open, ({ fix }) => fix?.level === 'safe'),
    unsafe: count(open, ({ fix }) => fix?.level === 'unsafe'),
  };
}
