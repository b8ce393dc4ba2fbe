/** Checks a pooler's configuration by itself, and against what its servers allow. */
import { formatDuration } from '../kernel/duration.js';
import { quotasOf } from '../pooler/budgets/quotas.js';
import { isDsql } from '../pooler/config/dialect.js';
import { poolSettingsFor } from '../pooler/config/pool-settings.js';
import { databaseFor, fallbackDatabase, type PoolerConfig } from '../pooler/config/pooler-config.js';
import type { CheckedDatabase } from '../pooler/process/check-connections.js';
import { type Finding, problem, warning } from './doctor-findings.js';

export function configFindings(config: PoolerConfig): Finding[] {
  return [...missingTimeouts(config), ...lifetimesExceedRate(config)];
}

export function waitsForEver(setting: string): Finding {
  return warning(
    'waits_for_ever',
    'Clients wait for a server connection for ever.',
    `${setting} is 0.`,
    'Without a limit, a server that is down or a pool that is used up looks like a program that hangs.',
    `Set ${setting}, such as 30s.`,
  );
}

function missingTimeouts({ timeouts }: PoolerConfig): Finding[] {
  const found: Finding[] = [];
  if (timeouts.queryWaitTimeout === 0) found.push(waitsForEver('timeouts.queryWaitTimeout'));
  if (timeouts.idleTransactionTimeout === 0)
    found.push(
      warning(
        'idle_transactions_for_ever',
        'A transaction that its client has forgotten keeps its server connection for ever.',
        'timeouts.idleTransactionTimeout is 0.',
        'A client that stops between BEGIN and COMMIT takes a connection out of the pool, and holds its locks.',
        'Set timeouts.idleTransactionTimeout, such as 5m.',
      ),
    );
  return found;
}

interface Sizes {
  readonly server: string;
  /** Limit of one user's pool for this database. */
  readonly size: number;
  readonly lifetimeMs: number;
  readonly isDsql: boolean;
}

function sizesOf(config: PoolerConfig): Sizes[] {
  const quotas = quotasOf(config);
  return [...config.databases.keys()].flatMap((name) => {
    const database = name === fallbackDatabase ? undefined : databaseFor(config, name);
    if (database === undefined) return [];
    const { user = '' } = database;
    const { poolSize, serverLifetime: lifetimeMs } = poolSettingsFor(config, database, user);
    const server = `${database.host.join(',')}:${[database.port].flat().join(',')}`;
    const size = Math.min(poolSize, quotas.ofDatabase(name), quotas.ofUser(user));
    return [{ server, size, lifetimeMs, isDsql: isDsql(database) }];
  });
}

/** Each server has a rate of its own: that of the fleet, or the one for Aurora DSQL. */
function lifetimesExceedRate(config: PoolerConfig): Finding[] {
  const isOfFleet = config.fleet.rate > 0;
  const rate = isOfFleet ? config.fleet.rate : config.dsql.connectionRate;
  const option = isOfFleet ? 'fleet.rate' : 'dsql.connectionRate';
  const limited = sizesOf(config).filter((one) => (isOfFleet || one.isDsql) && one.lifetimeMs > 0);
  return [...new Set(limited.map(({ server }) => server))].flatMap((server) => {
    const own = limited.filter((one) => one.server === server);
    const size = own.reduce((sum, one) => sum + one.size, 0);
    const bound = Math.min(size, quotasOf(config).total);
    const needed = (bound / size) * own.reduce((sum, one) => sum + (1_000 * one.size) / one.lifetimeMs, 0);
    if (!(rate > 0) || needed <= rate) return [];
    const shortest = Math.min(...own.map(({ lifetimeMs }) => lifetimeMs));
    return problem(
      'lifetime_exceeds_rate',
      `Connections to ${server} end faster than they may be opened.`,
      `Pools of ${bound} connections that live ${formatDuration(shortest)} need ${needed.toFixed(1)} new ones a second; ${option} is ${rate}.`,
      'Every connection is opened anew once in its lifetime, and the rate is too low for that.',
      `A longer pooling.serverLifetime, smaller pools, or a higher ${option} if the server allows it.`,
    );
  });
}

/** After a login to each database. */
export function serverFindings(config: PoolerConfig, checked: readonly CheckedDatabase[]): Finding[] {
  const failed = checked.flatMap(({ database, user, server, error, advice }) =>
    error === undefined
      ? []
      : problem(
          'can_not_connect',
          `No client can log in to ${database} as ${user}.`,
          `${server}: ${error.message}`,
          advice ?? 'See the message of the server.',
          'headgate serve --check --connect tells whether it works.',
        ),
  );
  return [...failed, ...limitsExceedServer(config, checked)];
}

function limitsExceedServer(config: PoolerConfig, checked: readonly CheckedDatabase[]): Finding[] {
  const sizes = sizesOf(config);
  const servers = new Map(checked.flatMap((one) => (one.error === undefined ? [[one.server, one]] : [])));
  return [...servers.values()].flatMap(({ server, facts }) => {
    const most = Number(facts.get('max_connections') ?? Number.NaN);
    const reserved = Number(facts.get('superuser_reserved_connections') ?? 0);
    const wanted = sizes.filter((one) => one.server === server).reduce((sum, { size }) => sum + size, 0);
    // A number that was learned from the server is never too much for it.
    if (config.fairShares.capacity === 'auto') return [];
    const bound = Math.min(wanted, quotasOf(config).total);
    if (!(bound > most - reserved)) return [];
    return [
      problem(
        'limit_exceeds_server',
        `The pools of ${server} may open more connections than the server has.`,
        `They add up to ${bound} for one user each; max_connections is ${most}, of which ${reserved} are for superusers.`,
        'At full load the server refuses connections (53300), and clients of the pooler wait or fail.',
        `Smaller pools, fairShares.capacity auto, limits.maxServerConnections of at most ${most - reserved}, or a higher max_connections.`,
      ),
    ];
  });
}
