/** The definition of a rule: severity, reason, advice, and the page that documents it. */
import type { Feature } from '../../dialect/profile.js';

/** `error`: DSQL refuses the statement, or will. `warning`: it runs, and may not do what was meant. */
export type Severity = 'error' | 'warning';

/**
 * - `safe`: means the same on DSQL; `--fix` does it.
 * - `unsafe`: loses or changes something; needs `--unsafe`.
 * - `convert`: only makes sense for a whole dump; `convert` does it.
 */
export type FixLevel = 'safe' | 'unsafe' | 'convert';

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
