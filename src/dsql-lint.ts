/** `headgate/dsql-lint`: what Aurora DSQL refuses in an SQL text, and how to fix it. Loads PostgreSQL's parser. */
export { ParserMissingError } from './dialect/parser.js';
export type { FindingStatus, FixReport, LintFinding, LintReport } from './dsql/lint/findings.js';
export { TooDeepError } from './dsql/lint/inspect.js';
export { convertSql, type FixOptions, fixSql, type LintOptions, lintSql } from './dsql/lint/lint-sql.js';
export type { FixLevel, Severity } from './dsql/lint/rule-definition.js';
export { type LintRule, lintRules } from './dsql/lint/rules.js';
