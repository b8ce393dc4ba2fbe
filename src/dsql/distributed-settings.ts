/**
 * Limits that all processes share, as the environment asks for them. They are kept by whoever is passed as `leases` and
 * `rateLimiter`; the variables alone bring nobody about, which must not go unsaid.
 */
import type { EnvironmentReader } from '../kernel/environment.js';
import type { Settings } from './settings.js';
import { variables } from './variables.js';

interface Limiters {
  readonly leases?: unknown;
  readonly rateLimiter?: unknown;
}

/** Warns where a shared limit is asked for and nothing was passed that keeps it. */
export function readDistributed(
  { leases, rateLimiter }: Limiters,
  environment: EnvironmentReader,
  settings: Settings,
): void {
  const { leaseEnabled, rateLimiterEnabled } = variables;
  settings.add(
    'leases',
    leases == null ? 'none' : 'given',
    leases == null ? 'default' : 'option',
    leaseEnabled.name,
  );
  if (leases == null && environment.boolean(leaseEnabled)) {
    environment.warn(
      leaseEnabled.name,
      'is true, but no leases were given to the pool: only its own max limits it, and not what other processes have ' +
        'open. Pass leases that all processes share as the option leases',
    );
  }
  if (rateLimiter == null && environment.boolean(rateLimiterEnabled)) {
    environment.warn(
      rateLimiterEnabled.name,
      'is true, but no rateLimiter was given to the pool: DSQL_CONNECTION_RATE_LIMIT limits this process alone. ' +
        'Pass one that all processes share as the option rateLimiter',
    );
  }
}
