/** `lintSql`, `fixSql` and `convertSql`: findings of a text, and the text with fixes. */
import type { FixReport, LintReport } from './findings.js';
import { Linter } from './linter.js';

export interface LintOptions {
  /** The day, `2026-09-15`, whose DSQL is meant; the newest known one when it is not given. */
  readonly profile?: string | undefined;
}

export interface FixOptions extends LintOptions {
  /** Also fixes that lose or change something. */
  readonly unsafe?: boolean | undefined;
}

/** Judges a text by the rules by which `dsql-local` refuses. Nothing is changed. */
export async function lintSql(text: string, { profile }: LintOptions = {}): Promise<LintReport> {
  const linter = await Linter.load(profile);
  return linter.lint(text);
}

/** Fixes what means the same on DSQL; with `unsafe`, also what loses something. */
export async function fixSql(text: string, { profile, unsafe = false }: FixOptions = {}): Promise<FixReport> {
  const linter = await Linter.load(profile);
  return linter.fix(text, unsafe ? 'unsafe' : 'safe');
}

/** Makes a dump run on DSQL: all fixes, COPY as INSERT, and comments in place of statements that DSQL does not have. */
export async function convertSql(text: string, { profile }: LintOptions = {}): Promise<FixReport> {
  const linter = await Linter.load(profile);
  return linter.fix(text, 'convert');
}
