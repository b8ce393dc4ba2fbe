/** Printed by `--report`: the refused statements of a workload, by reason. */
import type { StatementReport } from '../dsql-local/report.js';

interface RefusalReason {
  /** SQLSTATE. */
  readonly code: string;
  readonly message: string;
  readonly count: number;
  /** Most frequent first. */
  readonly statements: readonly { readonly sql: string; readonly count: number }[];
}

interface GroupedReport {
  readonly statements: number;
  readonly refused: number;
  /** Most frequent first. */
  readonly reasons: readonly RefusalReason[];
  /** Refusals whose statements were not kept, because there were too many different ones. */
  readonly notKept: number;
}

/** Different statements that are shown of each reason, and how much of each. */
const mostStatements = 10;
const longestLine = 100;

function groupReport({ statements, refused, refusals, notKept }: StatementReport): GroupedReport {
  const reasons = new Map<
    string,
    RefusalReason & { count: number; statements: { sql: string; count: number }[] }
  >();
  for (const { sql, code, message, count } of refusals) {
    const key = `${code} ${message}`;
    const reason = reasons.get(key) ?? { code, message, count: 0, statements: [] };
    reasons.set(key, reason);
    reason.count += count;
    reason.statements.push({ sql, count });
  }
  return { statements, refused, reasons: [...reasons.values()].sort((a, b) => b.count - a.count), notKept };
}

export function reportText(report: StatementReport): string {
  const { statements, refused, reasons, notKept } = groupReport(report);
  if (refused === 0) return `Report: none of ${statements} statements was refused.\n`;
  const why = reasons.length === 1 ? '1 reason' : `${reasons.length} reasons`;
  const lines = [`Report: of ${statements} statements, ${refused} were refused, for ${why}.`];
  for (const { code, message, count, statements: texts } of reasons) {
    lines.push('', `${count} x  ${code}  ${message}`);
    for (const { sql, count: times } of texts.slice(0, mostStatements))
      lines.push(`    ${times} x  ${inOneLine(sql)}`);
    if (texts.length > mostStatements)
      lines.push(`    and ${texts.length - mostStatements} other statements`);
  }
  if (notKept > 0) lines.push('', `${notKept} more refusals were of too many different statements to keep.`);
  return `${lines.join('\n')}\n`;
}

export function reportJson(report: StatementReport): string {
  return `${JSON.stringify({ report: groupReport(report) })}\n`;
}

function inOneLine(sql: string): string {
  const line = sql.replace(/\s+/g, ' ').trim();
  return line.length > longestLine ? `${line.slice(0, longestLine - 3)}...` : line;
}
