// Users of a real pooler in front of a real PostgreSQL, and someone who counts the server's connections from outside.
import pg from 'pg';
import { expect, onTestFinished, vi } from 'vitest';
import { type ConfigTree, startTestPooler, type TestPooler } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';
import { SessionWatch } from '../../support/session-watch.js';

/** The machine may be busy. */
export const soon = { timeout: 20_000, interval: 20 };

type Rows = Record<string, string>[];

export interface Tenants extends TestPooler {
  readonly watch: SessionWatch;
  /** The name that a user has on the server. */
  nameOf(user: string): string;
  /** So many clients of a user, each with one question after the other until `stop()`. */
  work(user: string, clients: number, question: string | Question, database?: string): Work;
  /** The server connections of these users, in this order, as the server sees them. */
  connectionsOf(...users: string[]): number[];
  /** Waits until the server sees these numbers. */
  settled(numbers: Readonly<Record<string, number>>): Promise<void>;
  show(what: string): Promise<Rows>;
  readonly admin: pg.Client;
  client(user: string): Promise<pg.Client>;
}

export type Question = (client: pg.Client) => Promise<unknown>;

/** The work of one user's clients. */
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
  const nameOf = (user: string): string => `${db.database}_${user}`;
  await onServer(db, users, (user) => `create role ${nameOf(user)} login password '${db.password}'`);
  const pooler = await startTestPooler(db, {
    admin: { adminUsers: [db.user] },
    ...tree,
    pooling: { poolSize: 100, ...tree.pooling },
    fairShares: { capacity, ...tree.fairShares },
  });
  const watch = await SessionWatch.start(db);
  const works: Work[] = [];
  onTestFinished(async () => {
    for (const work of works) await work.stop();
    await pooler.stop();
    await watch.stop();
    await onServer(db, users, (user) => `drop role ${nameOf(user)}`);
    watch.expectAtMost(capacity);
  });
  const admin = await pooler.connect({ database: 'headgate' });
  const client = (user: string): Promise<pg.Client> => pooler.connect({ user: nameOf(user) });
  const connectionsOf = (...names: string[]): number[] =>
    names.map((user) => watch.byUser.get(nameOf(user)) ?? 0);
  return {
    ...pooler,
    watch,
    admin,
    nameOf,
    client,
    connectionsOf,
    show: async (what) => (await admin.query(`SHOW ${what}`)).rows,
    settled: (numbers) =>
      vi.waitFor(() => expect(connectionsOf(...Object.keys(numbers))).toEqual(Object.values(numbers)), soon),
    work: (user, clients, question, database = db.database) => {
      const ask: Question = typeof question === 'string' ? (one) => one.query(question) : question;
      const work = new Work(() => pooler.connect({ user: nameOf(user), database }), clients, ask);
      works.push(work);
      return work;
    },
  };
}

async function onServer(
  db: TestDatabase,
  users: readonly string[],
  textFor: (user: string) => string,
): Promise<void> {
  const direct = new pg.Client({ connectionString: new URL('/postgres', db.url).href });
  await direct.connect();
  for (const user of users) await direct.query(textFor(user));
  await direct.end();
}
