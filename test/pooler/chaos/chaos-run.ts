// One play of chaos: databases, users, a pooler behind a faulty way to the server, clients, trouble, and in the end what was wrong.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { PoolerStats } from '../../../src/pooler/process/pooler.js';
import {
  type ConfigTree,
  poolerConfig,
  startTestPooler,
  type TestPooler,
  treeFor,
} from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { type SeededRandom, seededRandom } from '../../support/seeded-random.js';
import { Book, openBank } from './bank.js';
import { DriverActor } from './driver-actor.js';
import { FaultProxy } from './fault-proxy.js';
import { Observer, type ServerLimits } from './observer.js';
import { RawActor } from './raw-actor.js';
import { ReadingActor } from './reading-actor.js';
import { type Part, Stage } from './stage.js';
import { Troublemaker } from './troublemaker.js';

export interface ChaosPlan {
  readonly seconds: number;
  readonly seed: number;
  /** How many clients each user has in each database. */
  readonly clients: number;
  /** Clients beside them that only read, and whose statements share connections. */
  readonly readers?: number;
  readonly users: readonly string[];
  /** Options of the users, by name. */
  readonly userOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Each RELOAD takes the next one. */
  readonly trees: readonly ConfigTree[];
  readonly limits: ServerLimits;
}

export interface ChaosReport {
  /** Everything that was not as it must be, in words. */
  readonly wrong: readonly string[];
  /** How often things happened. */
  readonly seen: Readonly<Record<string, number>>;
  readonly kept: number;
  /** Statements that were sent behind those of other clients. */
  readonly multiplexed: number;
  /** How often the server was looked at, and the most connections there were. */
  readonly samples: number;
  readonly most: number;
}

export async function runChaos(plan: ChaosPlan): Promise<ChaosReport> {
  const databases = [await withDatabase(), await withDatabase()];
  const [first] = databases as [TestDatabase];
  const admins = await Promise.all(databases.map(({ url }) => connectTo(url)));
  const [admin] = admins as [pg.Client];
  for (const user of plan.users) await admin.query(`create role ${user} login password '${user}'`);
  const proxy = await FaultProxy.start(first);
  try {
    for (const one of admins) await openBank(one, plan.users);
    return await play(plan, databases, admins, proxy);
  } finally {
    await Promise.all(admins.map((one) => one.end()));
    await proxy.stop();
    for (const database of databases) await database.drop();
    await dropRoles(first, plan.users);
  }
}

async function play(
  plan: ChaosPlan,
  databases: readonly TestDatabase[],
  admins: readonly pg.Client[],
  proxy: FaultProxy,
): Promise<ChaosReport> {
  const random = seededRandom(plan.seed);
  const names = databases.map(({ database }) => database);
  const [first] = databases as [TestDatabase];
  const pooler = await startPoolerFor(plan, databases, proxy);
  const books = new Map(names.map((name) => [name, new Book()]));
  const stage = new Stage(pooler.port, books, plan.seconds);
  const maintenance = first.url.replace(/[^/]+$/, 'postgres');
  const observer = await Observer.start(maintenance, proxy, plan.users, names, plan.limits);
  try {
    const trouble = {
      proxy,
      users: plan.users,
      databases: names,
      adminUrl: maintenance,
      operator: 'operator',
    };
    const actors = castFor(plan, stage, names, random);
    const troublemaker = new Troublemaker(stage, trouble, randomFrom(random));
    await Promise.all([troublemaker.run(), ...actors.map((actor) => actor.run())]);
    const left = await settle(pooler, observer, proxy);
    const isFresh = await serveFreshClients(plan, pooler, names);
    await observer.stop();
    const audits = await Promise.all(
      admins.map(async (admin, index) => (books.get(names[index] as string) as Book).audit(admin)),
    );
    const multiplexed = pooler.pooler.stats().pools.reduce((sum, { tally }) => sum + tally.multiplexed, 0);
    await pooler.stop();
    const after = (await observer.sessions()).length;
    if (after > 0) left.push(`${after} sessions were left after the pooler had stopped`);
    return {
      wrong: [...stage.wrong, ...observer.exceeded, ...audits.flat(), ...left, ...isFresh],
      seen: Object.fromEntries([...stage.seen].sort()),
      kept: [...books.values()].reduce((sum, { counts }) => sum + counts.kept, 0),
      multiplexed,
      samples: observer.samples,
      most: observer.most,
    };
  } finally {
    await pooler.stop();
    await observer.close();
  }
}

function startPoolerFor(
  { trees, users, userOptions = {} }: ChaosPlan,
  databases: readonly TestDatabase[],
  { host, port }: FaultProxy,
): Promise<TestPooler> {
  const [first] = databases as [TestDatabase];
  const common = {
    databases: Object.fromEntries(databases.map(({ database }) => [database, { host, port }])),
    users: Object.fromEntries(users.map((user) => [user, { password: user, ...userOptions[user] }])),
    admin: { adminUsers: ['operator'] },
    logging: { connections: false, disconnections: false },
  };
  const all = trees.map((tree) => treeFor(first, { ...common, ...tree }));
  const configs = all.map((tree) => poolerConfig(tree));
  let reloads = 0;
  const readConfig = () => configs[++reloads % configs.length] as (typeof configs)[0];
  return startTestPooler(first, all[0], { host: { readConfig } });
}

function castFor(plan: ChaosPlan, stage: Stage, databases: readonly string[], random: SeededRandom) {
  const actors: { run(): Promise<void> }[] = [];
  const { clients, readers = 0 } = plan;
  for (const user of plan.users)
    for (const database of databases)
      for (let n = 0; n < clients + readers; n++) {
        const part: Part = { id: actors.length, user, database };
        const Actor = n >= clients ? ReadingActor : n % 2 === 0 ? DriverActor : RawActor;
        actors.push(new Actor(stage, part, randomFrom(random)));
      }
  return actors;
}

/** Each has its own, so that what one draws does not depend on when the others draw. */
function randomFrom(random: SeededRandom): SeededRandom {
  return seededRandom(random.below(2 ** 31));
}

// ---- the end --------------------------------------------------------------------------------------------------------

/** Waits until nobody is there and nothing is under way; what is left after a while is wrong. */
async function settle({ pooler }: TestPooler, observer: Observer, proxy: FaultProxy): Promise<string[]> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const left = await leftovers(pooler.stats(), observer, proxy);
    if (left.length === 0 || Date.now() > deadline) return left;
    await sleep(20);
  }
}

async function leftovers(stats: PoolerStats, observer: Observer, proxy: FaultProxy): Promise<string[]> {
  const left: string[] = [];
  const { clients, waiting, pinned, pools } = stats;
  if (clients + waiting + pinned > 0)
    left.push(`${clients} clients are left, ${waiting} wait, ${pinned} are pinned`);
  const sessions = await observer.sessions();
  for (const { user, database, inUse, pending, closing, checking, waiting: queued, live } of pools) {
    if (inUse + pending + closing + checking + queued > 0)
      left.push(`${user}@${database}: ${JSON.stringify({ inUse, pending, closing, checking, queued })}`);
    const there = sessions.filter((session) => session.user === user && session.database === database);
    if (there.length !== live) left.push(`${user}@${database} has ${live}, PostgreSQL has ${there.length}`);
  }
  for (const { state, query, user } of sessions)
    if (state !== 'idle') left.push(`a session of ${user} is ${state}: ${query}`);
  const live = pools.reduce((sum, pool) => sum + pool.live, 0);
  if (proxy.links.length !== live)
    left.push(`${proxy.links.length} links for ${live} connections: ${proxy.links.join('; ')}`);
  const locks = await observer.locks();
  if (locks > 0) left.push(`${locks} advisory locks are held`);
  return left;
}

/** A client that comes now is served, and finds nothing of anybody else. */
async function serveFreshClients(
  plan: ChaosPlan,
  pooler: TestPooler,
  databases: readonly string[],
): Promise<string[]> {
  const wrong: string[] = [];
  for (const user of plan.users)
    for (const database of databases) {
      const expected = JSON.stringify([{ user, database, name: 'fresh', mark: '', clean: true }]);
      const seen = await lookAround(pooler, { user, database, application_name: 'fresh' });
      if (seen !== expected) wrong.push(`a fresh client sees ${seen} in place of ${expected}`);
    }
  return wrong;
}

const tries = 5;

/** A user with little time may be told so on a slow machine; then it tries again. */
async function lookAround(pooler: TestPooler, who: pg.ClientConfig, triesLeft = tries): Promise<string> {
  try {
    const client = await pooler.connect(who);
    const { rows } = await client.query(
      `select current_user as user, current_database() as database, current_setting('application_name') as name,
       coalesce(current_setting('chaos.mark', true), '') as mark, to_regclass('pg_temp.mine') is null as clean`,
    );
    await client.end();
    return JSON.stringify(rows);
  } catch (error) {
    const { code, message } = error as pg.DatabaseError;
    return code === '57014' && triesLeft > 0 ? lookAround(pooler, who, triesLeft - 1) : message;
  }
}

async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

async function dropRoles({ url }: TestDatabase, users: readonly string[]): Promise<void> {
  const client = await connectTo(url.replace(/[^/]+$/, 'postgres'));
  for (const user of users) await client.query(`drop role if exists ${user}`);
  await client.end();
}
