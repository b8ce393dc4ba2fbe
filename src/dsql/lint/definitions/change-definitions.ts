/** Rules about indexes, ALTER, roles and queries. */
import type { RuleDefinition } from '../rule-definition.js';

export const changeRules = {
  'index-async': {
    severity: 'error',
    reason: 'Indexes of existing tables are built in the background.',
    advice: 'The fix writes CREATE INDEX ASYNC. Wait with CALL sys.wait_for_job(job_id).',
    fix: 'safe',
    page: 'indexes',
  },
  'index-concurrently': {
    severity: 'error',
    reason: 'DSQL has no CONCURRENTLY.',
    advice: 'The fix writes ASYNC, which blocks no transaction; DROP INDEX needs neither.',
    fix: 'safe',
    page: 'indexes',
  },
  'index-method': {
    severity: 'error',
    reason: 'Indexes have no method.',
    advice:
      'The fix takes USING btree out, safely, and drops indexes of gin, gist, brin, spgist and extensions.',
    fix: 'safe',
    page: 'indexes',
  },
  'index-sort-order': {
    severity: 'error',
    reason: 'Keys of an index have no ASC and DESC.',
    advice:
      'The fix takes them out, safely for ASC. An index is read in both directions; only mixed orders are lost.',
    fix: 'safe',
    page: 'indexes',
  },
  'index-operator-class': {
    severity: 'error',
    reason: 'Keys of an index have no operator class.',
    advice:
      'The fix takes it out, safely where it is the default or text_pattern_ops: DSQL compares bytes anyway.',
    fix: 'safe',
    page: 'indexes',
  },
  'index-expression': {
    severity: 'error',
    reason: 'This DSQL has no indexes on expressions.',
    advice: 'Index a generated column.',
    until: 'expression indexes',
    page: 'indexes',
  },
  'index-partial': {
    severity: 'error',
    reason: 'This DSQL has no partial indexes.',
    advice: 'The fix makes it a whole one, unless it is unique.',
    fix: 'unsafe',
    until: 'partial indexes',
    page: 'indexes',
  },
  'alter-index': {
    severity: 'error',
    reason: 'DSQL does not alter indexes.',
    advice: 'Drop the index and create it again.',
    page: 'statements',
  },
  'add-column-constraint': {
    severity: 'error',
    reason: 'ADD COLUMN takes a name and a type only.',
    advice:
      'The fix adds the column, then SET DEFAULT and an UPDATE, NOT NULL as a CHECK, and constraints as NOT VALID with a validation.',
    fix: 'unsafe',
    page: 'statements',
  },
  'add-primary-key': {
    severity: 'error',
    reason: 'A primary key is part of CREATE TABLE.',
    advice: 'The fix moves it there when the same file creates the table.',
    fix: 'safe',
    page: 'statements',
  },
  'add-unique': {
    severity: 'error',
    reason: 'A UNIQUE constraint can not be added to a table.',
    advice:
      'The fix moves it into CREATE TABLE of the same file, or else (unsafe) creates a unique index of its name.',
    fix: 'safe',
    page: 'statements',
  },
  'add-check': {
    severity: 'error',
    reason: 'CHECK is added NOT VALID; before 2026-08-03 not at all.',
    advice: 'The fix adds NOT VALID and ALTER TABLE ASYNC ... VALIDATE CONSTRAINT.',
    fix: 'safe',
    page: 'statements',
  },
  'add-foreign-key': {
    severity: 'error',
    reason: 'FOREIGN KEY is added NOT VALID; before 2026-08-26 not at all.',
    advice: 'The fix adds NOT VALID and ALTER TABLE ASYNC ... VALIDATE CONSTRAINT.',
    fix: 'safe',
    page: 'statements',
  },
  'validate-constraint': {
    severity: 'error',
    reason: 'Constraints are validated in the background.',
    advice: 'The fix writes ALTER TABLE ASYNC.',
    fix: 'safe',
    page: 'statements',
  },
  'alter-column-type': {
    severity: 'error',
    reason: 'The type of a column can not be changed.',
    advice: 'Add a column, copy the values in batches, drop the old one and rename.',
    page: 'statements',
  },
  'set-not-null': {
    severity: 'error',
    reason: 'NOT NULL can not be set on a column that exists.',
    advice: 'The fix adds CHECK (column IS NOT NULL) NOT VALID and validates it.',
    fix: 'unsafe',
    page: 'statements',
  },
  'alter-table': {
    severity: 'error',
    reason: 'DSQL does not have this form of ALTER TABLE, VIEW or SEQUENCE, or not yet.',
    advice: 'See the profiles for the day from which it does, or create the object anew.',
    page: 'statements',
  },
  'unsupported-object': {
    severity: 'error',
    reason: 'DSQL does not drop, rename, move or reassign objects of this kind.',
    advice: 'Take the statement out.',
    page: 'statements',
  },
  'owner-change': {
    severity: 'warning',
    reason: 'The new owner is a role that the file does not create.',
    advice: 'Create the role first. convert takes the statement out.',
    fix: 'convert',
    page: 'statements',
  },
  'role-option': {
    severity: 'error',
    reason:
      'Roles have LOGIN and memberships, but no password and no other attributes: clients log in with IAM.',
    advice: "The fix takes the options out. Then AWS IAM GRANT role TO 'arn'.",
    fix: 'unsafe',
    page: 'unsupported',
  },
  'create-user': {
    severity: 'error',
    reason: 'DSQL has CREATE ROLE only.',
    advice: 'The fix writes CREATE ROLE ... WITH LOGIN.',
    fix: 'unsafe',
    page: 'unsupported',
  },
  'locking-clause': {
    severity: 'error',
    reason:
      'Rows are locked FOR UPDATE, and since 2026-08-25 FOR KEY SHARE; FOR SHARE and FOR NO KEY UPDATE are refused.',
    advice:
      'The fix writes FOR UPDATE, which conflicts with more. Often no lock is needed: fence the write with a version.',
    fix: 'unsafe',
    page: 'concurrency',
  },
  'for-update-rows': {
    severity: 'error',
    reason: 'This DSQL locks rows of a single table, by an equality on each column of the primary key.',
    advice: 'Lock the row of one table by its key, and read the others in a second query.',
    until: 'FOR UPDATE on any rows',
    page: 'concurrency',
  },
  'table-sample': {
    severity: 'error',
    reason: 'DSQL has no TABLESAMPLE.',
    advice: 'Filter by a hash or range of the key.',
    page: 'unsupported',
  },
  'unsupported-function': {
    severity: 'error',
    reason:
      'DSQL does not have this function: advisory locks, sizes, backends, large objects, lastval and others.',
    advice: 'Advisory locks: a row and FOR UPDATE, or a lease. lastval: RETURNING.',
    page: 'unsupported',
  },
  'text-search': {
    severity: 'error',
    reason: 'DSQL has no text search configurations besides simple.',
    advice: "Use 'simple', or a search service.",
    page: 'unsupported',
  },
  'unsupported-statement': {
    severity: 'error',
    reason: 'DSQL does not have this statement.',
    advice: 'Take it out, or do the work in the application.',
    page: 'unsupported',
  },
  'unknown-suppression': {
    severity: 'warning',
    reason: 'headgate-ignore names no rule, or one that does not exist.',
    advice: 'Write the id of a rule: -- headgate-ignore index-async',
    page: 'grammar',
  },
} as const satisfies Readonly<Record<string, RuleDefinition>>;
