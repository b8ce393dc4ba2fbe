// @ts-check
// The live demonstration of Aurora DSQL: a DsqlPool with a reservoir on a stand-in, with lives that are short enough to be seen.
import pg from 'pg';
import { Registry } from 'prom-client';
import { dashboard } from '../dist/dashboard.js';
import { DsqlPool } from '../dist/dsql.js';
import { startDsqlLocal } from '../dist/dsql-local.js';
import { exposePool } from '../dist/prometheus.js';
import { DemoLoad } from './lib/demo-load.mjs';
import { DemoEvents, playPhases } from './lib/demo-phases.mjs';
import { seconds } from './lib/demo-screen.mjs';

/** @typedef {import('../dist/dsql-local.js').DsqlLocal} DsqlLocal */
/** @typedef {import('./lib/demo-phases.mjs').Phase} Phase */
/**
 * @typedef {object} DsqlDemoOptions
 * @property {DsqlLocal} dsql
 * @property {number} cycles how often to go through the phases
 * @property {number} speed 2 is twice as fast
 * @property {AbortSignal} signal ends the demonstration early
 */

const max = 10;
const targetReady = max;
const lowWatermark = 6;
/** DSQL's own are 60 minutes, 100 a second and 1,000 at once. */
const server = { lifeMs: 20_000, rate: 10, burst: 20 };
const client = { lifeMs: 8_000, jitterMs: 4_000, guardMs: 1_000, rate: 5, burst: 5 };
const table = 'headgate_demo';

/**
 * @param {number} port
 * @param {number} speed
 */
export function startDsqlForDemo(port, speed) {
  return startDsqlLocal({
    port,
    connectionLifeMs: Math.round(server.lifeMs / speed),
    connectionRate: Math.ceil(server.rate * speed),
    connectionBurst: server.burst,
  });
}

/**
 * @param {DsqlDemoOptions} options
 * @returns {Promise<{ summary: string[], good: boolean }>}
 */
export async function runDsqlDemo({ dsql, cycles, speed, signal }) {
  await makeTable(dsql);
  const pool = makePool(dsql, speed);
  const registry = new Registry();
  const exposure = exposePool(pool, { registry, service: 'demo' });
  const page = await dashboard(pool, { metrics: () => registry.metrics() });
  console.log(`headgate: the live page: ${page.url}`);
  console.log(`headgate: metrics: http://127.0.0.1:${page.port}/metrics`);
  const load = new DemoLoad(pool, speed, signal);
  const watch = watchConnections(dsql);
  /** @type {number[]} */
  const opened = [];
  const events = new DemoEvents(pool.name, (text) => {
    if (/ opened in /.test(text)) opened.push(performance.now());
  });
  const tally = { conflicts: 0 };
  const look = () => {
    const { limit, inUse, idle, pending, closing, waiting, totals } = pool.stats();
    const { asked, answered, timedOut, cutOff } = load.tally;
    while ((opened[0] ?? Number.POSITIVE_INFINITY) < performance.now() - 1_000) opened.shift();
    const ofAge = agedReasons.reduce((sum, reason) => sum + totals.discarded[reason], 0);
    return {
      title: `a reservoir of ${targetReady} ready connections on Aurora DSQL as of ${dsql.profile}`,
      places: [
        `the live page: ${page.url}`,
        `${dsql.endpoint} on ${dsql.host}:${dsql.port}, a stand-in on this machine`,
      ],
      server: 'DSQL',
      elapsedMs: events.elapsedMs,
      counts: { limit, 'in use': inUse, idle, opening: pending, closing, waiting },
      max,
      sessions: dsql.connections,
      highestSessions: watch.highest,
      counters: [
        `connections: ${totals.opened} opened, ${opened.length} in the last second; this pool may open ${round(client.rate * speed)} a second, DSQL accepts ${round(server.rate * speed)}`,
        `lives: ${seconds((client.lifeMs - client.jitterMs / 2) / speed)} to ${seconds((client.lifeMs + client.jitterMs / 2) / speed)}, and DSQL closes after ${seconds(server.lifeMs / speed)}; ${ofAge} replaced in time`,
        `queries: ${asked} asked, ${answered} answered, ${timedOut} found none ready, ${cutOff} cut off by DSQL, ${tally.conflicts} conflicts (OC000) repeated`,
      ],
      events: events.latest,
    };
  };
  const end = async () => {
    dsql.setFaults({});
    await page.close();
    exposure.stop();
    await pool.end({ deadline: 3_000 });
    watch.stop();
    events.stop();
  };
  await playPhases({ phases: planPhases(dsql, pool, load, tally), cycles, signal, look, end });
  return summarize(watch.highest, load, pool, tally.conflicts);
}

/** Discards because of a connection's age. */
const agedReasons = /** @type {const} */ ([
  'insufficient_remaining_lifetime',
  'expired_on_checkout',
  'expired_on_return',
  'expired_on_scan',
  'expiring_soon_on_scan',
]);

/**
 * @param {DsqlLocal} dsql
 * @param {number} speed
 */
function makePool({ host, port, region, ca, accessKeyId, secretAccessKey }, speed) {
  return new DsqlPool({
    host,
    port,
    region,
    credentials: { accessKeyId, secretAccessKey },
    ssl: { ca },
    name: 'demo',
    max,
    connectionTimeoutMillis: 20_000,
    reservoir: {
      targetReady,
      lowWatermark,
      baseLifetime: client.lifeMs / speed,
      lifetimeJitter: client.jitterMs / speed,
      guardWindow: client.guardMs / speed,
    },
    env: {
      DSQL_CONNECTION_RATE_LIMIT: String(client.rate * speed),
      DSQL_CONNECTION_BURST_LIMIT: String(client.burst),
      DSQL_STAGGERED_STARTUP: 'false',
    },
  });
}

/** @param {DsqlLocal} dsql */
async function makeTable({ host, port, region, ca, accessKeyId, secretAccessKey }) {
  const { DsqlSigner } = await import('@aws-sdk/dsql-signer');
  const signer = new DsqlSigner({ hostname: host, region, credentials: { accessKeyId, secretAccessKey } });
  const password = await signer.getDbConnectAdminAuthToken();
  const one = new pg.Client({ host, port, user: 'admin', database: 'postgres', password, ssl: { ca } });
  await one.connect();
  await one.query(`create table ${table} (id int primary key, value int not null)`);
  await one.query(`insert into ${table} values (1, 0)`);
  await one.end();
}

/** @param {DsqlLocal} dsql */
function watchConnections(dsql) {
  const watch = {
    highest: 0,
    stop() {
      clearInterval(ticker);
    },
  };
  const ticker = setInterval(() => {
    watch.highest = Math.max(watch.highest, dsql.connections);
  }, 20);
  return watch;
}

/**
 * @param {DsqlLocal} dsql
 * @param {DsqlPool} pool
 * @param {DemoLoad} load
 * @param {{ conflicts: number }} tally
 * @returns {[Phase, ...Phase[]]}
 */
function planPhases(dsql, pool, load, tally) {
  return [
    {
      name: 'fill',
      text: `${client.burst} connections at once, then as many a second as the rate allows, until ${targetReady} are ready`,
      run: async () => {
        await Promise.race([pool.ready(), load.wait(10_000)]);
        await load.wait(1_500);
      },
    },
    {
      name: 'expiry',
      text: 'lives end one by one, and are replaced before DSQL would end them; ten queries a second find a connection',
      run: () => load.trickle(100),
    },
    {
      name: 'burst',
      text: '60 queries at once on the ready connections; the others wait in order',
      run: () => load.burst(60, 75),
    },
    {
      name: 'conflict',
      text: '20 transactions change one row; the first COMMIT wins, the others fail with OC000 and are repeated',
      run: async () => {
        tally.conflicts += await load.contend(20, table);
      },
    },
    {
      name: 'throttle',
      text: 'DSQL refuses new connections (53400); ready ones go on, and the pool slows down',
      run: async () => {
        dsql.setFaults({ refuseConnections: true });
        await load.trickle(30);
        dsql.setFaults({});
        await refilled(pool, load);
      },
    },
    {
      name: 'drop',
      text: 'DSQL closes every connection; the reservoir fills again at its rate',
      run: async () => {
        dsql.dropConnections();
        await load.trickle(30);
        await refilled(pool, load);
      },
    },
  ];
}

/**
 * Waits until the reservoir is full, for some seconds at most.
 * @param {DsqlPool} pool
 * @param {DemoLoad} load
 */
async function refilled(pool, load) {
  for (let i = 0; i < 100 && pool.stats().idle < targetReady; i += 1) await load.wait(100);
}

/**
 * @param {number} highest
 * @param {DemoLoad} load
 * @param {DsqlPool} pool
 * @param {number} conflicts
 */
function summarize(highest, { tally, lastUnexpected }, pool, conflicts) {
  const { totals } = pool.stats();
  const summary = [
    `DSQL saw ${highest} connections at most; the limit was ${max}. ${totals.opened} were opened.`,
    `${tally.answered} of ${tally.asked} queries were answered; ${tally.timedOut} found no connection ready in time and ` +
      `${tally.cutOff} were cut off by DSQL. ${conflicts} conflicts were repeated.`,
  ];
  if (tally.otherwise > 0)
    summary.push(`${tally.otherwise} failed otherwise, the last with ${lastUnexpected}`);
  return { summary, good: highest <= max && tally.otherwise === 0 };
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 10) / 10;
}
