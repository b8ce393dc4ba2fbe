/** Types of lint's rules, findings and fixes. */
import type { Feature } from '../../dialect/profile.js';
import type { Edit } from './mapped-text.js';
import type { RuleId } from './rules.js';

/** `error`: DSQL refuses the statement, or will. `warning`: it runs, and may not do what was meant. */
export type Severity = 'error' | 'warning';

/**
 * - `safe`: means the same on DSQL; `--fix` does it.
 * - `unsafe`: loses or changes something; needs `--unsafe`.
 * - `convert`: only makes sense for a whole dump; `convert` does it.
 */
export type FixLevel = 'safe' | 'unsafe' | 'convert';

export interface RuleDefinition {
  readonly severity: Severity;
  readonly reason: string;
  /** The effect of the fix, or the work by hand. */
  readonly advice: string;
  /** The mildest level at which some case is fixed; undefined for what is done by hand. */
  readonly fix?: FixLevel;
  /** The feature with which the rule no longer applies. */
  readonly until?: Feature;
  readonly page: DocumentationPage;
}

const guide = 'https://docs.aws.amazon.com/aurora-dsql/latest/userguide/';

export const documentationPages = {
  unsupported: `${guide}working-with-postgresql-compatibility-migration-guide.html`,
  statements: `${guide}working-with-postgresql-compatibility-supported-sql-subsets.html`,
  types: `${guide}working-with-postgresql-compatibility-supported-data-types.html`,
  indexes: `${guide}working-with-create-index-async.html`,
  transactions: `${guide}working-with-ddl.html`,
  concurrency: `${guide}working-with-concurrency-control.html`,
  quotas: `${guide}CHAP_quotas.html`,
  grammar: 'https://www.postgresql.org/docs/16/sql-syntax.html',
  psql: 'https://www.postgresql.org/docs/16/app-psql.html',
} as const;

export type DocumentationPage = keyof typeof documentationPages;

export interface Fix {
  readonly level: FixLevel;
  readonly edits: readonly Edit[];
  /** Left for the report: the text no longer says it, or says it differently. */
  readonly loses?: string | undefined;
}

/** Of one round: places are those of the text of the round. */
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
