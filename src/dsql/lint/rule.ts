/** Types of lint's rules, findings and fixes. */
import type { Edit } from './mapped-text.js';
import type { FixLevel } from './rule-definition.js';
import type { RuleId } from './rules.js';

export interface Fix {
  readonly level: FixLevel;
  readonly edits: readonly Edit[];
  /** Left for the report: the text no longer says it, or says it differently. */
  readonly loses?: string | undefined;
}

/** A finding of one round: places are those of the text of the round. */
export interface RawFinding {
  readonly rule: RuleId;
  readonly start: number;
  readonly end: number;
  /** Where its statement begins. */
  readonly statement: number;
  readonly message: string;
  /** SQLSTATE with which the stand-in refuses. */
  readonly code: string | undefined;
  readonly fix: Fix | undefined;
  /** Takes one command out of an ALTER TABLE of several, where nothing fixes it. */
  readonly part?: { readonly removal: readonly Edit[]; readonly source: string } | undefined;
}
