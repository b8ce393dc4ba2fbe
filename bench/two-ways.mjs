// @ts-check
// Ten worlds run both ways: by the real pool on a real PostgreSQL, and by the simulator, which is given how long the real holds and dials took.
// node bench/two-ways.mjs [seconds]
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Pool } from '../dist/index.js';
import { readScenario, simulate } from '../dist/simulator.js';
import { startEmbeddedPostgres } from '../scripts/lib/embedded-postgres.mjs';

const seconds = Number(process.argv[2] ?? 5);

/**
 * @typedef {object} World
 * @property {string} what
 * @property {Record<string, unknown> & { max: number }} pool
 * @property {number} [pools]
 * @property {number} [connectionLimit]
 * @property {number} holdMs
 * @property {{ clients: number, thinkMs?: number } | { perSecond: number } | { burst: number, everyMs: number }} callers
 */

const retry = { onDialFailure: 'retry', breakerThreshold: 1_000_000 };
/** @type {readonly World[]} */
const worlds = [
  { what: '20 clients on 5 connections', pool: { max: 5 }, holdMs: 20, callers: { clients: 20 } },
  { what: '200 clients on 10', pool: { max: 10 }, holdMs: 10, callers: { clients: 200 } },
  { what: '40 that think for 50 ms', pool: { max: 10 }, holdMs: 20, callers: { clients: 40, thinkMs: 50 } },
  { what: '8 that find one each', pool: { max: 10 }, holdMs: 20, callers: { clients: 8, thinkMs: 10 } },
  { what: '100 a second, 10 connections', pool: { max: 10 }, holdMs: 20, callers: { perSecond: 100 } },
  { what: '400 a second, room for 250', pool: { max: 5 }, holdMs: 20, callers: { perSecond: 400 } },
  {
    what: '100 at once, each second',
    pool: { max: 10 },
    holdMs: 30,
    callers: { burst: 100, everyMs: 1_000 },
  },
  {
    what: 'the same, who wait for 330 ms',
    pool: { max: 5, connectionTimeoutMillis: 330 },
    holdMs: 50,
    callers: { burst: 100, everyMs: 1_000 },
  },
  {
    what: 'a pool of 8, a server of 4',
    pool: { max: 8, ...retry },
    connectionLimit: 4,
    holdMs: 20,
    callers: { clients: 16 },
  },
  { what: 'connections used 20 times', pool: { max: 5, maxUses: 20 }, holdMs: 20, callers: { clients: 20 } },
];

/** @typedef {{ served: number, failed: number, opened: number, perSecond: number, p50: number, p99: number }} Outcome */

const server = await startEmbeddedPostgres({ maxConnections: 60 });
const admin = new pg.Client({ connectionString: server.url });
await admin.connect();
try {
  const heads = ['world', 'served', 'failed', 'opened', 'per second', 'wait p50 ms', 'wait p99 ms'];
  console.log(heads.map((head, i) => head.padEnd(i === 0 ? 32 : 24)).join(''));
  for (const [index, world] of worlds.entries()) {
    const { outcome, holds, dials } = await real(world, await roleFor(world, index));
    show(world.what, outcome, simulated(world, holds, dials));
  }
} finally {
  await admin.end();
  await server.stop();
}

/**
 * @param {World} world
 * @param {number} index
 */
async function roleFor({ connectionLimit = 50 }, index) {
  const name = `two_ways_${index}`;
  await admin.query(`create role ${name} login password '${name}' connection limit ${connectionLimit}`);
  const url = new URL(server.url);
  url.username = name;
  url.password = name;
  return url.href;
}

/**
 * @param {World} world
 * @param {string} url
 */
async function real({ pool: options, callers, holdMs }, url) {
  const pool = new Pool({
    connectionTimeoutMillis: 0,
    idleTimeoutMillis: 0,
    ...options,
    connectionString: url,
  });
  const [waits, holds, dials] = [numbers(), numbers(), numbers()];
  const counts = { served: 0, failed: 0, opened: 0 };
  const { subscribe, unsubscribe } = await import('node:diagnostics_channel');
  const opened = (/** @type {any} */ { dialMs }) => {
    counts.opened++;
    dials.push(dialMs);
  };
  subscribe('headgate:pool:opened', opened);
  const end = performance.now() + 1_000 * seconds;
  const call = async () => {
    const from = performance.now();
    try {
      const client = await pool.connect();
      const had = performance.now();
      await client.query('select pg_sleep($1)', [holdMs / 1_000]);
      client.release();
      const now = performance.now();
      if (now > end) return;
      waits.push(had - from);
      holds.push(now - had);
      counts.served++;
    } catch {
      const now = performance.now();
      if (now > end) return;
      waits.push(now - from);
      counts.failed++;
    }
  };
  /** @type {Promise<unknown>[]} */
  const all = [];
  if ('clients' in callers) {
    const client = async () => {
      while (performance.now() < end) {
        await call();
        if (callers.thinkMs !== undefined) await sleep(callers.thinkMs);
      }
    };
    all.push(...Array.from({ length: callers.clients }, client));
  } else if ('burst' in callers) {
    for (let at = end - 1_000 * seconds; at < end; at += callers.everyMs) {
      await sleep(Math.max(0, at - performance.now()));
      all.push(...Array.from({ length: callers.burst }, call));
    }
  } else {
    for (let at = performance.now(); at < end; ) {
      if (at > performance.now()) await sleep(at - performance.now());
      all.push(call());
      at += -(1_000 * Math.log(1 - Math.random())) / callers.perSecond;
    }
  }
  await sleep(Math.max(0, end - performance.now()));
  const ended = pool.end({ deadline: 10_000 });
  await Promise.all(all);
  await ended;
  unsubscribe('headgate:pool:opened', opened);
  return { outcome: { ...counts, perSecond: counts.served / seconds, ...percentiles(waits) }, holds, dials };
}

/**
 * @param {World} world
 * @param {readonly number[]} holds
 * @param {readonly number[]} dials
 * @returns {Outcome}
 */
function simulated({ pool, callers, connectionLimit = 50 }, holds, dials) {
  const hold = histogram(holds);
  const workload =
    'clients' in callers
      ? { clients: callers.clients, think: `${callers.thinkMs ?? 0}ms`, hold }
      : 'burst' in callers
        ? { every: `${callers.everyMs}ms`, burst: callers.burst, hold }
        : { perSecond: callers.perSecond, hold };
  const {
    server: seen,
    waits,
    samples,
  } = simulate(
    readScenario({
      duration: `${seconds}s`,
      sample: '50ms',
      server: { connectionLimit, perSecond: 10_000, burst: 10_000, dial: histogram(dials) },
      services: [
        {
          ...{ name: 'api', kind: 'Pool', workload },
          pool: { connectionTimeoutMillis: 0, idleTimeoutMillis: 0, ...pool },
        },
      ],
    }),
  );
  const served = samples.workCompleted.at(-1) ?? 0;
  const { failed, p50, p99 } = waits;
  return { served, failed, opened: seen.accepted, perSecond: served / seconds, p50, p99 };
}

/** Twenty values that stand for all, as the scenario has them. @param {readonly number[]} values */
function histogram(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const parts = Math.min(20, sorted.length);
  return Array.from({ length: parts }, (_, n) => {
    const of = sorted.slice(
      Math.floor((n * sorted.length) / parts),
      Math.floor(((n + 1) * sorted.length) / parts),
    );
    const mean = of.reduce((sum, value) => sum + value, 0) / of.length;
    return [`${mean.toFixed(3)}ms`, 1];
  });
}

/** @param {readonly number[]} values */
function percentiles(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const of = (/** @type {number} */ part) => sorted[Math.floor(sorted.length * part)] ?? 0;
  return { p50: of(0.5), p99: of(0.99) };
}

/**
 * @param {string} what
 * @param {Outcome} seen
 * @param {Outcome} told
 */
function show(what, seen, told) {
  const cell = (/** @type {keyof Outcome} */ key, digits = 0) => {
    const [one, other] = [seen[key], told[key]];
    const apart = Math.max(one, other) < 2 ? '' : ` ${(100 * (other / one - 1)).toFixed(1)} %`;
    return `${one.toFixed(digits)} / ${other.toFixed(digits)}${apart}`.padEnd(24);
  };
  const cells = [
    cell('served'),
    cell('failed'),
    cell('opened'),
    cell('perSecond'),
    cell('p50', 1),
    cell('p99', 1),
  ];
  console.log(what.padEnd(32) + cells.join(''));
}

/** @returns {number[]} */
function numbers() {
  return [];
}
