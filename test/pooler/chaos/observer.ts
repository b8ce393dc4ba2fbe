// Looks at PostgreSQL's own list of sessions again and again, over a connection of its own, and notes every limit that is exceeded.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { FaultProxy } from './fault-proxy.js';

/** The most server connections at any moment; undefined for no limit. */
export interface ServerLimits {
  /** Of a user in a database. */
  readonly ofPool: (user: string, database: string) => number;
  readonly ofUser?: (user: string) => number;
  readonly ofDatabase?: number;
  readonly total?: number;
}

interface Session {
  readonly pid: number;
  readonly user: string;
  readonly database: string;
  readonly port: number;
  readonly state: string;
  readonly query: string;
}

const sessions = `select pid, usename as user, datname as database, client_port as port, coalesce(state, '') as state,
  left(query, 60) as query from pg_stat_activity
  where backend_type = 'client backend' and usename = any ($1) and datname = any ($2)`;

export class Observer {
  readonly exceeded: string[] = [];
  samples = 0;
  /** The most there were at once, in all. */
  most = 0;
  readonly #client: pg.Client;
  readonly #proxy: FaultProxy;
  readonly #users: readonly string[];
  readonly #databases: readonly string[];
  readonly #limits: ServerLimits;
  #isOver = false;
  #watching: Promise<void> | undefined;

  private constructor(
    client: pg.Client,
    proxy: FaultProxy,
    users: readonly string[],
    databases: readonly string[],
    limits: ServerLimits,
  ) {
    this.#client = client;
    this.#proxy = proxy;
    this.#users = users;
    this.#databases = databases;
    this.#limits = limits;
    this.#watching = undefined;
  }

  static async start(
    url: string,
    proxy: FaultProxy,
    users: readonly string[],
    databases: readonly string[],
    limits: ServerLimits,
  ): Promise<Observer> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const observer = new Observer(client, proxy, users, databases, limits);
    observer.#watching = observer.#watch();
    return observer;
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      const all = await this.sessions();
      // Sessions that the pooler has lost or given up, and whose end PostgreSQL could not notice.
      const connected = all.filter(({ port }) => !this.#proxy.isLost(port));
      this.samples++;
      this.most = Math.max(this.most, connected.length);
      this.#compare(connected);
      await sleep(2);
    }
  }

  #compare(connected: readonly Session[]): void {
    const { ofPool, ofUser, ofDatabase, total } = this.#limits;
    this.#check('all', connected, total);
    for (const [database, of] of groups(connected, (session) => session.database))
      this.#check(database, of, ofDatabase);
    for (const [user, of] of groups(connected, (session) => session.user)) {
      this.#check(user, of, ofUser?.(user));
      for (const [database, both] of groups(of, (session) => session.database))
        this.#check(`${user}@${database}`, both, ofPool(user, database));
    }
  }

  #check(what: string, found: readonly Session[], limit = Number.POSITIVE_INFINITY): void {
    if (found.length <= limit) return;
    const list = found.map(({ pid, state, query }) => `${pid} ${state} ${query}`).join('; ');
    const ms = Math.round(performance.now());
    this.exceeded.push(`at ${ms} ms ${what} has ${found.length} of ${limit} server connections: ${list}`);
  }

  async sessions(): Promise<Session[]> {
    const { rows } = await this.#client.query<Session>(sessions, [this.#users, this.#databases]);
    return rows;
  }

  /** Advisory locks that somebody holds in one of the databases. */
  async locks(): Promise<number> {
    const { rows } = await this.#client.query<{ n: number }>(
      `select count(*)::int as n from pg_locks join pg_database d on d.oid = database
       where locktype = 'advisory' and datname = any ($1)`,
      [this.#databases],
    );
    return rows[0]?.n ?? 0;
  }

  /** Ends the watch; questions can still be asked. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#watching;
  }

  async close(): Promise<void> {
    await this.stop();
    await this.#client.end();
  }
}

function groups<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const byKey = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    byKey.set(key, [...(byKey.get(key) ?? []), item]);
  }
  return byKey;
}
