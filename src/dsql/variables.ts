/** The environment variables by which an operator tunes pools without a change of the program: one table, for all who ask. */
import type { EnvironmentReader } from '../kernel/environment.js';
import { nearest } from '../kernel/nearest.js';

/** An environment variable that `DsqlPool` reads. */
export interface DsqlVariable {
  readonly name: string;
  /** The option that says the same, and wins. */
  readonly option: string;
  readonly kind: 'boolean' | 'integer' | 'number' | 'duration' | 'text';
  /** In words where it is not a value. */
  readonly default: string;
  readonly meaning: string;
}

/** By the names that the code has for them. */
export const variables = {
  reservoirEnabled: {
    name: 'DSQL_RESERVOIR_ENABLED',
    option: 'reservoir',
    kind: 'boolean',
    default: 'false',
    meaning:
      'turns the reservoir on; without it nothing of it runs, and the other DSQL_RESERVOIR_ variables mean nothing',
  },
  targetReady: {
    name: 'DSQL_RESERVOIR_TARGET_READY',
    option: 'reservoir.targetReady',
    kind: 'integer',
    default: 'max',
    meaning: 'connections to keep ready, as far as max leaves room beside those in use',
  },
  lowWatermark: {
    name: 'DSQL_RESERVOIR_LOW_WATERMARK',
    option: 'reservoir.lowWatermark',
    kind: 'integer',
    default: 'the target',
    meaning: 'with fewer than this the pool is not ready, and goes first where several share a rate limiter',
  },
  baseLifetime: {
    name: 'DSQL_RESERVOIR_BASE_LIFETIME',
    option: 'reservoir.baseLifetime',
    kind: 'duration',
    default: '11m',
    meaning: 'how long a connection lives',
  },
  lifetimeJitter: {
    name: 'DSQL_RESERVOIR_LIFETIME_JITTER',
    option: 'reservoir.lifetimeJitter',
    kind: 'duration',
    default: '2m',
    meaning: 'lives are spread evenly over this width around the base',
  },
  guardWindow: {
    name: 'DSQL_RESERVOIR_GUARD_WINDOW',
    option: 'reservoir.guardWindow',
    kind: 'duration',
    default: '45s',
    meaning: 'a connection with less than this left is not handed out; longer than the longest transaction',
  },
  initialFillTimeout: {
    name: 'DSQL_RESERVOIR_INITIAL_FILL_TIMEOUT',
    option: 'reservoir.initialFillTimeout',
    kind: 'duration',
    default: '30s',
    meaning: 'how long `ready()` waits for the first fill before it warns and goes on; 0: without a limit',
  },
  inflightLimit: {
    name: 'DSQL_RESERVOIR_INFLIGHT_LIMIT',
    option: 'dialLimit',
    kind: 'integer',
    default: '8',
    meaning: 'dials at the same time, in reservoir mode',
  },
  rateLimit: {
    name: 'DSQL_CONNECTION_RATE_LIMIT',
    option: 'rateLimiter',
    kind: 'number',
    default: '10',
    meaning: 'connections that this process opens to the cluster in a second, on average',
  },
  burstLimit: {
    name: 'DSQL_CONNECTION_BURST_LIMIT',
    option: 'rateLimiter',
    kind: 'integer',
    default: '100',
    meaning: 'connections that this process may open at once after a quiet time',
  },
  staggeredStartup: {
    name: 'DSQL_STAGGERED_STARTUP',
    option: 'startJitter',
    kind: 'boolean',
    default: 'true',
    meaning:
      'connections that no caller waits for are opened after a random delay, so that processes started together do not dial together',
  },
  staggeredStartupMaxDelay: {
    name: 'DSQL_STAGGERED_STARTUP_MAX_DELAY',
    option: 'startJitter',
    kind: 'duration',
    default: '5s',
    meaning: 'the longest such delay',
  },
  leaseEnabled: {
    name: 'DSQL_DISTRIBUTED_CONN_LEASE_ENABLED',
    option: 'leases',
    kind: 'boolean',
    default: 'false',
    meaning: 'asks for one limit on the connections of all processes',
  },
  leaseTable: {
    name: 'DSQL_DISTRIBUTED_CONN_LEASE_TABLE',
    option: 'leases',
    kind: 'text',
    default: 'none',
    meaning: 'the DynamoDB table in which it is kept',
  },
  connectionLimit: {
    name: 'DSQL_DISTRIBUTED_CONN_LIMIT',
    option: 'leases',
    kind: 'integer',
    default: '10000',
    meaning: 'that limit; the one of a cluster is 10,000 unless AWS has raised it',
  },
  rateLimiterEnabled: {
    name: 'DSQL_DISTRIBUTED_RATE_LIMITER_ENABLED',
    option: 'rateLimiter',
    kind: 'boolean',
    default: 'false',
    meaning: 'asks for one limit on how fast all processes together open connections',
  },
  rateLimiterTable: {
    name: 'DSQL_DISTRIBUTED_RATE_LIMITER_TABLE',
    option: 'rateLimiter',
    kind: 'text',
    default: 'none',
    meaning: 'the DynamoDB table in which it is kept',
  },
  rateLimiterLimit: {
    name: 'DSQL_DISTRIBUTED_RATE_LIMITER_LIMIT',
    option: 'rateLimiter',
    kind: 'integer',
    default: '100',
    meaning: 'that limit, in connections a second; a cluster takes 100',
  },
  rateLimiterMaxWait: {
    name: 'DSQL_DISTRIBUTED_RATE_LIMITER_MAX_WAIT',
    option: 'rateLimiter',
    kind: 'duration',
    default: '30s',
    meaning: 'how long a dial waits for a permit of all',
  },
  serviceName: {
    name: 'DSQL_DISTRIBUTED_SERVICE_NAME',
    option: 'fleet.service',
    kind: 'text',
    default: 'dsql',
    meaning: 'names this service where leases are listed',
  },
  onCoordinatorLoss: {
    name: 'DSQL_DISTRIBUTED_ON_COORDINATOR_LOSS',
    option: 'fleet.onCoordinatorLoss',
    kind: 'text',
    default: 'hold',
    meaning:
      'what happens to connections whose lease has expired because the table does not answer: `hold`, `localShare` or `shed`',
  },
  localShare: {
    name: 'DSQL_DISTRIBUTED_LOCAL_SHARE',
    option: 'fleet.localShare',
    kind: 'integer',
    default: 'none',
    meaning: 'connections that this process may have meanwhile, with `localShare`',
  },
} as const satisfies Readonly<Record<string, DsqlVariable>>;

/** Every environment variable that `DsqlPool` reads, in the order of the documentation. */
export const dsqlVariables: readonly DsqlVariable[] = Object.freeze(Object.values(variables));

const prefix = 'DSQL_';
const names = dsqlVariables.map(({ name }) => name);
/** Names that programs give to options of theirs: the cluster's place, and their own identity. */
const programsOwn =
  /^DSQL_(?:CLUSTER_|DB_)?(?:ENDPOINT|HOST|HOSTNAME|CLUSTER|ID|CLUSTER_ID|ARN|REGION|PORT|USER|USERNAME|DATABASE|NAME|DB|ROLE|ROLE_ARN|SCHEMA|URL)$/;

/**
 * Warns of names that nothing reads. Those by which programs usually find their cluster are their own. What an unknown one
 * says is not repeated: it may be a secret.
 */
export function warnOfUnknown(environment: EnvironmentReader): void {
  for (const name of environment.names()) {
    if (!name.startsWith(prefix) || names.includes(name) || programsOwn.test(name)) continue;
    const guess = guessOf(name);
    const hint = guess === undefined ? '' : `; did you mean ${guess}?`;
    environment.warn(name, `is not known and not used${hint}`);
  }
}

/** A name that was not written to its end, or one with few letters wrong; what all have in common does not count. */
function guessOf(name: string): string | undefined {
  const isUnfinished = name.split('_').length > 2;
  const whole = isUnfinished ? names.find((known) => known.startsWith(`${name}_`)) : undefined;
  if (whole !== undefined) return whole;
  const guess = nearest(withoutPrefix(name), names.map(withoutPrefix));
  return guess === undefined ? undefined : prefix + guess;
}

function withoutPrefix(name: string): string {
  return name.slice(prefix.length);
}
