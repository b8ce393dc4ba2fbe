/** The pool of one user and one database in `headgate serve`: the pooler's options, by either of their names, read by its own code. */
import type { PolicyOptions } from '../../core/pool-policy.js';
import { nearest } from '../../kernel/nearest.js';
import { Problems } from '../../pooler/config/config-problems.js';
import { readConfig } from '../../pooler/config/config-reader.js';
import { allOptions, type ListedOption } from '../../pooler/config/option-table.js';
import { policyFor } from '../../pooler/config/pool-settings.js';
import { databaseFor } from '../../pooler/config/pooler-config.js';
import type { Mapping } from './scenario-reader-fields.js';

/** A token bucket that a product has by default. */
export interface ProductBucket {
  readonly perSecond: number;
  readonly burst: number;
}

interface PoolerPool {
  readonly options: PolicyOptions;
  readonly names: Readonly<Record<string, string>>;
}

/** Options that the engine of a pool goes by. */
const simulated: readonly ListedOption[] = [
  'pooling.poolSize',
  'pooling.minPoolSize',
  'pooling.serverLifetime',
  'pooling.serverLifetimeJitter',
  'pooling.serverMaxUses',
  'pooling.serverIdleTimeout',
  'pooling.serverConnectTimeout',
  'pooling.serverConnectLimit',
  'pooling.serverLoginRetry',
  'pooling.serverRoundRobin',
  'pooling.serverCheckDelay',
  'pooling.serverCheckQuery',
  'timeouts.queryWaitTimeout',
].flatMap((path) => allOptions.filter((listed) => listed.path === path));

const database = 'database';
const user = 'user';

export function poolerPool(given: Mapping, report: (path: string, message: string) => void): PoolerPool {
  const data: Record<string, Record<string, unknown>> = { databases: { [database]: {} } };
  const written = new Map<string, string>();
  for (const [name, value] of Object.entries(given)) {
    const listed = simulated.find(({ key, option }) => key === name || option.name === name);
    if (listed === undefined) {
      refuse(name, report);
      continue;
    }
    const { path, section, key } = listed;
    const other = written.get(path);
    if (other !== undefined) report(name, `is the same option as ${other}`);
    written.set(path, name);
    data[section] = { ...data[section], [key]: value };
  }
  const problems = new Problems();
  const tree = { data, folder: '', placeOf: () => ({ source: '' }) };
  const { config } = readConfig(
    { flags: new Map(), environment: {}, tree, folder: '', readsFiles: false },
    problems,
  );
  for (const { path, message } of problems.list) report(written.get(path) ?? path, message);
  const named = databaseFor(config, database);
  return { options: named === undefined ? {} : policyFor(config, named, user), names: {} };
}

function refuse(name: string, report: (path: string, message: string) => void): void {
  if (allOptions.some(({ key, option }) => key === name || option.name === name)) {
    report(name, `is not simulated; simulated are ${simulated.map(({ option }) => option.name).join(', ')}`);
    return;
  }
  const known = simulated.flatMap(({ key, option }) => [key, option.name]);
  const guess = nearest(name, known);
  report(name, guess === undefined ? 'is not an option' : `is not an option; did you mean ${guess}?`);
}
