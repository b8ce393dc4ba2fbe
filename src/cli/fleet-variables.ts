/** The variables by which programs join a fleet, for `headgate serve`. */
import { readDistributed } from '../dsql/distributed-settings.js';
import { Settings } from '../dsql/settings.js';
import { variables } from '../dsql/variables.js';
import { formatDuration } from '../kernel/duration.js';
import { type Environment, EnvironmentReader } from '../kernel/environment.js';
import type { OtherVariables } from '../pooler/config/config-reader.js';

/** The variables by which a program with a `DsqlPool` joins a fleet are good for a pooler, too. */
export function fleetVariables(environment: Environment): {
  readonly otherVariables: OtherVariables;
  readonly warnings: readonly string[];
} {
  const reader = new EnvironmentReader(environment);
  const { leases, rate } = readDistributed({}, reader, new Settings(reader));
  const found: [string, { variable: string; text: string }][] = [];
  const note = (option: string, { name }: { readonly name: string }, text: string): void => {
    found.push([option, { variable: name, text }]);
  };
  if (leases !== undefined) {
    note('fleet_table', variables.leaseTable, leases.table);
    note('fleet_limit', variables.connectionLimit, String(leases.limit));
  }
  if (rate !== undefined) {
    note('fleet_rate_table', variables.rateLimiterTable, rate.table);
    note('fleet_rate', variables.rateLimiterLimit, String(rate.rate));
    note('fleet_max_wait', variables.rateLimiterMaxWait, formatDuration(rate.maxWaitMs));
  }
  const warnings = reader.warnings.map(({ variable, text }) => `${variable} ${text}`);
  return { otherVariables: new Map(found), warnings };
}
