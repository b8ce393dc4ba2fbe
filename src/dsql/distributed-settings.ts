/** Limits that all processes share, as the environment asks for them. What the program passes is used in their place. */
import type { EnvironmentReader } from '../kernel/environment.js';
import { choose, type Settings, showDuration } from './settings.js';
import { variables } from './variables.js';

interface Limiters {
  readonly leases?: unknown;
  readonly rateLimiter?: unknown;
}

/** What is to be kept in DynamoDB; undefined: nothing. */
export interface DistributedPlan {
  readonly leases: { readonly table: string; readonly limit: number } | undefined;
  readonly rate: { readonly table: string; readonly rate: number; readonly maxWaitMs: number } | undefined;
}

/** Warns where a shared limit is asked for and there is no table to keep it in. */
export function readDistributed(
  { leases, rateLimiter }: Limiters,
  environment: EnvironmentReader,
  settings: Settings,
): DistributedPlan {
  return {
    leases: readLeases(leases, environment, settings),
    rate: rateLimiter == null ? readRate(environment, settings) : undefined,
  };
}

function readLeases(
  given: unknown,
  environment: EnvironmentReader,
  settings: Settings,
): DistributedPlan['leases'] {
  const { leaseEnabled, leaseTable, connectionLimit } = variables;
  if (given != null || !environment.boolean(leaseEnabled)) {
    const source = given == null ? 'default' : 'option';
    settings.add('leases', given == null ? 'none' : 'given', source, leaseEnabled.name);
    return undefined;
  }
  const table = environment.text(leaseTable.name);
  if (table === undefined) {
    environment.warn(
      leaseEnabled.name,
      `is true, but ${leaseTable.name} is not set: only its own max limits the pool, and not what other processes have open`,
    );
    settings.add('leases', 'none', 'default', leaseEnabled.name);
    return undefined;
  }
  const limit = choose(
    undefined,
    () => environment.integer(connectionLimit, { min: 1 }),
    Number(connectionLimit.default),
  );
  settings.add('leases', `in the table ${table}`, 'environment', leaseTable.name);
  settings.add('leases.limit', String(limit.value), limit.source, connectionLimit.name);
  return { table, limit: limit.value };
}

function readRate(environment: EnvironmentReader, settings: Settings): DistributedPlan['rate'] {
  const { rateLimiterEnabled, rateLimiterTable, rateLimiterLimit, rateLimiterMaxWait } = variables;
  if (!environment.boolean(rateLimiterEnabled)) return undefined;
  const table = environment.text(rateLimiterTable.name);
  if (table === undefined) {
    environment.warn(
      rateLimiterEnabled.name,
      `is true, but ${rateLimiterTable.name} is not set: DSQL_CONNECTION_RATE_LIMIT limits this process alone`,
    );
    return undefined;
  }
  const rate = choose(
    undefined,
    () => environment.integer(rateLimiterLimit, { min: 1 }),
    Number(rateLimiterLimit.default),
  );
  const maxWait = choose(undefined, () => environment.duration(rateLimiterMaxWait, { above: 0 }), 30_000);
  settings.add('rateLimiter', `in the table ${table}`, 'environment', rateLimiterTable.name);
  settings.add('rateLimiter.rate', String(rate.value), rate.source, rateLimiterLimit.name);
  settings.add('rateLimiter.maxWait', showDuration(maxWait.value), maxWait.source, rateLimiterMaxWait.name);
  return { table, rate: rate.value, maxWaitMs: maxWait.value };
}
