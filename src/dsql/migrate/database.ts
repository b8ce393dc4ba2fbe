/** The connection that migrations run on: opened again when it is lost, with the settings of the file, and tried again for a while. */
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText, faultOf, isAnswered, MigrationError } from './errors.js';
import type { MigrationClient, MigrationPool } from './migrate-options.js';

export interface Rows {
  readonly rows: readonly Record<string, unknown>[];
  readonly rowCount: number | null;
}

export type Query = (sql: string, values?: readonly unknown[]) => Promise<Rows>;

export interface DatabaseOptions {
  readonly retryForMs: number;
  /** Called before anything is tried again. Throws where it must not be. */
  readonly mayRetry: (why: string) => void;
}

const firstDelayMs = 20;
const longestDelayMs = 2_000;
const none = '';
const ignore = (): void => {};

export class Database {
  readonly #pool: MigrationPool;
  readonly #options: DatabaseOptions;
  #client: MigrationClient | undefined;
  #hasConnected = false;
  /** Settings that the connection has; undefined while it is between two. */
  #applied: string | undefined = none;
  #wanted: readonly string[] = [];

  constructor(pool: MigrationPool, options: DatabaseOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /** For the statements that follow. */
  useSettings(settings: readonly string[]): void {
    this.#wanted = settings;
  }

  /** One attempt on a connection that is there and has the settings. */
  async query(sql: string, values: readonly unknown[] = []): Promise<Rows> {
    const client = await this.#ready();
    return this.#run(client, sql, values);
  }

  /** A query that can be repeated. */
  read(sql: string, values: readonly unknown[] = []): Promise<Rows> {
    return this.retrying(() => this.query(sql, values));
  }

  /** Repeats `work` after conflicts and lost answers, with a pause that grows, as long as `retryFor` lasts. */
  async retrying<T>(work: () => Promise<T>, after?: (error: unknown) => Promise<T | undefined>): Promise<T> {
    const giveUpAt = performance.now() + this.#options.retryForMs;
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof MigrationError || faultOf(error) === 'failed') throw error;
        const why = errorText(error);
        if (performance.now() >= giveUpAt)
          throw new MigrationError(
            'unreachable',
            `gave up after ${attempt + 1} attempts: ${why}`,
            undefined,
            error,
          );
        await sleep(Math.random() * Math.min(longestDelayMs, firstDelayMs * 2 ** attempt));
        this.#options.mayRetry(why);
        const known = await after?.(error);
        if (known !== undefined) return known;
      }
    }
  }

  /** BEGIN, `work`, COMMIT: one attempt. */
  async transaction<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const client = await this.#ready();
    const query: Query = (sql, values = []) => this.#run(client, sql, values);
    await query('BEGIN');
    try {
      const value = await work(query);
      await query('COMMIT');
      return value;
    } catch (error) {
      if (this.#client === client) await query('ROLLBACK').catch(() => this.#letGo(true));
      throw error;
    }
  }

  close(): void {
    // Settings of files are not for the next user of the connection.
    this.#letGo(this.#applied !== none);
  }

  async #ready(): Promise<MigrationClient> {
    this.#client ??= await this.#connect();
    const client = this.#client;
    const wanted = this.#wanted.join('\0');
    if (this.#applied === wanted) return client;
    if (this.#applied !== none) await this.#run(client, 'RESET ALL', []);
    this.#applied = undefined;
    for (const setting of this.#wanted) await this.#run(client, setting, []);
    this.#applied = wanted;
    return client;
  }

  async #connect(): Promise<MigrationClient> {
    try {
      const client = await this.#pool.connect();
      // A connection that is lost between two statements shows at the next one.
      client.on?.('error', ignore);
      this.#hasConnected = true;
      this.#applied = none;
      return client;
    } catch (error) {
      const isHopeless = (error as { remedy?: unknown }).remedy === 'never';
      if (this.#hasConnected && !isHopeless) throw error;
      throw new MigrationError('unreachable', `can't connect: ${errorText(error)}`, undefined, error);
    }
  }

  async #run(client: MigrationClient, sql: string, values: readonly unknown[]): Promise<Rows> {
    try {
      const { rows, rowCount } = await client.query(sql, values.length === 0 ? undefined : [...values]);
      return { rows: rows as Record<string, unknown>[], rowCount };
    } catch (error) {
      if (this.#client === client && !isAnswered(error)) this.#letGo(true);
      throw error;
    }
  }

  #letGo(isBroken: boolean): void {
    const client = this.#client;
    this.#client = undefined;
    client?.removeListener?.('error', ignore);
    // A connection that is being closed may still report an error.
    if (isBroken) client?.on?.('error', ignore);
    client?.release(isBroken);
  }
}
