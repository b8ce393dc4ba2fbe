/** Converts the section `fleet` to the options of its limits in DynamoDB. */
import type { DynamoLeasesOptions, DynamoRateLimiterOptions } from '../../coordination/dynamodb/options.js';
import type { DatabaseConfig, GeneralConfig } from './pooler-config.js';
import { portOf } from './special-kinds.js';

export type FleetConfig = GeneralConfig['fleet'];

/** Databases with the same text are on the same server. */
export function serverOf({ host, port }: Pick<DatabaseConfig, 'host' | 'port'>): string {
  return host.map((name, at) => `${name}:${portOf(port, at)}`).join(',');
}

/** Undefined where the fleet has no limit. */
export function fleetLeaseOptions(fleet: FleetConfig, endpoint: string): DynamoLeasesOptions | undefined {
  const { limit, table, region, endpointUrl, instance, service, leaseFor, renewEvery, grace } = fleet;
  const { block, onCoordinatorLoss, localShare, timeout } = fleet;
  if (limit === 0) return undefined;
  return {
    ...{ endpoint, limit, region, endpointUrl, instance, service, leaseFor, renewEvery, grace },
    ...{ block, onCoordinatorLoss, localShare, timeout },
    table: table ?? '',
  };
}

/** Undefined where the fleet has no rate limit. */
export function fleetRateOptions(fleet: FleetConfig, endpoint: string): DynamoRateLimiterOptions | undefined {
  const { rate, burst, rateTable, table, region, endpointUrl, timeout, batch, maxWait, localRate } = fleet;
  if (rate === 0) return undefined;
  return {
    ...{ endpoint, rate, burst, region, endpointUrl, timeout, batch, maxWait },
    table: rateTable ?? table ?? '',
    localShare: localRate === 0 ? undefined : { rate: localRate, burst: localRate },
  };
}
