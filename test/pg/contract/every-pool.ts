// Runs one set of sentences against pg.Pool and against ours: a sentence that holds for only one of them fails.
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, vi } from 'vitest';
import { Pool } from '../../../src/index.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

/** What programs read of a pool although no type mentions it. */
export interface PoolInternals {
  readonly _clients: readonly PooledClient[];
  readonly _idle: readonly { readonly client: PooledClient }[];
  readonly _pendingQueue: readonly unknown[];
  readonly Client: unknown;
  readonly Promise: unknown;
  readonly log: (...messages: unknown[]) => void;
}

/** What programs read of a client although no type mentions it. */
export interface ClientInternals {
  readonly _ending: boolean;
  readonly _queryable: boolean;
  readonly processID: number;
}

export type PooledClient = pg.PoolClient & ClientInternals;
export type AnyPool = pg.Pool & PoolInternals;

/** Every option that pg-pool reads, typed or not; the rest reaches the client. */
export type AnyOptions = Omit<pg.PoolConfig, 'Client' | 'onConnect' | 'verify' | 'Promise'> & {
  Client?: unknown;
  onConnect?: (client: PooledClient) => unknown;
  verify?: (client: PooledClient, done: (error?: unknown) => void) => void;
  Promise?: unknown;
  poolSize?: number;
  binary?: boolean;
};

/** What can be done with the class pg.Pool, leaving aside what it inherits from the class EventEmitter. */
export interface AnyPoolClass {
  new (options?: pg.PoolConfig): pg.Pool;
  readonly prototype: pg.Pool;
  readonly name: string;
}

export interface Subject {
  /** The class under test. */
  readonly Pool: AnyPoolClass;
  /** A pool on the real server, under a name of its own, closed after the test. */
  readonly newPool: (options?: AnyOptions) => AnyPool;
  /** Where the real server is. */
  readonly server: () => { host: string; port: number; user: string; password: string; database: string };
  /** The process ids of the sessions that the server itself has for this pool. */
  readonly sessionsOf: (pool: pg.Pool) => Promise<number[]>;
  /** Ends the session of one client from the server's side. */
  readonly terminate: (client: pg.PoolClient) => Promise<void>;
}

/**
 * The pools that the contract is for. The type is part of it: our class takes what pg.Pool takes, and makes what is a
 * pg.Pool to TypeScript.
 */
export const implementations: [name: string, PoolClass: AnyPoolClass][] = [
  ['pg.Pool', pg.Pool],
  ['headgate Pool', Pool],
];

/** Declares the same tests for both classes. */
export function everyPool(declareTests: (subject: Subject) => void): void {
  describe.each(implementations)('%s', (_name, PoolClass) => {
    declareTests(usePoolsOf(PoolClass));
  });
}

/** Pools of one class, for the tests of the surrounding `describe`. */
export function usePoolsOf(PoolClass: AnyPoolClass): Subject {
  let db: TestDatabase | undefined;
  let observer: pg.Client | undefined;
  let opened: AnyPool[] = [];

  beforeAll(async () => {
    db = await withDatabase();
    observer = new pg.Client(connectionSettings());
    await observer.connect();
  });

  afterEach(() => {
    for (const pool of opened) abandon(pool);
    opened = [];
  });

  afterAll(async () => {
    // pg.Pool says that it has ended before its sessions have; one that is ended by force would be heard of here.
    await vi.waitFor(async () => expect(await idleSessions()).toBe(0), { timeout: 10_000 });
    await observer?.end();
    await db?.drop();
  });

  function connectionSettings() {
    if (db === undefined) throw new Error('the database exists from the first test on, not earlier');
    const { host, port, user, password, database } = db;
    return { host, port, user, password, database };
  }

  async function ask<Row extends pg.QueryResultRow>(text: string, values: unknown[]): Promise<Row[]> {
    if (observer === undefined) throw new Error('the observer connects before the first test, not earlier');
    const { rows } = await observer.query<Row>(text, values);
    return rows;
  }

  async function idleSessions(): Promise<number> {
    const rows = await ask<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity
       where datname = current_database() and state = 'idle'`,
      [],
    );
    return rows[0]?.count ?? 0;
  }

  return {
    Pool: PoolClass,
    server: connectionSettings,
    newPool(options = {}) {
      const all = { ...connectionSettings(), application_name: nextApplicationName(), ...options };
      const pool = new PoolClass(all as pg.PoolConfig) as AnyPool;
      opened.push(pool);
      return pool;
    },
    async sessionsOf(pool) {
      const rows = await ask<{ pid: number }>(
        'select pid from pg_stat_activity where application_name = $1 order by backend_start',
        [pool.options.application_name],
      );
      return rows.map((row) => row.pid);
    },
    async terminate(client) {
      await ask('select pg_terminate_backend($1)', [(client as PooledClient).processID]);
    },
  };
}

let applicationNames = 0;
function nextApplicationName(): string {
  applicationNames += 1;
  return `pool-${process.pid}-${applicationNames}`;
}

/** Leaves nothing open when a test has failed half-way; tests that pass have little left to abandon. */
export function abandon(pool: AnyPool): void {
  pool.on('error', () => {});
  const clients = [...pool._clients];
  if (!pool.ending) pool.end().catch(() => {});
  for (const client of clients) {
    client.on('error', () => {});
    client.connection?.stream?.destroy();
  }
}
