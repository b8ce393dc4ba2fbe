/** Counts of clients in total, per user and per database. A place is taken before a client is accepted. */
import { consoleDatabases, type PoolerConfig } from '../config/pooler-config.js';
import { shown, tooManyClients } from './refusal.js';

export interface ClientQuotas {
  /** Limit in total; `Infinity`: this client does not count there. */
  readonly total: number;
  /** Limits per user and per database; 0: no limit. */
  readonly ofUser: number;
  readonly ofDatabase: number;
}

/** As in PgBouncer, `max_client_conn` does not apply to console clients, and the other limits do not apply to console administrators. */
export function consoleQuotasFor({ admin, limits, users }: PoolerConfig, user: string): ClientQuotas {
  const total = Number.POSITIVE_INFINITY;
  if (admin.adminUsers.includes(user)) return { total, ofUser: 0, ofDatabase: 0 };
  return {
    total,
    ofUser: users.get(user)?.maxUserClientConnections ?? limits.maxUserClientConnections,
    ofDatabase: limits.maxDbClientConnections,
  };
}

export class ClientLimits {
  #total = 0;
  readonly #byUser = new Map<string, number>();
  readonly #byDatabase = new Map<string, number>();

  get total(): number {
    return this.#total;
  }

  ofUser(user: string): number {
    return this.#byUser.get(user) ?? 0;
  }

  /** The console has several names, which count as one database. */
  ofDatabase(database: string): number {
    return this.#byDatabase.get(nameOf(database)) ?? 0;
  }

  /** Throws a `Refusal` when the limit is reached. */
  checkTotal(most: number): void {
    if (this.#total >= most) throw tooManyClients('all clients together', most, 'max_client_conn');
  }

  /** Takes a place, or throws a `Refusal`. The returned function gives the place back and must be called once. */
  take(user: string, database: string, quotas: ClientQuotas): () => void {
    this.checkTotal(quotas.total);
    if (quotas.ofDatabase > 0 && this.ofDatabase(database) >= quotas.ofDatabase)
      throw tooManyClients(`database "${shown(database)}"`, quotas.ofDatabase, 'max_db_client_connections');
    if (quotas.ofUser > 0 && this.ofUser(user) >= quotas.ofUser)
      throw tooManyClients(`user "${shown(user)}"`, quotas.ofUser, 'max_user_client_connections');
    const add = (count: 1 | -1): void => {
      if (Number.isFinite(quotas.total)) this.#total += count;
      addTo(this.#byUser, user, count);
      addTo(this.#byDatabase, nameOf(database), count);
    };
    add(1);
    let isTaken = true;
    return () => {
      if (isTaken) add(-1);
      isTaken = false;
    };
  }
}

function nameOf(database: string): string {
  return consoleDatabases.includes(database) ? (consoleDatabases[0] as string) : database;
}

/** Entries that reach zero are removed. */
function addTo(counts: Map<string, number>, key: string, count: number): void {
  const after = (counts.get(key) ?? 0) + count;
  if (after === 0) counts.delete(key);
  else counts.set(key, after);
}
