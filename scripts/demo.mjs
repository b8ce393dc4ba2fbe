// @ts-check
// The live demonstration: a pool on a real PostgreSQL under a load that rises and falls, and things that go wrong on purpose.
import pg from 'pg';
import { Pool } from '../dist/index.js';
import { exposePool } from '../dist/prometheus.js';
import { DemoLoad } from './lib/demo-load.mjs';
import { runBeside } from './lib/demo-pg-pool.mjs';
import { DemoEvents, playPhases } from './lib/demo-phases.mjs';
import { watchSessions } from './lib/demo-watch.mjs';

/**
 * @typedef {object} DemoOptions
 * @property {string} url
 * @property {string[]} places what there is to look at and to connect to meanwhile
 * @property {import('prom-client').Registry} registry has the metrics of the pool
 * @property {(pool: Pool) => void} show shows the pool on the page
 * @property {() => string} lookAtPooler what the pooler does, in a line
 * @property {number} cycles how often to go through the phases
 * @property {number} speed 2 is twice as fast
 * @property {AbortSignal} signal ends the demonstration early
 */
/** @typedef {import('./lib/demo-phases.mjs').Phase} Phase */

const max = 10;
const small = 4;
const applicationName = 'headgate-demo';

/**
 * @param {DemoOptions} options
 * @returns {Promise<{ summary: string[], good: boolean }>}
 */
export async function runDemo({ url, places, registry, show, lookAtPooler, cycles, speed, signal }) {
  // One connection for each of the two that watch, and one for the faults.
  const observer = new pg.Pool({ connectionString: url, application_name: 'headgate-demo-observer', max: 3 });
  observer.on('error', () => {}); // The server may end first; the summary tells what was seen until then.
  const { rows } = await observer.query('show server_version');
  const title = `a pool of at most ${max} connections on PostgreSQL ${rows[0].server_version}`;

  const pool = new Pool({
    connectionString: url,
    application_name: applicationName,
    name: 'demo',
    max,
    minIdle: 2,
    idleTimeoutMillis: 1_500 / speed,
    connectionTimeoutMillis: 20_000,
  });
  pool.on('error', () => {}); // Sessions that are ended while idle; the events show them.
  const ready = keepReady(url, speed);
  show(pool);
  show(ready.pool);
  const readyExposure = exposePool(ready.pool, { registry, service: 'ready' });
  const exposure = exposePool(pool, { registry, service: 'demo' });
  const load = new DemoLoad(pool, speed, signal);
  const beside = runBeside({ url, max, speed, signal, observer });
  const watch = watchSessions(observer, applicationName);

  const events = new DemoEvents(pool.name);
  const look = () => {
    const { limit, inUse, idle, pending, closing, waiting, totals } = pool.stats();
    return {
      title,
      places,
      server: 'PostgreSQL',
      elapsedMs: events.elapsedMs,
      counts: { limit, 'in use': inUse, idle, opening: pending, closing, waiting },
      max,
      sessions: watch.seen.sessions,
      highestSessions: watch.seen.highest,
      counters: [`queries: ${load.summary}`, `connections: ${totals.opened} opened, ${totals.closed} closed`],
      pooler: lookAtPooler(),
      beside: beside.look(),
      events: events.latest,
    };
  };
  const end = async () => {
    exposure.stop();
    readyExposure.stop();
    await ready.end();
    await Promise.all([pool.end({ deadline: 3_000 }), beside.end()]);
    await watch.stop();
    events.stop();
    await observer.end();
  };
  await playPhases({ phases: planPhases(pool, load, beside, observer), cycles, signal, look, end });
  const { summary, good } = summarize(watch.seen.highest, load);
  return { summary: [...summary, beside.summary()], good };
}

/**
 * A pool with a reservoir, whose connections live for a minute or two, and a caller now and then.
 * @param {string} url
 * @param {number} speed
 */
function keepReady(url, speed) {
  const pool = new Pool({
    connectionString: url,
    application_name: 'headgate-demo-ready',
    name: 'ready',
    max: 4,
    reservoir: {
      targetReady: 4,
      lowWatermark: 2,
      baseLifetime: '2m',
      lifetimeJitter: '1m',
      guardWindow: '10s',
    },
  });
  pool.on('error', () => {}); // The server may go first.
  const ticker = setInterval(() => pool.query('select pg_sleep(0.05)').catch(() => {}), 400 / speed);
  return {
    pool,
    async end() {
      clearInterval(ticker);
      await pool.end({ deadline: 2_000 });
    },
  };
}

/**
 * @param {Pool} pool
 * @param {DemoLoad} load
 * @param {ReturnType<typeof runBeside>} beside
 * @param {pg.Pool} observer
 * @returns {[Phase, ...Phase[]]}
 */
function planPhases(pool, load, beside, observer) {
  /** @param {(of: DemoLoad) => Promise<unknown>} work */
  const both = (work) => Promise.all([work(load), work(beside.load)]);
  /** @param {number} limit */
  const resize = (limit) => {
    pool.resize(limit);
    beside.resize(limit);
  };
  return [
    {
      name: 'calm',
      text: 'ten queries a second; two connections stay ready',
      run: () => both((of) => of.trickle(20)),
    },
    {
      name: 'burst',
      text: `200 queries at once on ${max} connections; the others wait in order`,
      run: () => both((of) => of.burst(200, 75)),
    },
    {
      name: 'kill',
      text: 'the server ends every session while 60 queries are under way',
      run: async () => {
        const work = both((of) => of.burst(60, 100));
        await load.wait(250);
        await observer.query(
          'select pg_terminate_backend(pid) from pg_stat_activity where application_name = any($1)',
          [[applicationName, beside.applicationName]],
        );
        await work;
      },
    },
    {
      name: 'resize',
      text: `the limit shrinks to ${small} under load, then grows back to ${max}`,
      run: async () => {
        const work = both((of) => of.burst(60, 150));
        await load.wait(400);
        resize(small);
        await load.wait(1_200);
        resize(max);
        await work;
      },
    },
    {
      name: 'pause',
      text: 'nothing is handed out for a while; 30 callers keep their place in the queue',
      run: async () => {
        pool.pause();
        const work = both((of) => of.burst(30, 50));
        await load.wait(1_200);
        pool.resume();
        await work;
      },
    },
    {
      name: 'slow',
      text: 'every connection is busy for a second; callers who wait at most 400 ms are told so',
      run: async () => {
        const work = both((of) => of.burst(max, 1_000));
        await load.wait(100);
        await both((of) => of.burst(15, 10, 400));
        await work;
      },
    },
    {
      name: 'quiet',
      text: 'connections that nobody needs close again, down to two',
      run: () => load.wait(3_000),
    },
  ];
}

/**
 * @param {number} highest
 * @param {DemoLoad} load
 */
function summarize(highest, { tally, lastUnexpected }) {
  const summary = [
    `The server saw ${highest} sessions at most; the limit was ${max}.`,
    `${tally.answered} of ${tally.asked} queries were answered; ${tally.timedOut} gave up waiting and ` +
      `${tally.cutOff} were cut off by the server, as arranged.`,
  ];
  if (tally.otherwise > 0)
    summary.push(`${tally.otherwise} failed otherwise, the last with ${lastUnexpected}`);
  return { summary, good: highest <= max && tally.otherwise === 0 };
}
