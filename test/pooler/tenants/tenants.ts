// Users of a real pooler in front of a real PostgreSQL, and someone who counts the server's connections from outside.
import pg from 'pg';
import { expect, onTestFinished, vi } from 'vitest';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';

/** The machine may be busy. */
export const soon = { timeout: 20_000, interval: 20 };

type Rows = Record<string, string>[];

/** Looks into `pg_stat_activity` again and again, on a connection of its own that the pooler knows nothing of. */
class Watcher {
  most = 0;
  looks = 0;
  /** As of the last look. */
  byUser = new Map<string, number>();
  readonly #client: pg.Client;
  readonly #database: string;
  #isOver = false;
  readonly #ended: Promise<void>;

  constructor(client: pg.Client, database: string) {
    this.#client = client;
    this.#database = database;
    this.#ended = this.#watch();
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      const { rows } = await this.#client.query(
        'select usename, count(*)::int as count from pg_stat_activity where datname = $1 group by usename',
        [this.#database],
      );
      this.looks++;
      this.byUser = new Map(rows.map(({ usename, count }) => [usename, count]));
      this.most = Math.max(
        this.most,
        [...this.byUser.values()].reduce((sum, count) => sum + count, 0),
      );
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#ended;
    await this.#client.end();
  }
}

export interface Tenants extends TestPooler {
  readonly watcher: Watcher;
  /** The name that a user has on the server. */
  nameOf(user: string): string;
  /** So many clients of a user, each with one question after the other until `stop()`. */
  work(user: string, clients: number, question: string | Question): Work;
  /** The server connections of these users, in this order, as the server sees them. */
  connectionsOf(...users: string[]): number[];
  /** Waits until the server sees these numbers. */
  settled(numbers: Readonly<Record<string, number>>): Promise<void>;
  show(what: string): Promise<Rows>;
  readonly admin: pg.Client;
  client(user: string): Promise<pg.Client>;
}

export type Question = (client: pg.Client) => Promise<unknown>;

/** What the clients of one user do. */
export class Work {
  answers = 0;
  readonly errors: Error[] = [];
  readonly #connect: () => Promise<pg.Client>;
  readonly #ask: Question;
  readonly #all: Promise<void>[];
  #isOver = false;

  constructor(connect: () => Promise<pg.Client>, clients: number, ask: Question) {
    this.#connect = connect;
    this.#ask = ask;
    this.#all = Array.from({ length: clients }, () => this.#go());
  }

  async #go(): Promise<void> {
    const client = await this.#connect();
    while (!this.#isOver) {
      try {
        await this.#ask(client);
        this.answers++;
      } catch (error) {
        this.errors.push(error as Error);
        break;
      }
    }
    await client.end();
  }

  /** Waits for so many more answers. */
  async more(count: number): Promise<void> {
    const until = this.answers + count;
    await vi.waitFor(() => expect(this.answers).toBeGreaterThanOrEqual(until), { ...soon, interval: 2 });
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#all);
  }
}

/** A pooler with these users. Its budget is never exceeded: that is checked when the test is over, whatever it is about. */
export async function startTenants(
  db: TestDatabase,
  users: readonly string[],
  capacity: number,
  tree: ConfigTree = {},
): Promise<Tenants> {
  const direct = new pg.Client({ connectionString: new URL('/postgres', db.url).href });
  await direct.connect();
  const nameOf = (user: string): string => `${db.database}_${user}`;
  for (const user of users) await direct.query(`create role ${nameOf(user)} login password '${db.password}'`);
  const pooler = await startTestPooler(db, {
    admin: { adminUsers: [db.user] },
    ...tree,
    pooling: { poolSize: 100, ...tree.pooling },
    fairShares: { capacity, ...tree.fairShares },
  });
  const watcher = new Watcher(direct, db.database);
  const works: Work[] = [];
  onTestFinished(async () => {
    for (const work of works) await work.stop();
    await pooler.stop();
    await watcher.stop();
    const cleaner = new pg.Client({ connectionString: new URL('/postgres', db.url).href });
    await cleaner.connect();
    for (const user of users) await cleaner.query(`drop role ${nameOf(user)}`);
    await cleaner.end();
    expect(watcher.looks).toBeGreaterThan(0);
    expect(watcher.most).toBeLessThanOrEqual(capacity);
  });
  const admin = await pooler.connect({ database: 'headgate' });
  const client = (user: string): Promise<pg.Client> => pooler.connect({ user: nameOf(user) });
  const connectionsOf = (...names: string[]): number[] =>
    names.map((user) => watcher.byUser.get(nameOf(user)) ?? 0);
  return {
    ...pooler,
    watcher,
    admin,
    nameOf,
    client,
    connectionsOf,
    show: async (what) => (await admin.query(`SHOW ${what}`)).rows,
    settled: (numbers) =>
      vi.waitFor(() => expect(connectionsOf(...Object.keys(numbers))).toEqual(Object.values(numbers)), soon),
    work: (user, clients, question) => {
      const ask: Question = typeof question === 'string' ? (one) => one.query(question) : question;
      const work = new Work(() => client(user), clients, ask);
      works.push(work);
      return work;
    },
  };
}
