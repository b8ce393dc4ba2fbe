// One world run both ways: by the simulator, and by the real pool on a real PostgreSQL. The counts are equal, not close.
import { setTimeout as passed } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Pool } from '../../src/index.js';
import { readScenario } from '../../src/simulator/scenario/scenario-reader.js';
import { simulate } from '../../src/simulator/simulate.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

/** Events that decide a count are at least 750 ms away from those that would change it, so that a slow machine changes none. */
interface TwoWays {
  readonly what: string;
  readonly pool: Readonly<Record<string, unknown>>;
  /** Of the server: of the role that connects to the real one. */
  readonly connectionLimit: number;
  readonly atMs: number;
  readonly callers: number;
  readonly holdMs: number;
  readonly endsAtMs: number;
}

interface Counts {
  readonly opened: number;
  readonly served: number;
  readonly failed: number;
  readonly mostInUse: number;
}

const worlds: readonly (TwoWays & { readonly counts: Counts })[] = [
  {
    what: 'more callers than can be served before they give up',
    pool: { max: 5, connectionTimeoutMillis: 2_250 },
    connectionLimit: 50,
    atMs: 0,
    callers: 15,
    holdMs: 1_500,
    endsAtMs: 3_500,
    // Two times five, and then it is too late.
    counts: { opened: 5, served: 10, failed: 5, mostInUse: 5 },
  },
  {
    what: 'a pool that is larger than the server',
    pool: {
      ...{ max: 6, connectionTimeoutMillis: 20_000 },
      ...{ onDialFailure: 'retry', breakerThreshold: 1_000_000 },
    },
    connectionLimit: 3,
    atMs: 0,
    callers: 12,
    holdMs: 200,
    endsAtMs: 2_500,
    counts: { opened: 3, served: 12, failed: 0, mostInUse: 3 },
  },
  {
    what: 'spares that are opened ahead of need',
    pool: { max: 8, minIdle: 3, idleTimeoutMillis: 0 },
    connectionLimit: 50,
    atMs: 1_000,
    callers: 2,
    holdMs: 500,
    endsAtMs: 2_500,
    // Three at the start, and two while two are in use.
    counts: { opened: 5, served: 2, failed: 0, mostInUse: 2 },
  },
  {
    what: 'connections that are used once',
    pool: { max: 2, maxUses: 1 },
    connectionLimit: 50,
    atMs: 0,
    callers: 6,
    holdMs: 200,
    endsAtMs: 2_500,
    counts: { opened: 6, served: 6, failed: 0, mostInUse: 2 },
  },
];

function simulated({ pool, connectionLimit, atMs, callers, holdMs, endsAtMs }: TwoWays): Counts {
  const { server, waits, samples } = simulate(
    readScenario({
      duration: `${endsAtMs}ms`,
      sample: '50ms',
      server: { connectionLimit, perSecond: 1_000, dial: '20ms' },
      services: [
        {
          ...{ name: 'api', kind: 'Pool', pool },
          workload: { every: '1h', from: `${atMs}ms`, burst: callers, hold: `${holdMs}ms` },
        },
      ],
    }),
  );
  const { failed } = waits;
  return {
    opened: server.accepted,
    served: waits.callers - failed,
    failed,
    mostInUse: Math.max(...samples.inUse),
  };
}

async function real(
  { pool: options, atMs, callers, holdMs, endsAtMs }: TwoWays,
  url: string,
): Promise<Counts> {
  const end = passed(endsAtMs);
  const pool = new Pool({ ...options, connectionString: url });
  const counts = { opened: 0, served: 0, failed: 0, mostInUse: 0 };
  let inUse = 0;
  pool.on('connect', () => counts.opened++);
  const call = async (): Promise<void> => {
    try {
      const client = await pool.connect();
      counts.mostInUse = Math.max(counts.mostInUse, ++inUse);
      await client.query('select pg_sleep($1)', [holdMs / 1_000]);
      inUse--;
      client.release();
      counts.served++;
    } catch {
      counts.failed++;
    }
  };
  await passed(atMs);
  await Promise.all(Array.from({ length: callers }, call));
  await end;
  await pool.end();
  return counts;
}

describe('A world run by the simulator and by the real pool', () => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await withDatabase();
  });
  afterAll(() => db?.drop());

  /** A role with a limit of its own. */
  async function roleWith(connectionLimit: number, name: string): Promise<string> {
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    await client.query(`create role ${name} login password '${name}' connection limit ${connectionLimit}`);
    await client.end();
    const url = new URL(db.url);
    url.username = name;
    url.password = name;
    return url.href;
  }

  test('A world run by the simulator and by the real pool has the same counts in both', async () => {
    const told = worlds.map((world) => simulated(world));
    expect(told).toEqual(worlds.map(({ counts }) => counts));
    const urls: string[] = [];
    for (const [index, { connectionLimit }] of worlds.entries())
      urls.push(await roleWith(connectionLimit, `two_ways_${process.pid}_${index}`));
    const seen = await Promise.all(worlds.map((world, index) => real(world, urls[index] as string)));
    for (const [index, { what, counts }] of worlds.entries()) expect(seen[index], what).toEqual(counts);
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    for (const url of urls) await client.query(`drop role ${new URL(url).username}`);
    await client.end();
  });
});
