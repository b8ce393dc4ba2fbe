/** Checks the section `fleet` as a whole. The rules for leases and rates are those of `headgate/dynamodb`. */
import { readLeaseOptions, readRateOptions } from '../../coordination/dynamodb/options.js';
import { PoolOptionsError } from '../../kernel/errors.js';
import { fleetLeaseOptions, fleetRateOptions, serverOf } from './fleet-settings.js';
import type { PoolerConfig } from './pooler-config.js';

export interface FleetFindings {
  problem(path: string, message: string): void;
  warn(text: string): void;
}

export function checkFleet({ fleet, databases }: PoolerConfig, findings: FleetFindings): void {
  const { table, rateTable, limit, rate, endpoint } = fleet;
  const isShared = limit > 0 || rate > 0;
  if (limit > 0 && table === undefined)
    findings.problem('fleet.table', 'is missing: fleet.limit is kept in a table');
  if (rate > 0 && rateTable === undefined && table === undefined)
    findings.problem('fleet.table', 'is missing: fleet.rate is kept in a table');
  if (!isShared && (table !== undefined || rateTable !== undefined))
    findings.problem('fleet.limit', 'is missing: neither it nor fleet.rate says what the fleet shares');
  if (rate === 0 && rateTable !== undefined && limit > 0)
    findings.problem('fleet.rate', 'is missing: fleet.rateTable is a table for it');
  if (!isShared) return;
  checkOptions(fleet, findings);
  const servers = new Set(Array.from(databases.values(), serverOf));
  if (endpoint !== undefined && servers.size > 1)
    findings.problem(
      'fleet.endpoint',
      `can name one server, and the databases are on ${servers.size}: ${[...servers].join(' ')}`,
    );
  if (endpoint === undefined) warnOfOwnNames(servers, findings);
}

/** Validates with the limits' own checks. */
function checkOptions(fleet: PoolerConfig['fleet'], findings: FleetFindings): void {
  const checks = [
    () => {
      const options = fleetLeaseOptions(fleet, 'any');
      if (options !== undefined) readLeaseOptions({ ...options, table: 'any' });
    },
    () => {
      const options = fleetRateOptions(fleet, 'any');
      if (options !== undefined) readRateOptions({ ...options, table: 'any' });
    },
  ];
  for (const check of checks) {
    try {
      check();
    } catch (error) {
      if (!(error instanceof PoolOptionsError)) throw error;
      for (const { path, message } of error.problems) findings.problem(`fleet.${path}`, message);
    }
  }
}

/** On another machine such a name stands for another server. */
function warnOfOwnNames(servers: Iterable<string>, findings: FleetFindings): void {
  for (const server of servers) {
    if (!/(?:^|,)(?:localhost|127\.|::1|[/@])/.test(server)) continue;
    findings.warn(
      `the fleet knows a server as ${server}, which is another one on each machine: give fleet.endpoint`,
    );
  }
}
