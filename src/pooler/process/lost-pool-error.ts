/** Finds clients that may not stay under another configuration. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import { shown } from '../clients/refusal.js';
import type { ClientIdentity } from '../clients/relay/session-parts.js';
import { fatal } from '../clients/session-errors.js';
import { databaseFor, type PoolerConfig } from '../config/pooler-config.js';
import type { BackendPool } from '../servers/backend-pool.js';

/** Error for a client whose pool the configuration no longer leads to. The client can't move to another pool. */
export function lostPoolError(
  config: PoolerConfig,
  { user, database }: Pick<ClientIdentity, 'user' | 'database'>,
  pool: BackendPool,
): ErrorFields | undefined {
  const found = databaseFor(config, database);
  if (found === undefined) return databaseGone(database);
  return (found.user ?? user) === pool.user ? undefined : userChanged(database);
}

function databaseGone(name: string): ErrorFields {
  return fatal(
    SqlState.invalidCatalogName,
    `terminating connection: database "${shown(name)}" is not there any more`,
    'It was taken out of the configuration of the pooler.',
  );
}

function userChanged(name: string): ErrorFields {
  return fatal(
    SqlState.adminShutdown,
    `terminating connection: the pooler logs in to database "${shown(name)}" as another user now`,
    'Connect again.',
  );
}
