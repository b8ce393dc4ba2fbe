/**
 * Limits in DynamoDB that the environment asks for. The pools of a process that lead to the same cluster have the same ones:
 * a process is one instance of the fleet, however many pools it has.
 */
import { DynamoLeases } from '../coordination/dynamodb/dynamo-leases.js';
import { DynamoRateLimiter } from '../coordination/dynamodb/dynamo-rate-limiter.js';
import type { DynamoCredentials } from '../coordination/dynamodb/dynamo-table.js';
import type { DistributedPlan } from './distributed-settings.js';
import { clusterName, type Endpoint } from './endpoint.js';
import type { AwsCredentialsSource } from './signer.js';

export interface FleetLimits {
  readonly leases?: DynamoLeases;
  readonly rateLimiter?: DynamoRateLimiter;
}

interface Shared<T> {
  readonly limit: T;
  users: number;
}

type Note = (message: string, error?: unknown) => void;

const sharedLeases = new Map<string, Shared<DynamoLeases>>();
/** Kept for as long as the process: what is in them is in the table. */
const limiters = new Map<string, DynamoRateLimiter>();

/** Limits for a pool, and the call for when its last connection is gone. */
export function joinFleet(
  cluster: Endpoint,
  { leases, rate }: DistributedPlan,
  credentials: AwsCredentialsSource | undefined,
  log: Note,
): { readonly limits: FleetLimits; readonly leave: () => Promise<void> } {
  const endpoint = clusterName(cluster);
  const where = {
    endpoint,
    region: cluster.region,
    credentials: credentials as DynamoCredentials | undefined,
  };
  const key = leases && JSON.stringify([endpoint, leases]);
  const shared = key === undefined ? undefined : (sharedLeases.get(key) ?? makeLeases(key));
  if (shared !== undefined) shared.users++;
  return {
    limits: { ...(shared && { leases: shared.limit }), ...(rate && { rateLimiter: limiter() }) },
    leave: async () => {
      if (shared === undefined || key === undefined || --shared.users > 0) return;
      sharedLeases.delete(key);
      await shared.limit.end();
    },
  };

  function makeLeases(key: string): Shared<DynamoLeases> {
    const made = {
      limit: new DynamoLeases({ ...where, ...(leases as NonNullable<typeof leases>), log }),
      users: 0,
    };
    sharedLeases.set(key, made);
    return made;
  }

  function limiter(): DynamoRateLimiter {
    const { maxWaitMs, ...plan } = rate as NonNullable<typeof rate>;
    const name = JSON.stringify([endpoint, rate]);
    const made = limiters.get(name) ?? new DynamoRateLimiter({ ...where, ...plan, maxWait: maxWaitMs });
    limiters.set(name, made);
    return made;
  }
}
