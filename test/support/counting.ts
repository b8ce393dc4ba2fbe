// Asks the server itself how many sessions it has: the only count of connections that a pool can't get wrong.
import pg from 'pg';

export interface SessionFilter {
  readonly applicationName?: string;
  readonly database?: string;
}

/** Counts over a connection of its own, which is not among those counted. */
export class SessionCounter {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async open(url: string): Promise<SessionCounter> {
    const client = new pg.Client({ connectionString: url, application_name: 'headgate-test-counter' });
    await client.connect();
    return new SessionCounter(client);
  }

  /** The sessions of clients that match, those that are still starting or ending included. */
  async count(filter: SessionFilter = {}): Promise<number> {
    const { rows } = await this.#client.query<{ sessions: number }>(
      `select count(*)::int as sessions from pg_stat_activity
       where backend_type = 'client backend' and pid <> pg_backend_pid()
         and ($1::text is null or application_name = $1) and ($2::text is null or datname = $2)`,
      [filter.applicationName ?? null, filter.database ?? null],
    );
    return rows[0]?.sessions ?? 0;
  }

  /** How many sessions each application name has. */
  async byApplication(): Promise<Map<string, number>> {
    const { rows } = await this.#client.query<{ name: string; sessions: number }>(
      `select application_name as name, count(*)::int as sessions from pg_stat_activity
       where backend_type = 'client backend' and pid <> pg_backend_pid() group by 1`,
    );
    return new Map(rows.map(({ name, sessions }) => [name, sessions]));
  }

  /** Ends the matching sessions from the server's side, as an operator or a failover would; answers how many. */
  async terminate(filter: SessionFilter): Promise<number> {
    const { rowCount } = await this.#client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where backend_type = 'client backend' and pid <> pg_backend_pid()
         and ($1::text is null or application_name = $1) and ($2::text is null or datname = $2)`,
      [filter.applicationName ?? null, filter.database ?? null],
    );
    return rowCount ?? 0;
  }

  /** Asks again and again until the count is as wanted; the test's own timeout is the limit. */
  async until(filter: SessionFilter, wanted: (sessions: number) => boolean): Promise<number> {
    for (;;) {
      const sessions = await this.count(filter);
      if (wanted(sessions)) return sessions;
    }
  }

  async close(): Promise<void> {
    await this.#client.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
