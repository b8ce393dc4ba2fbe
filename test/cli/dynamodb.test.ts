// `headgate dynamodb`, on DynamoDB Local.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasJava, startDynamo } from '../../scripts/lib/dynamodb-local.mjs';
import { dynamodbCommand } from '../../src/cli/dynamodb.js';
import { UsageError } from '../../src/cli/usage-error.js';
import { DynamoTable } from '../../src/coordination/dynamodb/dynamo-table.js';
import { leaseChange, leaseKeys } from '../../src/coordination/dynamodb/lease-items.js';
import type { Change } from '../../src/coordination/dynamodb/table.js';

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const said = { out: '', err: '' };
  const code = await dynamodbCommand.run(args, {
    out: (piece) => {
      said.out += piece;
    },
    err: (piece) => {
      said.err += piece;
    },
    hasColours: false,
    showsProgress: false,
  });
  return { code, ...said };
}

test('headgate dynamodb prints a policy with the permissions that are used, and no others', async () => {
  const { out } = await run(
    'policy',
    '--table',
    'connections',
    '--region',
    'eu-west-1',
    '--account',
    '123456789012',
  );
  expect(JSON.parse(out)).toEqual({
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Action: ['dynamodb:GetItem', 'dynamodb:UpdateItem', 'dynamodb:DeleteItem', 'dynamodb:Scan'],
        Resource: 'arn:aws:dynamodb:eu-west-1:123456789012:table/connections',
      },
    ],
  });
});

test('headgate dynamodb says what is missing, or what was most likely meant', () => {
  expect(() => dynamodbCommand.run(['status'], {} as never)).toThrow(new UsageError('status needs --table'));
  expect(() => dynamodbCommand.run(['stats', '--table', 'x'], {} as never)).toThrow(/Did you mean status\?/);
});

describe.runIf(hasJava)('headgate dynamodb on a table', () => {
  let dynamo: Awaited<ReturnType<typeof startDynamo>>;
  let where: string[];

  beforeAll(async () => {
    process.env['AWS_ACCESS_KEY_ID'] = 'test';
    process.env['AWS_SECRET_ACCESS_KEY'] = 'test';
    dynamo = await startDynamo();
    where = ['--table', 'connections', '--region', 'us-east-1', '--endpoint-url', dynamo.url];
  });
  afterAll(() => dynamo?.stop());

  const write = (change: Change): Promise<unknown> => {
    const table = new DynamoTable({ table: 'connections', client: dynamo.client() });
    return new Promise((resolve) => table.write(change, resolve));
  };
  const lease = (leaseId: string, slots: number): Change => {
    const { leases } = leaseKeys('db.example');
    const written = {
      instance: leaseId,
      service: 'orders',
      used: slots,
      needs: { callers: slots - 1, total: slots + 1, claimants: 2 },
      epoch: 1,
      seq: 0,
    };
    const nowMs = Date.now();
    return leaseChange({
      key: leases + leaseId,
      ...written,
      slots,
      nowMs,
      createdMs: nowMs,
      expiresMs: nowMs + 60_000,
    });
  };

  test('headgate dynamodb setup creates the table, and may be called again', async () => {
    expect(await run('setup', ...where)).toMatchObject({
      code: 0,
      out: 'The table connections is created; its TTL on ttl_epoch is switched on.\n',
    });
    expect(await run('setup', ...where)).toMatchObject({
      code: 0,
      out: 'The table connections was there already; its TTL on ttl_epoch was on already.\n',
    });
    expect(await run('status', ...where)).toMatchObject({ code: 0, out: 'Nothing is kept in this table.\n' });
  });

  test('headgate dynamodb shows the holders, reports mistakes, and repairs them only when told to', async () => {
    await write(lease('a', 3));
    await write(lease('b', 2));
    await write({
      key: leaseKeys('db.example').counter,
      set: { active: 7, version: 4, connection_limit: 10 },
    });
    const status = await run('status', ...where);
    expect(status.code).toBe(1);
    expect(status.out).toMatch(/slots {6}7 of 10, 2 instances\n {2}WRONG {6}the leases add up to 5/);
    expect(status.out).toMatch(/a {9}orders {3}3 {6}3 {5}2 {8}4 {7}2 {6}in \d/);
    const dry = await run('reconcile', ...where);
    expect(dry.code).toBe(1);
    expect(dry.out).toContain(
      'the counter says 7, and the leases add up to 5; it would be set to 5.\nNothing was changed.',
    );
    expect((await run('status', ...where)).code).toBe(1);
    const done = await run('reconcile', '--yes', ...where);
    expect(done.code).toBe(0);
    expect(JSON.parse((await run('status', '--json', ...where)).out)).toMatchObject({
      endpoints: [{ endpoint: 'db.example', drift: 0, counter: { active: 5, version: 5 } }],
    });
  });

  test('headgate dynamodb says in a line that there is no such table', async () => {
    const elsewhere = ['--table', 'nowhere', ...where.slice(2)];
    await expect(run('status', ...elsewhere)).rejects.toThrow(
      /^DynamoDB could not be asked \(misconfigured\): /,
    );
  });
});
