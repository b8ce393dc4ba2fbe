// The table in memory, on which the protocol is tested and simulated, does what DynamoDB does.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasJava, startDynamo } from '../../../scripts/lib/dynamodb-local.mjs';
import { DynamoTable } from '../../../src/coordination/dynamodb/dynamo-table.js';
import type { Change, ReadReply, Test, WriteReply } from '../../../src/coordination/dynamodb/table.js';
import { MemoryTable } from '../../../src/simulator/leases/dynamodb/memory-table.js';

const attribute = fc.constantFrom('active', 'count', 'name');
const value = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constantFrom('a', 'b'));
const oneTest: fc.Arbitrary<Test> = fc.oneof(
  fc.record({
    attribute,
    is: fc.constantFrom('=' as const, '<' as const, '<=' as const, '>' as const, '>=' as const),
    than: value,
  }),
  fc.record({
    attribute: fc.constantFrom('active', 'count', 'name', 'pk'),
    is: fc.constant('missing' as const),
  }),
);
const when = fc.option(
  fc.array(fc.array(oneTest, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 2 }),
  {
    nil: undefined,
  },
);
// A text can't be added to, so that what is added to is never set to one.
const change = (key: string): fc.Arbitrary<Change> =>
  fc.oneof(
    fc.record({ key: fc.constant(key), when, isRemoval: fc.constant(true) }),
    fc.record({
      key: fc.constant(key),
      when,
      set: fc.record({ name: value }),
      add: fc.record({ count: fc.integer({ min: -2, max: 2 }) }),
    }),
    fc.record({ key: fc.constant(key), when, set: fc.record({ active: fc.integer({ min: -2, max: 2 }) }) }),
  );
const changes = fc.oneof(
  fc.tuple(fc.constantFrom('x', 'y').chain(change)),
  fc.tuple(change('x'), change('y')),
);

describe.runIf(hasJava)('a table in DynamoDB', () => {
  let dynamo: Awaited<ReturnType<typeof startDynamo>>;
  let table: DynamoTable;
  let lastTable = 0;

  beforeAll(async () => {
    dynamo = await startDynamo();
  });
  afterAll(() => dynamo?.stop());

  const fresh = async (): Promise<void> => {
    const name = `table-${++lastTable}`;
    await dynamo.createTable(name);
    table = new DynamoTable({ table: name, client: dynamo.client() });
  };
  const write = (...made: Change[]): Promise<WriteReply> =>
    new Promise((resolve) => {
      if (made.length === 1) table.write(made[0] as Change, resolve);
      else table.writeAll(made, `${Math.random()}`, resolve);
    });
  const list = (prefix: string): Promise<ReadReply<readonly object[]>> =>
    new Promise((resolve) => table.list(prefix, resolve));

  test('changes, refuses and lists exactly as the table in memory does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(changes, { minLength: 1, maxLength: 12 }), async (steps) => {
        await fresh();
        const memory = new MemoryTable();
        for (const step of steps) {
          const findings = memory.apply(step);
          const reply = await write(...step);
          expect(reply).toMatchObject(
            findings === undefined ? { kind: 'done' } : { kind: 'refused', findings: findings.map(sameAs) },
          );
        }
        const reply = await list('');
        if (reply.kind !== 'done') throw reply.error;
        expect(new Set(reply.value)).toEqual(new Set(memory.list('')));
      }),
      { numRuns: 15 },
    );
  });

  test('the DynamoDB table tells the time of the server, in whole seconds', async () => {
    await fresh();
    const before = Math.floor(Date.now() / 1_000) * 1_000;
    const replies = [
      await write({ key: 'x' }),
      await write({ key: 'x', when: [[{ attribute: 'pk', is: 'missing' }]] }),
    ];
    for (const reply of replies) {
      if (reply.kind === 'failed') throw reply.error;
      expect(reply.servedAtMs % 1_000).toBe(0);
      expect(reply.servedAtMs).toBeGreaterThanOrEqual(before);
      expect(reply.servedAtMs).toBeLessThanOrEqual(Date.now());
    }
  });

  test('the DynamoDB table says that a table which is not there is a mistake in the configuration', async () => {
    table = new DynamoTable({ table: 'nowhere', client: dynamo.client() });
    expect(await write({ key: 'x' })).toMatchObject({ kind: 'failed', reason: 'misconfigured' });
  });

  test('the DynamoDB table says that a server which can not be reached is unavailable', async () => {
    table = new DynamoTable({ table: 'nowhere', client: dynamo.client('http://127.0.0.1:1') });
    expect(await write({ key: 'x' })).toMatchObject({ kind: 'failed', reason: 'unavailable' });
  });
});

/** An item that is absent is not told of. */
function sameAs({ isRefused, item }: { isRefused: boolean; item: object | undefined }): object {
  return item === undefined ? { isRefused } : { isRefused, item };
}
