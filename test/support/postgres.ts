// Real PostgreSQL for tests: a database of its own for each test file, or a whole server where its settings matter.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../scripts/lib/embedded-postgres.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** The connection string of the server that all test files share. */
    sharedPostgresUrl: string;
  }
}

/** Options with which pg.Client, pg.Pool and Headgate's Pool connect to a test's database. */
export interface TestDatabase {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** These options as a connection string. */
  readonly url: string;
  /** Removes the database, whoever is still connected to it, and the server if it was started for it. */
  drop(): Promise<void>;
}

/**
 * A server with settings of its own. Inside a test it stops when the test ends; elsewhere, call `stop()`
 * (a forgotten one ends with the process).
 */
export async function startPostgres(options?: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres(options);
  try {
    onTestFinished(() => server.stop());
  } catch {
    // Called from a hook or from the top of a file, where no test is running.
  }
  return server;
}

/**
 * A fresh, empty database on the shared server (on a server started for it, where none is shared).
 *
 * ```ts
 * let db: TestDatabase;
 * beforeAll(async () => { db = await withDatabase(); });
 * afterAll(() => db.drop());
 * ```
 */
export async function withDatabase(): Promise<TestDatabase> {
  const shared: string | undefined = inject('sharedPostgresUrl');
  const own = shared === undefined ? await startEmbeddedPostgres() : undefined;
  const serverUrl = new URL(shared ?? own?.url ?? '');
  const database = `test_${process.pid}_${randomBytes(4).toString('hex')}`;
  await runOnce(serverUrl, `create database ${database}`);

  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return {
    host: url.hostname,
    port: Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database,
    url: url.href,
    async drop() {
      if (own === undefined) await runOnce(serverUrl, `drop database if exists ${database} with (force)`);
      else await own.stop();
    },
  };
}

async function runOnce(url: URL, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
