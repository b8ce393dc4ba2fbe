/** Rules about the text, transactions, parameters and whole statements. */
import type { RuleDefinition } from '../rule-definition.js';

export const statementRules = {
  'syntax-error': {
    severity: 'error',
    reason: "PostgreSQL's grammar does not accept the text.",
    advice: 'Correct it. Statements before and behind it are checked all the same.',
    page: 'grammar',
  },
  'nested-too-deep': {
    severity: 'error',
    reason: 'The statement nests deeper than the parser can follow.',
    advice: 'Split the expression.',
    page: 'quotas',
  },
  'psql-command': {
    severity: 'warning',
    reason: 'Lines such as \\connect and \\restrict are commands of psql; other clients fail on them.',
    advice: 'convert takes them out.',
    fix: 'convert',
    page: 'psql',
  },
  'copy-from-stdin': {
    severity: 'warning',
    reason: 'Only psql sends the rows that stand behind COPY ... FROM stdin.',
    advice: 'convert writes INSERT statements of at most 1,000 rows.',
    fix: 'convert',
    page: 'statements',
  },
  'transaction-row-limit': {
    severity: 'error',
    reason: 'A transaction changes at most 3,000 rows.',
    advice: 'The fix splits the INSERT into batches of 1,000 rows, and the transaction before the limit.',
    fix: 'unsafe',
    page: 'quotas',
  },
  'write-without-where': {
    severity: 'warning',
    reason: 'UPDATE and DELETE without WHERE fail on a table of more than 3,000 rows.',
    advice: 'Change the rows in batches, by ranges of the key.',
    page: 'quotas',
  },
  'ddl-in-transaction': {
    severity: 'error',
    reason:
      'A transaction holds one DDL statement, and no INSERT, UPDATE, DELETE or locking SELECT beside it.',
    advice:
      'The fix writes COMMIT and BEGIN between them; the statements no longer succeed or fail together.',
    fix: 'unsafe',
    page: 'transactions',
  },
  savepoint: {
    severity: 'error',
    reason: 'DSQL has no savepoints.',
    advice: 'Make the part that may fail a transaction of its own.',
    page: 'unsupported',
  },
  'prepared-transaction': {
    severity: 'error',
    reason: 'DSQL has no two-phase commit.',
    advice: 'Make the work idempotent, or write an outbox table in the same transaction.',
    page: 'unsupported',
  },
  'isolation-level': {
    severity: 'error',
    reason: 'Every transaction is REPEATABLE READ.',
    advice: 'The fix asks for REPEATABLE READ. Lock with FOR UPDATE what SERIALIZABLE would have protected.',
    fix: 'unsafe',
    page: 'concurrency',
  },
  'set-transaction': {
    severity: 'error',
    reason: 'SET TRANSACTION and SET SESSION CHARACTERISTICS are refused.',
    advice: 'Give modes to BEGIN: BEGIN READ ONLY. The fix takes the statement out.',
    fix: 'unsafe',
    page: 'statements',
  },
  'session-parameter': {
    severity: 'error',
    reason: 'DSQL sets few parameters; all others are refused.',
    advice:
      'The fix takes the statement out: as safe where it has no effect on DSQL, as pg_dump writes them. Timeouts belong to the client.',
    fix: 'safe',
    page: 'statements',
  },
  'set-config': {
    severity: 'error',
    reason: 'The function set_config is refused.',
    advice: "The fix writes SET search_path for pg_dump's call. Use SET for others.",
    fix: 'safe',
    page: 'unsupported',
  },
  truncate: {
    severity: 'error',
    reason: 'DSQL has no TRUNCATE.',
    advice:
      'The fix writes DELETE, which deletes at most 3,000 rows in a transaction. DROP and CREATE the table when there are more.',
    fix: 'unsafe',
    page: 'unsupported',
  },
  extension: {
    severity: 'error',
    reason: 'DSQL has no extensions.',
    advice:
      'The fix takes the statement out. gen_random_uuid() needs none; other functions of extensions have to be replaced.',
    fix: 'unsafe',
    page: 'unsupported',
  },
  'extension-type': {
    severity: 'warning',
    reason: 'The type belongs to an extension, and DSQL has no extensions.',
    advice: 'The fix makes it text. citext: compare lower() of both sides, and index the expression.',
    fix: 'unsafe',
    page: 'types',
  },
  'extension-function': {
    severity: 'warning',
    reason: 'The function belongs to the extension uuid-ossp, and DSQL has no extensions.',
    advice: 'The fix writes gen_random_uuid() for uuid_generate_v4().',
    fix: 'safe',
    page: 'unsupported',
  },
  database: {
    severity: 'error',
    reason: 'A cluster has one database, postgres.',
    advice: 'Use a schema, or another cluster.',
    page: 'unsupported',
  },
  tablespace: {
    severity: 'error',
    reason: 'DSQL has no tablespaces.',
    advice: 'The fix takes the clause out.',
    fix: 'safe',
    page: 'unsupported',
  },
  'storage-parameters': {
    severity: 'error',
    reason: 'Tables, indexes and constraints have no storage parameters.',
    advice: 'The fix takes them out; nothing in DSQL depends on them.',
    fix: 'safe',
    page: 'unsupported',
  },
  'foreign-data': {
    severity: 'error',
    reason: 'DSQL has no foreign tables, servers or wrappers.',
    advice: 'Read the other source from the application.',
    page: 'unsupported',
  },
  'create-table-as': {
    severity: 'error',
    reason: 'DSQL has neither CREATE TABLE AS nor SELECT INTO.',
    advice: 'CREATE TABLE with its columns, then INSERT ... SELECT, at most 3,000 rows at a time.',
    page: 'unsupported',
  },
  'materialized-view': {
    severity: 'error',
    reason: 'DSQL has no materialized views.',
    advice:
      'The fix makes it a view, and takes REFRESH out. Keep a table up to date where the view is too slow.',
    fix: 'unsafe',
    page: 'unsupported',
  },
  trigger: {
    severity: 'error',
    reason: 'DSQL has no triggers.',
    advice:
      'Do it in the application, in the same transaction; a generated column where it is an expression of the row.',
    page: 'unsupported',
  },
  'row-level-security': {
    severity: 'error',
    reason: 'DSQL has no policies and no row-level security.',
    advice: 'Use views, or a condition in each query, and grants.',
    page: 'unsupported',
  },
  'do-block': {
    severity: 'error',
    reason: 'DSQL has no DO blocks and no PL/pgSQL.',
    advice:
      'Write out the statements that the block runs; the fix does it for blocks that only ignore duplicate objects, as Drizzle writes them.',
    fix: 'unsafe',
    page: 'unsupported',
  },
  'function-language': {
    severity: 'error',
    reason: 'Functions are written in SQL only.',
    advice: 'Rewrite the body in SQL, or move it into the application.',
    page: 'unsupported',
  },
  procedure: {
    severity: 'error',
    reason: 'DSQL has no procedures of your own.',
    advice: 'Move it into the application.',
    page: 'unsupported',
  },
  merge: {
    severity: 'error',
    reason: 'DSQL has no MERGE.',
    advice: 'INSERT ... ON CONFLICT DO UPDATE, with a DELETE of its own where needed.',
    page: 'unsupported',
  },
  maintenance: {
    severity: 'error',
    reason:
      'VACUUM, REINDEX, CLUSTER, CHECKPOINT, LOAD and ANALYZE without a table are refused; DSQL does this work itself.',
    advice: 'The fix takes the statement out.',
    fix: 'safe',
    page: 'unsupported',
  },
  'listen-notify': {
    severity: 'error',
    reason: 'DSQL has no LISTEN and NOTIFY.',
    advice: 'Use a queue, or change data capture.',
    page: 'unsupported',
  },
  'lock-table': {
    severity: 'error',
    reason: 'DSQL has no table locks.',
    advice:
      'The fix takes the statement out. Conflicts are found at COMMIT: lock rows with FOR UPDATE, and retry.',
    fix: 'unsafe',
    page: 'concurrency',
  },
  'prepared-statement': {
    severity: 'error',
    reason: 'SQL-level PREPARE, EXECUTE and DEALLOCATE of a name are refused; DISCARD is, too.',
    advice: "Use the driver's prepared statements, which work. RESET ALL in place of DISCARD ALL.",
    page: 'unsupported',
  },
  cursor: {
    severity: 'error',
    reason: 'DSQL has no SQL-level cursors.',
    advice: 'Page by key: WHERE id > $1 ORDER BY id LIMIT n.',
    page: 'unsupported',
  },
  'copy-file': {
    severity: 'error',
    reason: 'COPY reads and writes no files of the server.',
    advice: 'COPY ... FROM STDIN by a client, at most 3,000 rows at a time.',
    page: 'unsupported',
  },
} as const satisfies Readonly<Record<string, RuleDefinition>>;
