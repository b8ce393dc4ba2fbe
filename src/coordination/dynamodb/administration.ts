/** The table work of an operator: create, inspect, and repair a counter. For the command line. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoTable, type DynamoTableOptions, loadSdk, makeClient } from './dynamo-table.js';
import { DynamoCallError } from './errors.js';
import { type Counter, counterOf, type Lease, leaseKeys, leaseOf, repair } from './lease-items.js';
import { rateKey, spokenUntilUs, usPerMs } from './rate-items.js';
import {
  type Failed,
  type Item,
  numberOf,
  type ReadReply,
  type Table,
  textOf,
  type WriteReply,
} from './table.js';

/** The items of one server. */
export interface EndpointState {
  readonly endpoint: string;
  readonly counter: Counter;
  readonly limit: number;
  readonly leases: readonly Lease[];
  /** Difference between the counter and the sum of the leases. */
  readonly drift: number;
  readonly rate: { readonly rate: number; readonly burst: number; readonly aheadMs: number } | undefined;
}

export interface TableState {
  /** By the server's clock, in whole seconds. */
  readonly nowMs: number;
  readonly endpoints: readonly EndpointState[];
}

const counterPrefix = leaseKeys('').counter;
const leasePrefix = 'dsqllease#';
const ratePrefix = 'dsqlconnect#';
const rateSuffix = '#bucket';

/** Reads the counter before the leases: a change in between gives the counter another version, and no repair is made. */
export async function readTable(table: Table): Promise<TableState> {
  const endpoints: EndpointState[] = [];
  const found = await listed(table, 'dsql');
  for (const endpoint of endpointsOf(found.items)) {
    const keys = leaseKeys(endpoint);
    const counter = await readItem(table, keys.counter);
    const { items } = await listed(table, keys.leases);
    const bucket = found.items.find(({ pk }) => pk === rateKey(endpoint));
    endpoints.push(stateOf(endpoint, counter, items, bucket, found.nowMs));
  }
  return { nowMs: found.nowMs, endpoints };
}

async function listed(table: Table, prefix: string): Promise<{ items: readonly Item[]; nowMs: number }> {
  const reply = await new Promise<ReadReply<readonly Item[]>>((resolve) => table.list(prefix, resolve));
  if (reply.kind === 'failed') throw callError(reply);
  return { items: reply.value, nowMs: reply.servedAtMs };
}

async function readItem(table: Table, key: string): Promise<Item | undefined> {
  const reply = await new Promise<ReadReply<Item | undefined>>((resolve) => table.read(key, resolve));
  if (reply.kind === 'failed') throw callError(reply);
  return reply.value;
}

/** An endpoint may have a `#` in it; a lease's id has none. */
function endpointsOf(items: readonly Item[]): string[] {
  const found = new Set<string>();
  for (const key of items.map((item) => textOf(item, 'pk'))) {
    if (key.startsWith(counterPrefix)) found.add(key.slice(counterPrefix.length));
    else if (key.startsWith(leasePrefix)) found.add(key.slice(leasePrefix.length, key.lastIndexOf('#')));
    else if (key.startsWith(ratePrefix) && key.endsWith(rateSuffix))
      found.add(key.slice(ratePrefix.length, -rateSuffix.length));
  }
  return [...found].sort();
}

function stateOf(
  endpoint: string,
  item: Item | undefined,
  items: readonly Item[],
  bucket: Item | undefined,
  nowMs: number,
): EndpointState {
  const counter = counterOf(item);
  const leases = items.map(leaseOf).sort((one, other) => other.slots - one.slots);
  return {
    endpoint,
    counter,
    limit: numberOf(item, 'connection_limit'),
    leases,
    drift: counter.active - leases.reduce((sum, { slots }) => sum + slots, 0),
    rate: bucket && {
      rate: numberOf(bucket, 'rate'),
      burst: numberOf(bucket, 'burst'),
      aheadMs: Math.max(0, spokenUntilUs(bucket) / usPerMs - nowMs),
    },
  };
}

/** Puts the counter of a server right, if no slot has moved since it was read. False when one has. */
export async function repairCounter(
  table: Table,
  { endpoint, counter, drift }: EndpointState,
  nowMs: number,
): Promise<boolean> {
  const change = repair(leaseKeys(endpoint), counter.version, counter.active - drift, nowMs);
  const reply = await new Promise<WriteReply>((resolve) => table.write(change, resolve));
  if (reply.kind === 'failed') throw callError(reply);
  return reply.kind === 'done';
}

function callError({ reason, error }: Failed): DynamoCallError {
  return new DynamoCallError(reason, error);
}

export function openTable(options: DynamoTableOptions): Table {
  return new DynamoTable(options);
}

/** The outcome of `setup`. */
export interface SetupResult {
  readonly table: 'created' | 'there';
  readonly ttl: 'enabled' | 'there';
}

/** Creates the table and waits until it can be used. An existing table is left as it is. */
export async function setUpTable(
  { table, region, endpointUrl }: DynamoTableOptions,
  say: (line: string) => void,
): Promise<SetupResult> {
  const sdk = await loadSdk();
  const client = makeClient(sdk, { region, endpointUrl });
  try {
    const made = await createTable(sdk, client, table);
    if (made) say(`creating the table ${table}`);
    await sdk.waitUntilTableExists(
      { client, maxWaitTime: 300, minDelay: 1, maxDelay: 5 },
      { TableName: table },
    );
    return {
      table: made ? 'created' : 'there',
      ttl: (await enableTtl(sdk, client, table)) ? 'enabled' : 'there',
    };
  } catch (error) {
    throw new DynamoCallError('setup', error);
  } finally {
    client.destroy();
  }
}

type Sdk = Awaited<ReturnType<typeof loadSdk>>;

async function createTable(sdk: Sdk, client: DynamoDBClient, table: string): Promise<boolean> {
  try {
    await client.send(
      new sdk.CreateTableCommand({
        TableName: table,
        AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
        BillingMode: 'PAY_PER_REQUEST',
      }),
    );
    return true;
  } catch (error) {
    if ((error as Error).name === 'ResourceInUseException') return false;
    throw error;
  }
}

async function enableTtl(sdk: Sdk, client: DynamoDBClient, table: string): Promise<boolean> {
  const { TimeToLiveDescription: ttl } = await client.send(
    new sdk.DescribeTimeToLiveCommand({ TableName: table }),
  );
  if (ttl?.TimeToLiveStatus === 'ENABLED' || ttl?.TimeToLiveStatus === 'ENABLING') return false;
  await client.send(
    new sdk.UpdateTimeToLiveCommand({
      TableName: table,
      TimeToLiveSpecification: { Enabled: true, AttributeName: 'ttl_epoch' },
    }),
  );
  return true;
}

/** IAM permissions of a program and of `setup`. A transaction needs those of its calls. */
export const permissions = {
  use: ['dynamodb:GetItem', 'dynamodb:UpdateItem', 'dynamodb:DeleteItem', 'dynamodb:Scan'],
  setup: [
    'dynamodb:CreateTable',
    'dynamodb:DescribeTable',
    'dynamodb:DescribeTimeToLive',
    'dynamodb:UpdateTimeToLive',
  ],
} as const;

/** An IAM policy that allows exactly these operations. */
export function policyFor(kind: keyof typeof permissions, arn: string): object {
  return {
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Action: permissions[kind], Resource: arn }],
  };
}
