// A real fleet: processes with pools, their leases in DynamoDB Local, and a server that counts sockets and knows of no lease.
import { describe, expect, it } from 'vitest';
import { storm } from '../../../bench/dynamodb/storm.mjs';
import { hasJava } from '../../../scripts/lib/dynamodb-local.mjs';

describe.runIf(hasJava)('ten processes with fifty connections each, and a limit of 200', () => {
  it('never have more, while some are killed, some stand still, and answers are lost', {
    timeout: 180_000,
  }, async () => {
    const result = await storm({ processes: 10, connections: 50, limit: 200, seconds: 7 });
    expect(result.peak).toBeLessThanOrEqual(200);
    // It was worth it: the limit was reached, and there was a storm.
    expect(result.peak).toBeGreaterThan(100);
    expect(result.kills + result.pauses).toBeGreaterThan(3);
    expect(result.faults.lost + result.faults.conflicts + result.faults.throttles).toBeGreaterThan(3);
  });
});
