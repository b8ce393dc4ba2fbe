/** Limits and fairness of server connections, from the configuration. */
import { type UserTerms, usualPolicy } from '../../coordination/fair/fair-policy.js';
import { poolSettingsFor } from '../config/pool-settings.js';
import { databaseFor, type PoolerConfig } from '../config/pooler-config.js';
import type { ServerQuotas } from './server-budgets.js';

export function quotasOf(config: PoolerConfig): ServerQuotas {
  const { limits, fairShares } = config;
  const limitsOf = (database: string, user: string) => {
    const known = databaseFor(config, database);
    return known && poolSettingsFor(config, known, user);
  };
  const [anyDatabase = ''] = config.databases.keys();
  const { capacity, rebalanceInterval, demandWindow, turn, forecast } = fairShares;
  const ofUser = (user: string): number =>
    orNone(limitsOf(anyDatabase, user)?.maxUserConnections ?? limits.maxUserConnections);
  return {
    total: Math.min(
      orNone(limits.maxServerConnections),
      typeof capacity === 'number' ? capacity : Number.POSITIVE_INFINITY,
    ),
    ofDatabase: (database) => orNone(limitsOf(database, '')?.maxDbConnections ?? limits.maxDbConnections),
    ofUser,
    asksServers: capacity === 'auto',
    fairness: {
      ...usualPolicy,
      rebalanceInterval,
      demandWindow,
      turn,
      foresees: forecast,
    },
    termsOf: (user) => termsOf(config, user, ofUser(user)),
  };
}

function termsOf({ users, fairShares }: PoolerConfig, user: string, maximum: number): UserTerms {
  const own = users.get(user);
  const weight =
    own?.weight ?? fairShares.weights.get(user) ?? fairShares.weightsFile?.weights.get(user) ?? 1;
  return { weight, minimum: own?.minUserConnections ?? 0, maximum };
}

/** In the configuration, 0 stands for no limit. */
function orNone(limit: number): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : limit;
}
