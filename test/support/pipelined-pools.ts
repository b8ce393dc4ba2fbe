// Pools that pipeline, on a real server, with clients that count what is under way on them and a witness outside.
import pg from 'pg';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { Pool } from '../../src/index.js';
import { type TestDatabase, withDatabase } from './postgres.js';

export type PoolOptions = NonNullable<ConstructorParameters<typeof Pool>[0]>;
type Answer = (error: Error | null | undefined, result?: unknown) => void;

/** A client that notes each query handed to it until its answer comes. */
export interface WatchedClient extends pg.Client {
  readonly processID: number;
  /** Queries handed over and not answered, now and at most. */
  underWay: number;
  peak: number;
  /** All that it was ever asked, in order. */
  readonly asked: string[];
}

/** A fresh class of clients, and the list of all that were made of it. */
export function watchedClients(): { Client: typeof pg.Client; made: WatchedClient[] } {
  const made: WatchedClient[] = [];
  class Watched extends pg.Client {
    underWay = 0;
    peak = 0;
    readonly asked: string[] = [];

    constructor(options: pg.ClientConfig) {
      super(options);
      made.push(this as unknown as WatchedClient);
    }

    // biome-ignore lint/suspicious/noExplicitAny: it stands in for every overload at once
    override query(config: any, values?: any, callback?: any): any {
      this.asked.push(typeof config === 'string' ? config : config.text);
      if (typeof callback !== 'function') return super.query(config, values, callback);
      this.underWay++;
      this.peak = Math.max(this.peak, this.underWay);
      let isAnswered = false;
      const answer: Answer = (error, result) => {
        if (!isAnswered) this.underWay--;
        isAnswered = true;
        (callback as Answer)(error, result);
      };
      return super.query(config, values, answer);
    }
  }
  return { Client: Watched as typeof pg.Client, made };
}

export interface PipelinedPools {
  /** A pool on the real server, depth 4 unless told otherwise, closed after the test. */
  readonly newPool: (options?: PoolOptions) => Pool;
  /** Such a pool together with the clients it has made. */
  readonly newWatchedPool: (options?: PoolOptions) => { pool: Pool; clients: WatchedClient[] };
  readonly server: () => TestDatabase;
  /** A question over a connection that belongs to no pool. */
  readonly ask: <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>;
  /** The server's own count of this pool's sessions. */
  readonly sessionsOf: (pool: Pool) => Promise<number>;
  readonly newGate: () => Gate;
}

/** Holds up every query that passes it on the server: `pool.query(gate.text, gate.values)`. Closed to begin with. */
export interface Gate {
  readonly text: string;
  readonly values: [number];
  close(): Promise<void>;
  open(): Promise<void>;
  /** Resolves when that many sessions of the server stand before the gate. */
  isReachedBy(sessions: number): Promise<void>;
}

let names = 0;

/** For the tests of the surrounding file or `describe`. */
export function usePipelinedPools(schema?: string): PipelinedPools {
  let db: TestDatabase | undefined;
  let observer: pg.Client | undefined;
  let opened: Pool[] = [];

  beforeAll(async () => {
    db = await withDatabase();
    observer = new pg.Client({ connectionString: db.url });
    await observer.connect();
    if (schema !== undefined) await observer.query(schema);
  });

  afterEach(async () => {
    // A test that failed half-way may have left queries behind that wait for a gate.
    await ask('select pg_advisory_unlock_all()');
    for (const pool of opened) {
      if (pool.ending) continue;
      pool.on('error', () => {});
      await pool.end({ deadline: 100 });
    }
    opened = [];
  });

  afterAll(async () => {
    await observer?.end();
    await db?.drop();
  });

  function server(): TestDatabase {
    if (db === undefined) throw new Error('the database exists from the first test on, not earlier');
    return db;
  }

  async function ask<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]> {
    if (observer === undefined) throw new Error('the observer connects before the first test, not earlier');
    return (await observer.query<Row>(text, values)).rows;
  }

  function newPool(options: PoolOptions = {}): Pool {
    const { host, port, user, password, database } = server();
    names += 1;
    const pool = new Pool({
      ...{ host, port, user, password, database, pipeline: { depth: 4 } },
      application_name: `pipelined-${process.pid}-${names}`,
      ...options,
    });
    opened.push(pool);
    return pool;
  }

  return {
    newPool,
    newWatchedPool(options = {}) {
      const { Client, made } = watchedClients();
      return { pool: newPool({ ...options, Client } as PoolOptions), clients: made };
    },
    server,
    ask,
    async sessionsOf(pool) {
      const [row] = await ask<{ sessions: number }>(
        `select count(*)::int as sessions from pg_stat_activity where application_name = $1`,
        [pool.options.application_name],
      );
      return row?.sessions ?? 0;
    },
    newGate() {
      names += 1;
      const key = names;
      return {
        text: 'select pg_advisory_xact_lock_shared($1)',
        values: [key],
        async close() {
          await ask('select pg_advisory_lock($1)', [key]);
        },
        async open() {
          await ask('select pg_advisory_unlock($1)', [key]);
        },
        async isReachedBy(sessions) {
          for (;;) {
            const [row] = await ask<{ waiting: number }>(
              `select count(*)::int as waiting from pg_locks
               where locktype = 'advisory' and not granted and objid = $1::int::oid and database =
                 (select oid from pg_database where datname = current_database())`,
              [key],
            );
            if ((row?.waiting ?? 0) >= sessions) return;
          }
        },
      };
    },
  };
}

/** Asks without end until it is told to stop: `callers` at a time, each again as soon as it is answered. */
export class EndlessLoad {
  /** How many were answered so far. */
  answered = 0;
  #isStopped = false;
  #failure: unknown = undefined;
  readonly #callers: Promise<void>[];

  constructor(callers: number, once: () => Promise<unknown>) {
    const run = async (): Promise<void> => {
      try {
        while (!this.#isStopped) {
          await once();
          this.answered++;
        }
      } catch (error) {
        this.#isStopped = true;
        this.#failure ??= error;
      }
    };
    this.#callers = Array.from({ length: callers }, run);
  }

  /** Resolves when that many more were answered. */
  async goesOn(answers: number): Promise<void> {
    const goal = this.answered + answers;
    while (this.answered < goal && !this.#isStopped) await new Promise((resolve) => setImmediate(resolve));
    if (this.#failure !== undefined) throw this.#failure;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#callers);
    if (this.#failure !== undefined) throw this.#failure;
  }
}
