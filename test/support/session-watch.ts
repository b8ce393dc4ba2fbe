// Looks again and again at who is connected to a database, as PostgreSQL itself tells it: never more than allowed, not once.
import pg from 'pg';
import { expect } from 'vitest';
import type { TestDatabase } from './postgres.js';

interface Session {
  readonly pid: number;
  readonly user: string;
  readonly state: string;
  readonly query: string;
}

// Without autovacuum, which comes to every database now and then, and the workers of a parallel query.
const sessionsOf = `select pid, usename as user, coalesce(state, '') as state, left(query, 60) as query
  from pg_stat_activity where backend_type = 'client backend' and datname = $1`;

export class SessionWatch {
  looks = 0;
  /** How many each user had at the last look. */
  byUser: ReadonlyMap<string, number> = new Map();
  /** Sessions of the first look that saw as many. */
  #fullest: readonly Session[] = [];
  readonly #client: pg.Client;
  readonly #database: string;
  readonly #watching: Promise<void>;
  #isOver = false;

  private constructor(client: pg.Client, database: string) {
    this.#client = client;
    this.#database = database;
    this.#watching = this.#watch();
  }

  /** Its own connection is to another database, so that it is not among those it counts. */
  static async start({ url, database }: TestDatabase): Promise<SessionWatch> {
    const client = new pg.Client({ connectionString: new URL('/postgres', url).href });
    await client.connect();
    return new SessionWatch(client, database);
  }

  /** The most sessions of clients that were there at one moment. */
  get most(): number {
    return this.#fullest.length;
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      const { rows } = await this.#client.query<Session>(sessionsOf, [this.#database]);
      const byUser = new Map<string, number>();
      for (const { user } of rows) byUser.set(user, (byUser.get(user) ?? 0) + 1);
      this.byUser = byUser;
      this.looks++;
      if (rows.length > this.most) this.#fullest = rows;
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#watching;
    await this.#client.end();
  }

  expectAtMost(limit: number): void {
    expect(this.looks).toBeGreaterThan(0);
    expect(this.most, `sessions at one moment: ${JSON.stringify(this.#fullest)}`).toBeLessThanOrEqual(limit);
  }
}
