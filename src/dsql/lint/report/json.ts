/** Findings as JSON. Names stay; new ones may be added without a new version. */
import { type LintResult, summarise } from './lint-result.js';

const version = 1;

export function jsonReport(result: LintResult): string {
  const { profile, files } = result;
  return `${JSON.stringify({ version, profile, files, summary: summarise(result) }, undefined, 2)}\n`;
}
