/** The pool of one user and one database in `headgate serve`: the pooler's options, by either of their names, read by its own code. */
import type { PolicyOptions } from '../../core/pool-policy.js';
import { nearest } from '../../kernel/nearest.js';
import { Problems } from '../../pooler/config/config-problems.js';
import { readConfig } from '../../pooler/config/config-reader.js';
import { housekeepingPauseOf } from '../../pooler/config/housekeeping-pause.js';
import { allOptions, type ListedOption } from '../../pooler/config/option-table.js';
import { policyFor, poolSettingsFor } from '../../pooler/config/pool-settings.js';
import { type DatabaseConfig, databaseFor, type PoolerConfig } from '../../pooler/config/pooler-config.js';
import type { ReservePlan } from './scenario.js';
import type { Mapping } from './scenario-reader-fields.js';

/** A token bucket that a product has by default. */
export interface ProductBucket {
  readonly perSecond: number;
  readonly burst: number;
}

interface PoolerPool {
  readonly options: PolicyOptions;
  readonly names: Readonly<Record<string, string>>;
  readonly limiter?: ProductBucket | undefined;
  readonly reserve?: ReservePlan | undefined;
}

/** Options of which a pool's connections depend. */
const simulated: readonly ListedOption[] = [
  'pooling.poolSize',
  'pooling.minPoolSize',
  'pooling.reservePoolSize',
  'pooling.reservePoolTimeout',
  'limits.maxServerConnections',
  'limits.maxDbConnections',
  'limits.maxUserConnections',
  'dsql.connectionRate',
  'dsql.connectionBurst',
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

/** Limits of several users together, which a budget in the scenario stands for. */
const ofSeveralUsers = ['limits.maxServerConnections', 'limits.maxDbConnections'];

/** Options that decide about callers and not about connections. */
const inWords: Readonly<Record<string, string>> = {
  'pooling.poolMode':
    'is not simulated: a caller keeps its connection for its hold, be that a transaction or a session',
  'limits.maxClientConn': 'is not simulated: see maxInUse of the workload',
  'listen.workers': 'is not simulated: a service is one pooler, whatever its processes',
};

const database = 'database';
const user = 'user';

/** `isShared`: the services are the users of one pooler, which has a budget. */
export function poolerPool(
  given: Mapping,
  report: (path: string, message: string) => void,
  isShared: boolean,
): PoolerPool {
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
    if (isShared && ofSeveralUsers.includes(path))
      report(name, 'limits the users of a pooler together: say so with budget.capacity');
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
  if (named === undefined) return { options: {}, names: {} };
  return {
    ...sizesFor(config, named),
    names: {},
    limiter:
      written.has('dsql.connectionRate') || written.has('dsql.connectionBurst')
        ? bucketOf(config)
        : undefined,
  };
}

/** A pooler with one pool: the smallest of its limits bounds it. Its budgets do not let the kept size or the reserve go beyond. */
function sizesFor(config: PoolerConfig, named: DatabaseConfig): Pick<PoolerPool, 'options' | 'reserve'> {
  const options = policyFor(config, named, user);
  const { poolSize, reservePoolSize, maxDbConnections, maxUserConnections } = poolSettingsFor(
    config,
    named,
    user,
  );
  const limits = [maxDbConnections, maxUserConnections, config.limits.maxServerConnections];
  const most = Math.min(...limits.map((limit) => (limit === 0 ? Number.POSITIVE_INFINITY : limit)));
  const max = Math.min(poolSize, most);
  const size = Math.min(poolSize + reservePoolSize, most) - max;
  const { keeper, idleFloor } = options;
  const kept = Math.min(idleFloor ?? 0, max);
  return {
    options: {
      ...options,
      max,
      ...(typeof keeper === 'object' && {
        keeper: { ...keeper, target: kept, perTick: kept },
        idleFloor: kept,
      }),
    },
    reserve: reserveOf(config, size),
  };
}

function reserveOf(config: PoolerConfig, size: number): ReservePlan | undefined {
  const afterMs = config.pooling.reservePoolTimeout;
  return size === 0 || afterMs === 0 ? undefined : { size, afterMs, everyMs: housekeepingPauseOf(config) };
}

/** Only where one is written: a pooler has it before Aurora DSQL alone, and no limit by itself before other servers. */
function bucketOf({ dsql }: PoolerConfig): ProductBucket | undefined {
  const { connectionRate: perSecond, connectionBurst: burst } = dsql;
  return perSecond === 0 ? undefined : { perSecond, burst };
}

function refuse(name: string, report: (path: string, message: string) => void): void {
  const known = allOptions.find(({ key, option }) => key === name || option.name === name);
  if (known !== undefined) {
    const names = simulated.map(({ option }) => option.name).join(', ');
    report(name, inWords[known.path] ?? `is not simulated; simulated are ${names}`);
    return;
  }
  const guess = nearest(
    name,
    simulated.flatMap(({ key, option }) => [key, option.name]),
  );
  report(name, guess === undefined ? 'is not an option' : `is not an option; did you mean ${guess}?`);
}
