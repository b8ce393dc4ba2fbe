// @ts-check
// Users of the demonstration's pooler: programs of different habits, so that shares of its budget move while one looks.
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/**
 * @typedef {object} Habit
 * @property {string} user
 * @property {number} weight
 * @property {number} clients how many connect at most
 * @property {(seconds: number) => number} wanted how many of them work, by the time since the start
 * @property {() => number} workMs how long a transaction takes
 * @property {() => number} restMs how long a client rests after it
 */

/** A user whose session listens, and keeps its server connection. */
export const listener = 'events';

/** @type {readonly Habit[]} */
export const habits = [
  {
    // Many short requests that rise and fall like a day in a minute.
    user: 'web',
    weight: 2,
    clients: 24,
    wanted: (seconds) => 10 + Math.round(9 * Math.sin((2 * Math.PI * seconds) / 60)),
    workMs: () => 15 + 30 * Math.random(),
    restMs: () => 20 + 60 * Math.random(),
  },
  {
    // A constant load.
    user: 'api',
    weight: 1,
    clients: 8,
    wanted: () => 6,
    workMs: () => 40 + 20 * Math.random(),
    restMs: () => 60 * Math.random(),
  },
  {
    // Every 45 seconds, all at once, and as fast as it goes.
    user: 'batch',
    weight: 1,
    clients: 30,
    wanted: (seconds) => (seconds % 45 > 12 && seconds % 45 < 27 ? 30 : 0),
    workMs: () => 150 + 200 * Math.random(),
    restMs: () => 5,
  },
  {
    // Few, and each for seconds.
    user: 'reports',
    weight: 1,
    clients: 4,
    wanted: (seconds) => (seconds % 30 < 20 ? 3 : 1),
    workMs: () => 1_000 + 2_500 * Math.random(),
    restMs: () => 500 + 1_000 * Math.random(),
  },
];

/**
 * Roles and a table on the server, before the pooler has clients.
 * @param {{ url: string, password: string }} server
 */
export async function prepareUsers({ url, password }) {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  try {
    for (const { user } of [...habits, { user: listener }])
      await admin.query(`create role ${user} login password '${password}'`);
    await admin.query('create table if not exists orders (id int primary key, total numeric)');
    await admin.query(
      'insert into orders select i, i * 1.5 from generate_series(1, 1000) i on conflict do nothing',
    );
    await admin.query('grant select on orders to public');
  } finally {
    await admin.end();
  }
}

/**
 * Runs until the signal. What goes wrong with a client is its own affair: it comes again.
 * @param {object} options
 * @param {{ host: string, port: number, database: string, password: string }} options.pooler
 * @param {number} options.speed
 * @param {AbortSignal} options.signal
 * @returns {Promise<unknown>} settles when all clients are gone
 */
export function runUsers({ pooler, speed, signal }) {
  setMaxListeners(0, signal); // Every client waits for it.
  const start = performance.now();
  const seconds = () => ((performance.now() - start) / 1_000) * speed;
  const clients = habits.flatMap((habit) =>
    Array.from({ length: habit.clients }, (_, number) =>
      runClient(habit, number, { pooler, signal, seconds }),
    ),
  );
  return Promise.all([...clients, listen(pooler, signal)]);
}

/**
 * @param {Habit} habit
 * @param {number} number
 * @param {{ pooler: { host: string, port: number, database: string, password: string }, signal: AbortSignal, seconds: () => number }} world
 */
async function runClient({ user, wanted, workMs, restMs }, number, { pooler, signal, seconds }) {
  while (!signal.aborted) {
    const client = new pg.Client({ ...pooler, user, application_name: `demo ${user}` });
    client.on('error', () => {});
    try {
      await client.connect();
      while (!signal.aborted) {
        if (number >= wanted(seconds())) {
          await pause(400 + 200 * Math.random(), signal);
          continue;
        }
        await client.query('select pg_sleep($1), count(*) from orders where total > $2', [
          workMs() / 1_000,
          number,
        ]);
        await pause(restMs(), signal);
      }
    } catch {
      await pause(1_000, signal);
    } finally {
      await client.end().catch(() => {});
    }
  }
}

/**
 * A session that listens keeps its server connection: the page shows it as pinned.
 * @param {{ host: string, port: number, database: string, password: string }} pooler
 * @param {AbortSignal} signal
 */
async function listen(pooler, signal) {
  while (!signal.aborted) {
    const client = new pg.Client({ ...pooler, user: listener, application_name: 'demo events' });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query('listen orders');
      while (!signal.aborted) {
        await pause(5_000, signal);
        await client.query('select 1');
      }
    } catch {
      await pause(2_000, signal);
    } finally {
      await client.end().catch(() => {});
    }
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 */
function pause(ms, signal) {
  return sleep(ms, undefined, { signal }).catch(() => {});
}
