/** Limits that all processes share, as the environment asks for them. What the program passes is used in their place. */
import { lossPolicies, type OnCoordinatorLoss } from '../coordination/dynamodb/lease-settings.js';
import type { EnvironmentReader } from '../kernel/environment.js';
import type { OptionReader } from '../kernel/option-reader.js';
import { choose, type Setting, type Settings, showDuration } from './settings.js';
import { variables } from './variables.js';

/** How this process takes part in limits that the environment asks for. */
export interface FleetOptions {
  /** Names the service where leases are listed. Default `dsql`. */
  readonly service?: string | undefined;
  /** The fate of connections whose lease is over because the table does not answer. Default `hold`. */
  readonly onCoordinatorLoss?: OnCoordinatorLoss | undefined;
  /** Connections that this process may have meanwhile, with `onCoordinatorLoss: 'localShare'`. */
  readonly localShare?: number | undefined;
}

interface Limiters {
  readonly leases?: unknown;
  readonly rateLimiter?: unknown;
  readonly fleet?: FleetOptions | undefined;
}

interface OnLoss {
  readonly onCoordinatorLoss: OnCoordinatorLoss;
  readonly localShare: number | undefined;
}

export interface LeasePlan extends OnLoss {
  readonly table: string;
  readonly limit: number;
  readonly service: string;
}

export interface RatePlan {
  readonly table: string;
  readonly rate: number;
  readonly maxWaitMs: number;
  /** Connections that this process may open while the table does not answer; undefined: none. */
  readonly localShare: { readonly rate: number; readonly burst: number } | undefined;
}

/** The limits to be kept in DynamoDB; undefined: none. */
export interface DistributedPlan {
  readonly leases: LeasePlan | undefined;
  readonly rate: RatePlan | undefined;
}

/** Refuses what makes no sense. */
export function checkFleetOptions(read: OptionReader | undefined): void {
  if (read === undefined) return;
  if (read.has('service')) read.string('service', '');
  const policy = read.oneOf('onCoordinatorLoss', 'hold', lossPolicies);
  read.integer('localShare', 0, { min: 0 });
  if (read.has('localShare') && read.has('onCoordinatorLoss') && policy !== 'localShare')
    read.problem('localShare', "is of no use without onCoordinatorLoss: 'localShare'");
  if (policy === 'localShare' && !read.has('localShare'))
    read.problem('localShare', "is needed with onCoordinatorLoss: 'localShare'");
  read.refuseUnknown();
}

/** Warns where a shared limit is asked for and there is no table to keep it in. */
export function readDistributed(
  { leases, rateLimiter, fleet = {} }: Limiters,
  environment: EnvironmentReader,
  settings: Settings,
): DistributedPlan {
  const leaseTable = findLeaseTable(leases, environment, settings);
  const rateTable = rateLimiter == null ? findRateTable(environment) : undefined;
  if (leaseTable === undefined && rateTable === undefined) return { leases: undefined, rate: undefined };
  const onLoss = readOnLoss(fleet, environment, settings);
  return {
    leases:
      leaseTable === undefined ? undefined : readLeases(leaseTable, fleet, onLoss, environment, settings),
    rate: rateTable === undefined ? undefined : readRate(rateTable, onLoss, environment, settings),
  };
}

function findLeaseTable(
  given: unknown,
  environment: EnvironmentReader,
  settings: Settings,
): string | undefined {
  const { leaseEnabled, leaseTable } = variables;
  if (given != null || !environment.boolean(leaseEnabled)) {
    const source = given == null ? 'default' : 'option';
    settings.add('leases', given == null ? 'none' : 'given', source, leaseEnabled.name);
    return undefined;
  }
  const table = environment.text(leaseTable.name);
  if (table !== undefined) return table;
  environment.warn(
    leaseEnabled.name,
    `is true, but ${leaseTable.name} is not set: only its own max limits the pool, and not what other processes have open`,
  );
  settings.add('leases', 'none', 'default', leaseEnabled.name);
  return undefined;
}

function findRateTable(environment: EnvironmentReader): string | undefined {
  const { rateLimiterEnabled, rateLimiterTable } = variables;
  if (!environment.boolean(rateLimiterEnabled)) return undefined;
  const table = environment.text(rateLimiterTable.name);
  if (table === undefined)
    environment.warn(
      rateLimiterEnabled.name,
      `is true, but ${rateLimiterTable.name} is not set: DSQL_CONNECTION_RATE_LIMIT limits this process alone`,
    );
  return table;
}

/** A policy that lacks its number is left aside: to hold is safe. */
function readOnLoss(fleet: FleetOptions, environment: EnvironmentReader, settings: Settings): OnLoss {
  const { onCoordinatorLoss: policyVariable, localShare: shareVariable } = variables;
  const policy = choose<OnCoordinatorLoss>(
    fleet.onCoordinatorLoss,
    () => environment.oneOf(policyVariable, lossPolicies),
    'hold',
  );
  const show = ({ value, source }: Setting<OnCoordinatorLoss>): void =>
    settings.add('fleet.onCoordinatorLoss', value, source, policyVariable.name);
  if (policy.value !== 'localShare') {
    show(policy);
    return { onCoordinatorLoss: policy.value, localShare: undefined };
  }
  const share = choose(fleet.localShare, () => environment.integer(shareVariable, { min: 0 }), undefined);
  if (share.value === undefined) {
    environment.warn(
      policyVariable.name,
      `is localShare, but ${shareVariable.name} does not say how many connections: hold is used`,
    );
    show({ value: 'hold', source: 'default' });
    return { onCoordinatorLoss: 'hold', localShare: undefined };
  }
  show(policy);
  settings.add('fleet.localShare', String(share.value), share.source, shareVariable.name);
  return { onCoordinatorLoss: 'localShare', localShare: share.value };
}

function readLeases(
  table: string,
  fleet: FleetOptions,
  onLoss: OnLoss,
  environment: EnvironmentReader,
  settings: Settings,
): LeasePlan {
  const { leaseTable, connectionLimit, serviceName } = variables;
  const limit = choose(
    undefined,
    () => environment.integer(connectionLimit, { min: 1 }),
    Number(connectionLimit.default),
  );
  const service = choose(fleet.service, () => environment.text(serviceName.name), serviceName.default);
  settings.add('leases', `in the table ${table}`, 'environment', leaseTable.name);
  settings.add('leases.limit', String(limit.value), limit.source, connectionLimit.name);
  settings.add('fleet.service', service.value, service.source, serviceName.name);
  return { table, limit: limit.value, service: service.value, ...onLoss };
}

function readRate(
  table: string,
  { onCoordinatorLoss }: OnLoss,
  environment: EnvironmentReader,
  settings: Settings,
): RatePlan {
  const { rateLimiterTable, rateLimiterLimit, rateLimiterMaxWait } = variables;
  const rate = choose(
    undefined,
    () => environment.integer(rateLimiterLimit, { min: 1 }),
    Number(rateLimiterLimit.default),
  );
  const maxWait = choose(undefined, () => environment.duration(rateLimiterMaxWait, { above: 0 }), 30_000);
  settings.add('rateLimiter', `in the table ${table}`, 'environment', rateLimiterTable.name);
  settings.add('rateLimiter.rate', String(rate.value), rate.source, rateLimiterLimit.name);
  settings.add('rateLimiter.maxWait', showDuration(maxWait.value), maxWait.source, rateLimiterMaxWait.name);
  const localShare = onCoordinatorLoss === 'localShare' ? readLocalRate(environment, settings) : undefined;
  return { table, rate: rate.value, maxWaitMs: maxWait.value, localShare };
}

/** To replace connections without the table takes dials without it: as fast as without a fleet. */
function readLocalRate(environment: EnvironmentReader, settings: Settings): RatePlan['localShare'] {
  const { rate, burst } = readProcessRate(environment);
  settings.add('rateLimiter.localShare.rate', String(rate.value), rate.source, variables.rateLimit.name);
  settings.add('rateLimiter.localShare.burst', String(burst.value), burst.source, variables.burstLimit.name);
  return { rate: rate.value, burst: burst.value };
}

/** How fast one process opens connections by itself. */
export function readProcessRate(environment: EnvironmentReader): {
  readonly rate: Setting<number>;
  readonly burst: Setting<number>;
} {
  const { rateLimit, burstLimit } = variables;
  return {
    rate: choose(undefined, () => environment.number(rateLimit, { above: 0 }), Number(rateLimit.default)),
    burst: choose(undefined, () => environment.integer(burstLimit, { min: 1 }), Number(burstLimit.default)),
  };
}
