/** The parts that poolers on several machines share, for `headgate serve`. */
import { loadSdk } from '../coordination/dynamodb/dynamo-table.js';
import { clusterName, readEndpoint } from '../dsql/endpoint.js';
import { DynamoFleet } from '../pooler/budgets/dynamo-fleet.js';
import type { Fleet } from '../pooler/budgets/fleet.js';
import type { PoolerConfig } from '../pooler/config/pooler-config.js';
import type { PoolerLog } from '../pooler/log.js';

/** Undefined where nothing is shared. */
export function makeFleet({ fleet }: PoolerConfig, log: PoolerLog): Fleet | undefined {
  if (fleet.limit === 0 && fleet.rate === 0) return undefined;
  return new DynamoFleet({ config: fleet, endpointOf, log });
}

/** Rejects with what to install where the package is missing that talks to DynamoDB. */
export async function prepareFleet(config: PoolerConfig, log: PoolerLog): Promise<Fleet | undefined> {
  const fleet = makeFleet(config, log);
  if (fleet !== undefined) await loadSdk();
  return fleet;
}

/** A cluster of Aurora DSQL is called as `DsqlPool` calls it, so that programs and poolers have one budget. */
function endpointOf(server: string): string {
  const host = server.replace(/:\d+$/, '');
  const { endpoint } = readEndpoint({ host }, 'unknown');
  return endpoint?.clusterId === undefined ? server : clusterName(endpoint);
}
