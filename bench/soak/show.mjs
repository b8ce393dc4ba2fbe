// @ts-check
// Attackers beside honest clients, for minutes: what honest clients notice, and what is left in the pooler's process. Slices without and
// with attackers take turns, so that both are measured on the same machine in the same state.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { constants, setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { startHeadgate } from '../pooler/poolers.mjs';
import { HonestLoad } from './honest-load.mjs';

export const soak = { name: 'soak', run };

const { Client } = createRequire(import.meta.url)('pg');
const about =
  'honest clients of headgate serve, without and with attackers beside them; memory after a full collection';
const attackersFile = fileURLToPath(new URL('attackers-process.mjs', import.meta.url));
const collector = pathToFileURL(fileURLToPath(new URL('collect-on-signal.mjs', import.meta.url))).href;
const attacker = 'attacker';
const honestClients = 8;
/** Clients straight at the server: what they notice is the machine, which is shared. */
const directClients = 4;
/** Collecting takes no longer, nor does closing what the attackers had open. */
const settleMs = 1_500;
const mostSlower = 2;
const mostMoreMegabytes = 50;
const mostMoreFiles = 10;

/** How long each slice is, and how many pairs of them there are. */
const lengths = {
  full: { cycles: 30, withoutMs: 5_000, withMs: 15_000 },
  quick: { cycles: 3, withoutMs: 5_000, withMs: 10_000 },
  short: { cycles: 2, withoutMs: 700, withMs: 2_500 },
};

/**
 * @param {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} database
 * @param {{ length?: keyof typeof lengths }} [options]
 */
async function run(database, { length = 'full' } = {}) {
  const { cycles, withoutMs, withMs } = lengths[length];
  await prepare(database);
  const metricsPort = await freePort();
  const { database: name, password, host } = database;
  const pooler = await startHeadgate(database, {
    nodeOptions: ['--expose-gc', '--import', collector],
    settings: {
      databases: { '*': { host, port: database.port, password } },
      observability: { metricsListen: `127.0.0.1:${metricsPort}` },
      logging: { poolerErrors: false },
    },
  });
  const url = `postgresql://${database.user}:${password}@127.0.0.1:${pooler.port}/${name}`;
  const target = JSON.stringify({ port: pooler.port, metricsPort, user: attacker, database: name });
  const attackers = fork(attackersFile, [target]);
  // Attackers have processors of their own elsewhere. Here they use what honest clients, pooler and server leave over.
  if (attackers.pid !== undefined) setPriority(attackers.pid, constants.priority.PRIORITY_LOW);
  const honest = new HonestLoad();
  const direct = new HonestLoad();
  /** @type {{ without: number[], with: number[] }} */
  const times = { without: [], with: [] };
  /** @type {{ without: number[], with: number[] }} */
  const directTimes = { without: [], with: [] };
  /** @type {{ megabytes: number, files: number }[]} */
  const kept = [];
  let rounds = 0;
  try {
    await honest.start(url, honestClients);
    await direct.start(database.url, directClients);
    await sleep(withoutMs);
    for (let cycle = 0; cycle < cycles; cycle++) {
      kept.push(await look(pooler));
      honest.take();
      direct.take();
      await sleep(withoutMs);
      times.without.push(...honest.take());
      directTimes.without.push(...direct.take());
      attackers.send('on');
      await sleep(withMs);
      times.with.push(...honest.take());
      directTimes.with.push(...direct.take());
      const quiet = once(attackers, 'message');
      attackers.send('off');
      [{ rounds }] = await quiet;
    }
    kept.push(await look(pooler));
    await Promise.all([honest.stop(), direct.stop()]);
    const counted = (await committedIn(database)) - direct.committed;
    const figures = figuresOf({
      times,
      directTimes,
      kept,
      honest,
      counted,
      rounds,
      seconds: (cycles * (withoutMs + withMs)) / 1_000,
    });
    return {
      report: { name: soak.name, about, ...figures },
      output: textOf(figures),
      missed: figures.missed.length,
    };
  } finally {
    attackers.kill();
    await pooler.stop();
  }
}

/** @param {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} database */
async function prepare({ url, password }) {
  const client = new Client(url);
  await client.connect();
  await client.query(`drop table if exists soak_counted; create table soak_counted (who int)`);
  await client.query(`drop role if exists ${attacker}; create role ${attacker} login password '${password}'`);
  await client.end();
}

/** @param {import('../../scripts/lib/embedded-postgres.mjs').EmbeddedPostgres} database */
async function committedIn({ url }) {
  const client = new Client(url);
  await client.connect();
  const { rows } = await client.query('select count(*)::int as n from soak_counted');
  await client.end();
  return rows[0].n;
}

/**
 * Memory that the process holds once nothing of the attackers is open, and all garbage is collected.
 * @param {import('../pooler/poolers.mjs').RunningPooler} pooler
 */
async function look(pooler) {
  await sleep(settleMs);
  process.kill(pooler.pid, 'SIGUSR2');
  await sleep(settleMs);
  const files = readdirSync(`/proc/${pooler.pid}/fd`).length;
  return { megabytes: pooler.residentMegabytes(), files };
}

/** @returns {Promise<number>} */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * @param {object} measured
 * @param {{ without: number[], with: number[] }} measured.times
 * @param {{ without: number[], with: number[] }} measured.directTimes
 * @param {{ megabytes: number, files: number }[]} measured.kept
 * @param {HonestLoad} measured.honest
 * @param {number} measured.counted
 * @param {number} measured.rounds
 * @param {number} measured.seconds
 */
function figuresOf({ times, directTimes, kept, honest, counted, rounds, seconds }) {
  // The attackers' own pool is there from the first slice with them on.
  const [first, last] = [kept[1], kept.at(-1)];
  const figures = {
    seconds,
    attacks: rounds,
    answered: honest.answered,
    lost: honest.lost,
    lastError: honest.lastError,
    committed: honest.committed,
    counted,
    p50Ms: { without: quantile(times.without, 0.5), with: quantile(times.with, 0.5) },
    p99Ms: { without: quantile(times.without, 0.99), with: quantile(times.with, 0.99) },
    directP99Ms: { without: quantile(directTimes.without, 0.99), with: quantile(directTimes.with, 0.99) },
    megabytes: {
      first: first?.megabytes ?? 0,
      last: last?.megabytes ?? 0,
      most: Math.max(...kept.map((at) => at.megabytes)),
    },
    files: { first: first?.files ?? 0, last: last?.files ?? 0 },
    series: kept.map((at) => Math.round(at.megabytes)),
  };
  const missed = [
    ...(figures.lost > 0 ? [`${figures.lost} queries of honest clients failed: ${figures.lastError}`] : []),
    ...(figures.committed === counted
      ? []
      : [`${figures.committed} transactions were committed, and ${counted} are there`]),
    ...(figures.p99Ms.with > mostSlower * figures.p99Ms.without
      ? ['the 99th percentile of honest clients is more than doubled']
      : []),
    ...(figures.megabytes.last > figures.megabytes.first + mostMoreMegabytes ? ['memory has grown'] : []),
    ...(figures.files.last > figures.files.first + mostMoreFiles ? ['descriptors have grown'] : []),
  ];
  return { ...figures, missed };
}

/**
 * @param {number[]} times
 * @param {number} part
 */
function quantile(times, part) {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}

/** @param {ReturnType<typeof figuresOf>} figures */
function textOf({ seconds, attacks, answered, lost, p50Ms, p99Ms, directP99Ms, megabytes, files, missed }) {
  return [
    `soak: ${about}`,
    `  ${seconds} s, ${attacks} attacks, ${answered} honest queries answered, ${lost} lost`,
    `  honest p50 ${p50Ms.without.toFixed(1)} ms without attackers, ${p50Ms.with.toFixed(1)} ms with them`,
    `  honest p99 ${p99Ms.without.toFixed(1)} ms without attackers, ${p99Ms.with.toFixed(1)} ms with them`,
    `  p99 straight at the server, beside them: ${directP99Ms.without.toFixed(1)} ms and ${directP99Ms.with.toFixed(1)} ms`,
    `  memory ${megabytes.first.toFixed(0)} MB at first, ${megabytes.last.toFixed(0)} MB at last, ${megabytes.most.toFixed(0)} MB at most`,
    `  descriptors ${files.first} at first, ${files.last} at last`,
    ...missed.map((what) => `  MISSED: ${what}`),
  ].join('\n');
}
