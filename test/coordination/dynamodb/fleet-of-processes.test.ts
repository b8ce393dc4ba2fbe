// A real fleet: processes with pools, their leases in DynamoDB Local, and a server that counts sockets and knows of no lease.
import { describe, expect, test } from 'vitest';
import { storm, violations } from '../../../bench/dynamodb/storm.mjs';
import { hasJava } from '../../../scripts/lib/dynamodb-local.mjs';

describe.runIf(hasJava)('ten processes with fifty connections each, and a limit of 200', () => {
  test('processes that share a table never have more connections than the limit, while some are killed, some stand still, and answers are lost or come twice', {
    timeout: 180_000,
  }, async () => {
    const result = await storm({ processes: 10, connections: 50, limit: 200, seconds: 7, fillSeconds: 10 });
    // Counted by the server; and counter and leases were the same whenever they were compared.
    expect(violations(result)).toEqual([]);
    // The run has tested something: the limit was reached, and there was a storm.
    expect(result.peak).toBeGreaterThan(100);
    expect(result.audits).toBeGreaterThan(3);
    expect(result.kills + result.pauses).toBeGreaterThan(3);
    const { lost, repeated, conflicts, throttles } = result.faults;
    expect(lost + repeated + conflicts + throttles).toBeGreaterThan(3);
  });
});
