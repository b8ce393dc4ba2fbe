// @ts-check
// Three users who are busy one after the other, and a fourth who always needs a little: shares that follow what is needed
// against as many connections that are divided once and for all.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { layOut } from '../table.mjs';
import { capacity, headgate, pgBouncer, withContestant } from './contestants.mjs';
import { runCrowds } from './crowd.mjs';
import { atLeast, atMost, count, inMs, times } from './figures.mjs';
import { drawShares } from './picture.mjs';

/**
 * @typedef {import('./contestants.mjs').Contestant} Contestant
 * @typedef {import('./contestants.mjs').StartContestant} StartContestant
 * @typedef {import('./picture.mjs').ShareSample} ShareSample
 * @typedef {import('./server.mjs').Server} Server
 * @typedef {import('./tally.mjs').GroupSummary} GroupSummary
 */

const busyUsers = ['shop', 'search', 'mail'];
const steadyUser = 'reports';
export const users = [...busyUsers, steadyUser];
const console = { admin: { adminUsers: ['postgres'] } };
/** As the phases are seconds, so is what is remembered of them. */
const quickMemory = { fairShares: { capacity, demandWindow: '2s', rebalanceInterval: '500ms' } };
const staticSize = capacity / users.length;
const busyClients = 40;
const sampleMs = 100;

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function changingDemand({ server, pgbouncer, quick, plotFolder }) {
  const phaseMs = quick ? 3_000 : 6_000;
  const size = `${staticSize} connections each`;
  const fixed = { pooling: { poolMode: 'transaction', poolSize: staticSize } };
  /** @type {StartContestant[]} */
  const starts = [headgate({ ...console, ...quickMemory }), headgate(fixed, `headgate, ${size}`)];
  if (pgbouncer !== undefined)
    starts.push(pgBouncer(pgbouncer, { default_pool_size: staticSize }, `, ${size}`));
  const rows = [];
  for (const [index, start] of starts.entries())
    rows.push(await withContestant(server, start, (it) => play(server, it, phaseMs, index === 0)));
  const [dynamic, still] = /** @type {Awaited<ReturnType<typeof play>>[]} */ (rows);
  const plot = join(plotFolder, 'fair-shares-over-time.svg');
  mkdirSync(plotFolder, { recursive: true });
  const seconds = ((busyUsers.length + 1) * phaseMs) / 1_000;
  writeFileSync(plot, drawShares(dynamic?.samples ?? [], users, { seconds, capacity, staticSize }));
  const targets = [
    atLeast('answers of static shares', ratio(dynamic?.answers, still?.answers), 1, times),
    atMost('p99 of static shares', ratio(dynamic?.busyP99Ms, still?.busyP99Ms), 1, times),
    atMost('connections', dynamic?.mostConnections ?? Number.NaN, capacity, count),
  ];
  const about = `three users busy in turn (${busyClients} clients of pg_sleep(0.01), ${phaseMs / 1_000} s each) beside a steady one, ${capacity} connections`;
  const output = [format(rows), plot].join('\n');
  return { name: 'changing-demand', about, rows: rows.map(withoutSamples), targets, output };
}

/**
 * @param {number | undefined} one
 * @param {number | undefined} other
 */
function ratio(one, other) {
  return (one ?? Number.NaN) / (other ?? Number.NaN);
}

/**
 * Each of the busy ones has a client that asks now and then, too, and all rest at the end.
 * @param {Server} server
 * @param {Contestant} contestant
 * @param {number} phaseMs
 * @param {boolean} isWatched its console is asked for the shares
 */
async function play(server, { port, database, title }, phaseMs, isWatched) {
  const text = 'select pg_sleep(0.01)';
  const busy = busyUsers.map((user, phase) => ({
    user,
    clients: busyClients,
    text,
    fromMs: phase * phaseMs + 500,
    untilMs: (phase + 1) * phaseMs + 500,
  }));
  const quiet = busyUsers.map((user) => ({ user, clients: 1, text, pauseMs: 500 }));
  const steady = { user: steadyUser, clients: 2, text, pauseMs: 20 };
  const seconds = ((busyUsers.length + 1) * phaseMs) / 1_000;
  const groups = [...busy, ...quiet, steady];
  const watch = isWatched ? await ShareWatch.start(port) : undefined;
  try {
    const [outcome] = await runCrowds([
      { orders: { port, database, seconds, comesLoggedIn: false, groups } },
    ]);
    const seen = /** @type {GroupSummary[]} */ (outcome?.groups);
    const ofBusy = seen.slice(0, busyUsers.length);
    return {
      title,
      answers: seen.reduce((sum, { answers }) => sum + answers, 0),
      perSecond: seen.reduce((sum, { answers }) => sum + answers, 0) / seconds,
      busyP50Ms: Math.max(...ofBusy.map(({ waitMs }) => waitMs.p50)),
      busyP99Ms: Math.max(...ofBusy.map(({ waitMs }) => waitMs.p99)),
      steadyP99Ms: seen.at(-1)?.waitMs.p99 ?? Number.NaN,
      errors: seen.reduce((sum, { errors }) => sum + errors, 0),
      mostConnections: server.takeMost(),
      samples: watch?.samples ?? [],
    };
  } finally {
    await watch?.stop();
  }
}

/** Asks the console for the shares, again and again. */
class ShareWatch {
  /** @type {ShareSample[]} */
  samples = [];
  #client;
  #startedAt = performance.now();
  #timer;
  #isAsking = false;

  /** @param {pg.Client} client */
  constructor(client) {
    this.#client = client;
    this.#timer = setInterval(() => void this.#look(), sampleMs);
  }

  /** @param {number} port */
  static async start(port) {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'headgate' });
    await client.connect();
    return new ShareWatch(client);
  }

  async stop() {
    clearInterval(this.#timer);
    await this.#client.end();
  }

  async #look() {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const atMs = performance.now() - this.#startedAt;
    try {
      const { rows } = await this.#client.query('SHOW SHARES');
      const users = rows.map(({ user, share, held }) => ({ user, share: Number(share), held: Number(held) }));
      this.samples.push({ atMs, users });
    } catch {
      // The pooler was stopped meanwhile.
    }
    this.#isAsking = false;
  }
}

/** @param {Awaited<ReturnType<typeof play>>} row */
function withoutSamples({ samples: _, ...row }) {
  return row;
}

/** @param {Awaited<ReturnType<typeof play>>[]} rows */
function format(rows) {
  const header = ['', 'answers/s', 'busy: p50', 'p99', 'steady: p99', 'errors', 'connections'];
  const cells = rows.map((row) => [
    row.title,
    count(row.perSecond),
    inMs(row.busyP50Ms),
    inMs(row.busyP99Ms),
    inMs(row.steadyP99Ms),
    String(row.errors),
    String(row.mostConnections),
  ]);
  return layOut(header, cells, [1, 2, 3, 4, 5, 6]);
}
