// A real pool without connections, for tests that need thousands.
import { readPolicy } from '../../../src/core/pool-policy.js';
import { OptionReader } from '../../../src/kernel/option-reader.js';
import type { PoolSettings } from '../../../src/pooler/config/pool-settings.js';
import { BackendPool } from '../../../src/pooler/servers/backend-pool.js';
import { SettingsRegistry } from '../../../src/pooler/settings/settings.js';
import { plainPlan } from '../servers/plain-plan.js';

const registry = new SettingsRegistry();

export function unconnectedPool(user: string): BackendPool {
  return new BackendPool('app', user, registry, {
    limits: { poolMode: 'transaction', poolSize: 3, minPoolSize: 0, queryWaitTimeout: 0 } as PoolSettings,
    policy: readPolicy(new OptionReader({ max: 3 }), false),
    open: () => Promise.reject(new Error('There is no server.')),
    ...plainPlan,
  });
}
