/** The variables that programs with a `DsqlPool` read and that `headgate serve` reads, too: of a fleet, and of the local rate. */
import { readDistributed } from '../dsql/distributed-settings.js';
import { Settings } from '../dsql/settings.js';
import { variables } from '../dsql/variables.js';
import { formatDuration } from '../kernel/duration.js';
import { type Environment, EnvironmentReader } from '../kernel/environment.js';
import type { OtherVariables } from '../pooler/config/config-reader.js';

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
    const isSet = ({ name }: { readonly name: string }): boolean => reader.text(name) !== undefined;
    // Where it is not set, a pooler has a default of its own.
    if (isSet(variables.serviceName)) note('fleet_service', variables.serviceName, leases.service);
    if (isSet(variables.onCoordinatorLoss))
      note('fleet_on_coordinator_loss', variables.onCoordinatorLoss, leases.onCoordinatorLoss);
    if (leases.localShare !== undefined)
      note('fleet_local_share', variables.localShare, String(leases.localShare));
  }
  if (rate !== undefined) {
    note('fleet_rate_table', variables.rateLimiterTable, rate.table);
    note('fleet_rate', variables.rateLimiterLimit, String(rate.rate));
    note('fleet_max_wait', variables.rateLimiterMaxWait, formatDuration(rate.maxWaitMs));
    if (rate.localShare !== undefined)
      note('fleet_local_rate', variables.rateLimit, String(Math.ceil(rate.localShare.rate)));
  }
  const { rateLimit, burstLimit } = variables;
  const perSecond = reader.number(rateLimit, { above: 0 });
  const burst = reader.integer(burstLimit, { min: 1 });
  if (perSecond !== undefined) note('dsql_connection_rate', rateLimit, String(perSecond));
  if (burst !== undefined) note('dsql_connection_burst', burstLimit, String(burst));
  const warnings = reader.warnings.map(({ variable, text }) => `${variable} ${text}`);
  return { otherVariables: new Map(found), warnings };
}
