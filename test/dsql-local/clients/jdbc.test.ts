// JDBC against the stand-in, with the URL that `headgate dsql-local` prints.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findJdbcDriver, java } from '../../pooler/clients/java.js';
import { startTestDsql, type TestDsql } from '../../support/dsql-local.js';

const program = fileURLToPath(new URL('jdbc/Dsql.java', import.meta.url));
const driver = findJdbcDriver();

describe.runIf(driver !== undefined)('JDBC', () => {
  let dsql: TestDsql;
  const outcomes = new Map<string, string>();
  let complaint = '';

  beforeAll(async () => {
    dsql = await startTestDsql();
    await dsql.run(
      'CREATE TABLE jdbc_rows (id uuid PRIMARY KEY, n int NOT NULL)',
      'CREATE TABLE jdbc_counters (id int PRIMARY KEY, n int NOT NULL)',
      'INSERT INTO jdbc_counters VALUES (1, 0)',
    );
    const { host, port, caFile } = dsql;
    const url = `jdbc:postgresql://${host}:${port}/postgres?user=admin&sslmode=verify-full&sslrootcert=${encodeURI(caFile)}`;
    const token = await dsql.token({ hostname: host });
    for (const line of (await runProgram(url, token)).split('\n')) {
      const at = line.indexOf(': ');
      outcomes.set(line.slice(0, at), line.slice(at + 2));
    }
  }, 60_000);
  afterAll(() => dsql.stop());

  function runProgram(url: string, token: string): Promise<string> {
    // Most of the time goes into starting; the second compiler would not pay.
    const args = ['-XX:TieredStopAtLevel=1', '-Xshare:auto', '-cp', driver as string, program, url, token];
    return new Promise((resolve) => {
      execFile(java, args, { timeout: 55_000 }, (error, stdout, stderr) => {
        complaint = error === null ? '' : `${error.message}\n${stderr}`;
        resolve(stdout);
      });
    });
  }

  test.each([
    'connects',
    'prepared statements, threshold 0',
    'prepared statements, threshold 1',
    'prepared statements, threshold 5',
    'query mode simple',
    'query mode extended',
    'query mode extendedCacheEverything',
    'batches',
    'conflict',
    'refusal',
    'meta data',
    'wrong token',
  ])('%s', (name) => {
    expect(outcomes.get(name) ?? complaint).toBe('ok');
  });

  test('the stand-in under JDBC has met nothing that is neither its own nor a mistake of DSQL', () => {
    expect([complaint, dsql.troubles]).toEqual(['', []]);
  });
});
