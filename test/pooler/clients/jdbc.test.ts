import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { findJdbcDriver, java } from './java.js';
import { mostSessionsWhile } from './programs.js';

const poolSize = 2;
const workload = fileURLToPath(new URL('jdbc/Workload.java', import.meta.url));

/** Each is a line of the workload; all of them run in one Java process, whose start takes longer than they do. */
const checks: Readonly<Record<string, string>> = {
  'prepared statements, threshold 1': 'statements prepared on the server at once',
  'prepared statements, threshold 5': 'statements prepared on the server at the fifth use',
  'prepared statements, threshold -1': 'statements prepared on the server for binary results',
  'prepared statements, threshold 0': 'statements never prepared on the server',
  'query mode simple': 'everything by simple queries',
  'query mode extended': 'everything by extended queries',
  'query mode extendedForPrepared': 'simple queries for plain statements',
  'query mode extendedCacheEverything': 'plain statements prepared on the server, too',
  transactions: 'transactions, savepoints, isolation levels and read only',
  'savepoint for each statement': 'a savepoint around each statement',
  batches: 'batches',
  'batch that fails': 'batches that fail',
  'batch rewritten': 'batches rewritten into inserts of many rows',
  'large objects': 'large objects',
  copy: 'COPY both ways, as text and binary',
  'copy that fails': 'COPY that fails and COPY that is cancelled',
  'fetch size': 'two results read at a time, some rows at once',
  cancel: 'cancel',
  'query timeout': 'a time limit for a statement',
  'binary transfer': 'values in binary form',
  'many connections': 'twelve connections at once, whose transfers add up',
  'deallocate and discard': 'DEALLOCATE ALL and DISCARD ALL',
  'changed table': 'a table that changes under a prepared statement',
  'settings and meta data': 'settings of the connection and meta data',
  notifications: 'notifications',
  'generated keys and calls': 'generated keys and calls of functions',
};

const driver = findJdbcDriver();

describe.runIf(driver !== undefined)('JDBC in transaction mode', () => {
  let db: TestDatabase;
  let pooler: TestPooler;
  const outcomes = new Map<string, string>();
  let complaint = '';
  let mostSessions = 0;

  beforeAll(async () => {
    db = await withDatabase();
    pooler = await startTestPooler(db, {
      pooling: { poolSize, maxPreparedStatements: 8, prepareUnnamed: true },
    });
    mostSessions = await mostSessionsWhile(db, async () => {
      for (const line of (await runWorkload()).split('\n')) {
        const at = line.indexOf(': ');
        outcomes.set(line.slice(0, at), line.slice(at + 2));
      }
    });
  }, 60_000);
  afterAll(async () => {
    await pooler.stop();
    await db.drop();
  });

  function runWorkload(): Promise<string> {
    const { host, port, database, user, password } = pooler;
    // Most of the time goes into starting; the second compiler would not pay.
    const flags = ['-XX:TieredStopAtLevel=1', '-Xshare:auto', '-cp', driver as string];
    const args = [...flags, workload, host, String(port), database, user, password];
    return new Promise((resolve) => {
      execFile(java, args, { timeout: 55_000 }, (error, stdout, stderr) => {
        complaint = error === null ? '' : `${error.message}\n${stderr}`;
        resolve(stdout);
      });
    });
  }

  test.each(Object.entries(checks))('%s: it can rely on %s', (name) => {
    expect(outcomes.get(name) ?? complaint).toBe('ok');
  });

  test('a program with JDBC runs to its end, on no more servers than the pool has', () => {
    expect(complaint).toBe('');
    expect(mostSessions).toBeLessThanOrEqual(poolSize);
  });
});
