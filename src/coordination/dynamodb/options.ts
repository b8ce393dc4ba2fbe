/** Options of `DynamoLeases`, `DynamoRateLimiter` and `DynamoNodeIds`, and their check. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Duration } from '../../kernel/duration.js';
import { OptionReader } from '../../kernel/option-reader.js';
import { systemAlarm, systemClock, systemRandom } from '../../runtime/system.js';
import { largestNodeId } from '../node-ids.js';
import type { DynamoClient, DynamoCredentials, DynamoTableOptions } from './dynamo-table.js';
import { leaseKeys } from './lease-items.js';
import { type LeaseSettings, lossPolicies, type OnCoordinatorLoss } from './lease-settings.js';
import { nodeKeys } from './node-items.js';
import { rateKey } from './rate-items.js';
import type { CallWorld } from './table-calls.js';
import type { LeaseNote } from './table-leases.js';
import type { NodeSettings } from './table-node-lease.js';
import { leastBurst, type RateSettings } from './table-rate-limiter.js';
import { wakingClock } from './waking-clock.js';

/** The table, and how to reach it. */
export interface DynamoOptions {
  /** The table's name. */
  readonly table: string;
  /** The server that the limit is about, as all instances name it: the endpoint of a cluster, a host name. */
  readonly endpoint: string;
  /** A `DynamoDBClient` of `@aws-sdk/client-dynamodb`. Default: one that is made for it. */
  readonly client?: DynamoClient | undefined;
  /** Region of the client that is made. Default: as AWS's libraries find it. */
  readonly region?: string | undefined;
  /** Another address than AWS's for the client that is made, for example that of DynamoDB Local. */
  readonly endpointUrl?: string | undefined;
  /** AWS credentials for the client that is made, or a function that finds them. Default: AWS's usual search. */
  readonly credentials?: DynamoCredentials | undefined;
  /** Timeout of one call. Default `5s`. */
  readonly timeout?: Duration | undefined;
}

export interface DynamoLeasesOptions extends DynamoOptions {
  /** Number of connections that all instances may have together. */
  readonly limit: number;
  /** Names this instance where leases are listed. Default: the name of the host, and the number of the process. */
  readonly instance?: string | undefined;
  /** Names the kind of instance where leases are listed. Default `headgate`. */
  readonly service?: string | undefined;
  /** Lifetime of a lease that is not renewed. Default `3m`. */
  readonly leaseFor?: Duration | undefined;
  /** Default: half of `leaseFor`. Should one fail, it is tried again every few seconds. */
  readonly renewEvery?: Duration | undefined;
  /** Time after its end before other instances reclaim a lease, for its owner to close its connections. Default `30s`. */
  readonly grace?: Duration | undefined;
  /** Slots held ahead of need, at most. Default 20. */
  readonly block?: number | undefined;
  /** Behaviour when a lease could not be renewed in time, because the table can't be reached. Default `hold`. */
  readonly onCoordinatorLoss?: OnCoordinatorLoss | undefined;
  /** Connections that this instance may have meanwhile, with `onCoordinatorLoss: 'localShare'`. */
  readonly localShare?: number | undefined;
  /** Receives messages for an operator. */
  readonly log?: LeaseNote | undefined;
}

export interface DynamoRateLimiterOptions extends DynamoOptions {
  /** Connections that all instances together open in a second, on average. Default 100, as Aurora DSQL allows. */
  readonly rate?: number | undefined;
  /** Connections that they may open at once after a quiet time. Default: ten times the rate, as Aurora DSQL allows. */
  readonly burst?: number | undefined;
  /** Permits taken at once, at most. Default 10. */
  readonly batch?: number | undefined;
  /** The longest queue that a caller joins. Default `30s`. */
  readonly maxWait?: Duration | undefined;
  /** Rate and burst of this instance while the table can't be reached. Default: no connection is opened. */
  readonly localShare?: { readonly rate: number; readonly burst: number } | undefined;
}

export interface DynamoNodeIdsOptions extends DynamoOptions {
  /** The smallest node id. Default 0. */
  readonly from?: number | undefined;
  /** The largest node id. Default 1023. */
  readonly to?: number | undefined;
  /** Names this instance where node ids are listed. Default: the name of the host, and the number of the process. */
  readonly instance?: string | undefined;
  /** Names the kind of instance where node ids are listed. Default `headgate`. */
  readonly service?: string | undefined;
  /** Lifetime of a lease that is not renewed. Default `3m`. */
  readonly leaseFor?: Duration | undefined;
  /** Default: half of `leaseFor`. */
  readonly renewEvery?: Duration | undefined;
  /** Time after its end before others may take a node id. Default `30s`. */
  readonly grace?: Duration | undefined;
  /** Receives messages about lost node ids. */
  readonly log?: LeaseNote | undefined;
}

/** Everything, complete. */
export interface ReadOptions<S> {
  readonly table: DynamoTableOptions;
  readonly settings: S;
  readonly world: CallWorld;
}

export function readLeaseOptions(
  options: DynamoLeasesOptions,
): ReadOptions<LeaseSettings> & { readonly log: LeaseNote | undefined } {
  const read = new OptionReader(options);
  const { table, endpoint, world } = readCommon(read, options);
  const limit = read.integer('limit', 1, { min: 1 });
  if (options.limit === undefined)
    read.problem('limit', 'is missing: it must be a whole number of at least 1');
  const { leaseMs, renewMs, graceMs } = readTimes(read);
  const onCoordinatorLoss = read.oneOf('onCoordinatorLoss', 'hold', lossPolicies);
  const localShare = read.integer('localShare', 0, { min: 0 });
  if ((onCoordinatorLoss === 'localShare') !== (options.localShare !== undefined))
    read.problem('localShare', "is needed with onCoordinatorLoss: 'localShare', and only then");
  const settings = {
    keys: leaseKeys(endpoint),
    // A unique id: the rest of another instance's lease is never taken for this one's.
    leaseId: randomBytes(16).toString('hex'),
    ...readNames(read),
    ...{ limit, leaseMs, renewMs, graceMs, onCoordinatorLoss, localShare },
    lookMs: Math.min(5_000, graceMs / 3),
    block: read.integer('block', 20, { min: 1 }),
  };
  const log = read.callback<LeaseNote>('log', false);
  read.refuseUnknown();
  read.throwIfAnyProblem();
  return { table, settings, world, log };
}

export function readNodeOptions(
  options: DynamoNodeIdsOptions,
): ReadOptions<NodeSettings> & { readonly log: LeaseNote | undefined } {
  const read = new OptionReader(options);
  const { table, endpoint, world } = readCommon(read, options);
  const from = read.integer('from', 0, { min: 0, max: largestNodeId });
  const to = read.integer('to', largestNodeId, { min: 0, max: largestNodeId });
  if (from > to) read.problem('from', `is ${from}, more than to, which is ${to}`);
  const settings = { keys: nodeKeys(endpoint), from, to, ...readNames(read), ...readTimes(read) };
  const log = read.callback<LeaseNote>('log', false);
  read.refuseUnknown();
  read.throwIfAnyProblem();
  return { table, settings, world, log };
}

function readNames(read: OptionReader): { instance: string; service: string } {
  return {
    instance: read.string('instance', `${hostname()}/${process.pid}`),
    service: read.string('service', 'headgate'),
  };
}

function readTimes(read: OptionReader): { leaseMs: number; renewMs: number; graceMs: number } {
  const leaseMs = read.duration('leaseFor', 180_000, 0);
  const renewMs = read.duration('renewEvery', leaseMs / 2, 0);
  const graceMs = read.duration('grace', 30_000, 0);
  if (leaseMs < 2_000) read.problem('leaseFor', 'must be at least 2s');
  if (renewMs * 2 > leaseMs || renewMs <= 0)
    read.problem(
      'renewEvery',
      'must be at most half of leaseFor, so that one failure does not end the lease',
    );
  if (graceMs < 1_000) read.problem('grace', 'must be at least 1s, in which an instance closes what it has');
  return { leaseMs, renewMs, graceMs };
}

export function readRateOptions(options: DynamoRateLimiterOptions): ReadOptions<RateSettings> {
  const read = new OptionReader({ ...options, rate: options.rate ?? 100 });
  const { table, endpoint, world } = readCommon(read, options);
  const rate = read.positive('rate');
  const burst = read.integer('burst', Math.ceil(rate * 10), { min: 1 });
  if (burst < leastBurst(rate))
    read.problem(
      'burst',
      `must be at least ${leastBurst(rate)} with a rate of ${rate}, for what comes over a network`,
    );
  const settings = {
    key: rateKey(endpoint),
    ...{ rate, burst },
    batch: read.integer('batch', 10, { min: 1 }),
    maxWaitMs: read.duration('maxWait', 30_000, 0),
    localShare: readLocalRate(read.group('localShare')),
  };
  read.refuseUnknown();
  read.throwIfAnyProblem();
  return { table, settings, world };
}

function readLocalRate(read: OptionReader | undefined): RateSettings['localShare'] {
  if (read === undefined) return undefined;
  const share = { rate: read.positive('rate'), burst: read.integer('burst', 1, { min: 1 }) };
  read.refuseUnknown();
  return share;
}

function readCommon(
  read: OptionReader,
  { client, region, endpointUrl, credentials, table, endpoint }: DynamoOptions,
): { table: DynamoTableOptions; endpoint: string; world: CallWorld } {
  for (const [name, value] of Object.entries({ table, endpoint }))
    if (value === undefined) read.problem(name, 'is missing: it must be a text that is not empty');
  read.object<DynamoClient>('client', ['send']);
  const optional = {
    client,
    region: region === undefined ? undefined : read.string('region', ''),
    endpointUrl: endpointUrl === undefined ? undefined : read.string('endpointUrl', ''),
    credentials,
  };
  for (const name of ['region', 'endpointUrl', 'credentials']) {
    if (read.has(name) && client !== undefined) read.problem(name, 'is of no use beside client');
  }
  const timeoutMs = read.duration('timeout', 5_000, 0);
  if (timeoutMs < 1) read.problem('timeout', `is ${timeoutMs} ms, in which nothing can be answered`);
  return {
    table: { table: read.string('table', 'table'), ...optional },
    endpoint: read.string('endpoint', 'endpoint'),
    world: { ...wakingClock(systemClock, systemAlarm, Date.now), random: systemRandom, timeoutMs },
  };
}
