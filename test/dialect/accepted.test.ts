// Accepted statements have no refusal, and the kind that the session acts on.
import { beforeAll, expect, test } from 'vitest';
import { createDialect } from '../../src/dialect/dialect.js';
import type { Dialect, JudgedStatement, StatementKind } from '../../src/dialect/judgement.js';
import {
  acceptedDdl,
  acceptedDrops,
  acceptedOrmTexts,
  acceptedQueries,
  acceptedTransactions,
} from './accepted.js';

let dialect: Dialect;
beforeAll(async () => {
  dialect = await createDialect();
});

function judgeOne(sql: string): JudgedStatement {
  const { statements, isMalformed } = dialect.judge(sql);
  expect(isMalformed).toBe(false);
  expect(statements).toHaveLength(1);
  return statements[0] as JudgedStatement;
}

test.each([...acceptedDdl, ...acceptedDrops])(
  'Accepted statements: The dialect accepts the DDL %s',
  (sql) => {
    expect(judgeOne(sql)).toMatchObject({ refusal: undefined, kind: 'ddl' });
  },
);

test.each([...acceptedQueries, ...acceptedTransactions, ...acceptedOrmTexts])(
  'Accepted statements: The dialect accepts %s',
  (sql) => {
    expect(judgeOne(sql).refusal).toBeUndefined();
  },
);

const kinds: readonly (readonly [StatementKind, string])[] = [
  ['read', 'SELECT 1'],
  ['read', 'VALUES (1)'],
  ['read', 'SHOW timezone'],
  ['read', 'COPY t TO STDOUT'],
  ['read', 'EXPLAIN DELETE FROM t'],
  ['read', 'EXPLAIN (ANALYZE false) DELETE FROM t'],
  ['read', 'EXPLAIN ANALYZE SELECT 1'],
  ['write', 'EXPLAIN ANALYZE DELETE FROM t'],
  ['write', 'EXPLAIN (ANALYZE) DELETE FROM t'],
  ['write', 'EXPLAIN (ANALYZE on) DELETE FROM t'],
  ['write', 'EXPLAIN (ANALYZE 1) DELETE FROM t'],
  ['read', 'EXPLAIN (ANALYZE 0) DELETE FROM t'],
  ['write', 'INSERT INTO t VALUES (1)'],
  ['write', 'WITH x AS (UPDATE t SET a = 1 RETURNING 1) SELECT * FROM x'],
  ['write', 'COPY t FROM STDIN'],
  ['write', 'COPY (DELETE FROM t RETURNING a) TO STDOUT'],
  ['ddl', 'CREATE VIEW v AS SELECT 1'],
  ['ddl', 'GRANT SELECT ON t TO r'],
  ['ddl', "COMMENT ON TABLE t IS 'x'"],
  ['ddl', "AWS IAM GRANT r TO 'arn:aws:iam::1:role/x'"],
  ['session', 'SET timezone = 1'],
  ['session', 'RESET ALL'],
  ['session', 'DEALLOCATE ALL'],
  ['session', 'SET CONSTRAINTS ALL IMMEDIATE'],
  ['begin', 'START TRANSACTION'],
  ['commit', 'END'],
  ['rollback', 'ABORT'],
  ['analyze', 'ANALYZE t'],
  ['call', "CALL sys.wait_for_job('x')"],
];

test.each(kinds)('The kind %s is that of %s', (kind, sql) => {
  expect(judgeOne(sql)).toMatchObject({ kind, refusal: undefined });
});

test('Transactions BEGIN tells that it is read only by its last mode', () => {
  expect(judgeOne('BEGIN READ ONLY').isReadOnly).toBe(true);
  expect(judgeOne('BEGIN READ ONLY, READ WRITE').isReadOnly).toBe(false);
  expect(judgeOne('BEGIN').isReadOnly).toBe(false);
});

test('Transactions COMMIT AND CHAIN and ROLLBACK AND CHAIN are chained', () => {
  expect(judgeOne('COMMIT AND CHAIN').isChained).toBe(true);
  expect(judgeOne('ROLLBACK AND CHAIN').isChained).toBe(true);
  expect(judgeOne('COMMIT AND NO CHAIN').isChained).toBe(false);
});

test.each([
  ['SHOW server_version', { column: 'server_version', value: '16.15', tag: 'SHOW' }],
  ['show "SERVER_VERSION"', { column: 'server_version', value: '16.15', tag: 'SHOW' }],
  ['SHOW server_version_num', { column: 'server_version_num', value: '160015', tag: 'SHOW' }],
  ['SELECT version()', { column: 'version', value: 'PostgreSQL 16', tag: 'SELECT 1' }],
  ['SELECT pg_catalog.version() AS v', { column: 'v', value: 'PostgreSQL 16', tag: 'SELECT 1' }],
  ['SHOW timezone', undefined],
  ['SELECT version(), 1', undefined],
  ['SELECT version() FROM t', undefined],
  ['SELECT version() UNION SELECT version()', undefined],
])('Own answers: The stand-in answers %s itself where DSQL differs from PostgreSQL', (sql, answer) => {
  expect(judgeOne(sql).ownAnswer).toEqual(answer);
});

test.each([
  [
    'CREATE TABLE t (a numeric, b decimal NOT NULL)',
    'CREATE TABLE t (a numeric(18,6), b decimal(18,6) NOT NULL)',
  ],
  ['ALTER TABLE "é" ADD é dec', 'ALTER TABLE "é" ADD é dec(18,6)'],
  ['CREATE TABLE t (a pg_catalog . "numeric")', 'CREATE TABLE t (a pg_catalog . "numeric"(18,6))'],
  ['CREATE DOMAIN d AS numeric', 'CREATE DOMAIN d AS numeric(18,6)'],
  ['CREATE TABLE t (a numeric(5))', 'CREATE TABLE t (a numeric(5))'],
  ['SELECT 1::numeric', 'SELECT 1::numeric'],
  ['CREATE INDEX ASYNC i ON t (a)', 'CREATE INDEX       i ON t (a)'],
  ['SET disable_sync_create_index = on', 'SET dsql.disable_sync_create_index = on'],
])('Rewritten texts PostgreSQL is given %s in its own words', (source, sql) => {
  expect(judgeOne(source)).toMatchObject({ source, sql, refusal: undefined });
});

test.each(['application_name', 'TimeZone', 'search_path', 'client_encoding', 'enable_seqscan'])(
  'Startup parameters: A client may set %s at startup',
  (name) => {
    expect(dialect.judgeParameter(name, 'x')).toBeUndefined();
  },
);

test.each(['statement_timeout', 'role', 'default_transaction_read_only', 'replication', 'constructor'])(
  'Startup parameters: A client may not set %s at startup',
  (name) => {
    expect(dialect.judgeParameter(name, '1')).toEqual({
      code: '0A000',
      message: `setting configuration parameter "${name}" not supported`,
    });
  },
);

test.each([
  'more than 10 schemas not allowed',
  'creating more than 1000 tables not allowed',
  'creating more than 5000 views not allowed',
  'creating more than 5000 sequences not allowed',
  'more than 24 indexes per table are not allowed',
  'tables can have at most 255 columns',
  'more than 5 extended statistics per table are not allowed',
])('The limit check can answer: %s', (message) => {
  expect(dialect.limitCheck).toContain(`'${message}'`);
});
