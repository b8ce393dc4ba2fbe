/** Findings as they are reported, with their positions in the text that was given. */
import { Positions } from './positions.js';
import type { RawFinding } from './rule.js';
import { documentationPages, type FixLevel, type RuleDefinition, type Severity } from './rule-definition.js';
import { rules } from './rules.js';

/** `left out`: the statement became a comment. */
export type FindingStatus = 'open' | 'fixed' | 'left out';

export interface LintFinding {
  /** Id of the rule; ids are stable. */
  readonly rule: string;
  readonly severity: Severity;
  /** DSQL's own message where it refuses the statement. */
  readonly message: string;
  /** SQLSTATE of that refusal. */
  readonly sqlState: string | undefined;
  readonly reason: string;
  readonly advice: string;
  readonly url: string;
  /** From 1, in the text that was given. */
  readonly line: number;
  /** From 1, in characters (code points). */
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
  /** How it can be fixed; undefined: by hand. */
  readonly fix: { readonly level: FixLevel; readonly loses: string | undefined } | undefined;
  readonly status: FindingStatus;
}

export interface LintReport {
  readonly profile: string;
  /** By position. */
  readonly findings: readonly LintFinding[];
}

export interface FixReport extends LintReport {
  readonly text: string;
  readonly isChanged: boolean;
}

/** Findings of all rounds by rule and place in the original. */
export type SeenFindings = ReadonlyMap<string, { finding: RawFinding; start: number; end: number }>;

/** Stands for the findings of a file whose bytes are no UTF-8. */
export function unreadableFile(): LintFinding {
  const { severity, page } = rules['syntax-error'];
  return {
    rule: 'syntax-error',
    severity,
    message: 'the file is not encoded in UTF-8',
    sqlState: undefined,
    reason: 'DSQL stores and reads UTF-8.',
    advice: 'Save the file as UTF-8; dumps: pg_dump --encoding=UTF8.',
    url: documentationPages[page],
    line: 1,
    column: 1,
    endLine: 1,
    endColumn: 1,
    fix: undefined,
    status: 'open',
  };
}

export function reportFindings(
  text: string,
  seen: SeenFindings,
  statusOf: (key: string) => FindingStatus,
): LintFinding[] {
  const positions = new Positions(text);
  return [...seen]
    .sort(([, a], [, b]) => a.start - b.start || a.end - b.end)
    .map(([key, { finding, start, end }]) => {
      const { severity, reason, advice, page } = rules[finding.rule] as RuleDefinition;
      const [from, to] = [positions.at(start), positions.at(Math.max(start, end))];
      const { fix } = finding;
      return {
        rule: finding.rule,
        severity,
        message: finding.message,
        sqlState: finding.code,
        reason,
        advice,
        url: documentationPages[page],
        line: from.line,
        column: from.column,
        endLine: to.line,
        endColumn: to.column,
        fix: fix && { level: fix.level, loses: fix.loses },
        status: statusOf(key),
      };
    });
}
