// @ts-check
// A fleet of processes that share a limit in DynamoDB Local, in a storm: some are killed and started again, some stand still
// until after their leases have ended, answers are lost, requests arrive twice, transactions conflict. A server that
// knows nothing of leases counts sockets, and the items are read past the program that writes them.
//
//     node bench/dynamodb/storm.mjs [processes] [connections each] [limit] [seconds] [seconds of a lease]
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { hasJava, startDynamo } from '../../scripts/lib/dynamodb-local.mjs';
import { startCountingServer } from './counting-server.mjs';
import { noFaults, startFaultyProxy } from './faulty-proxy.mjs';
import { audit, settled } from './table-audit.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const table = 'connections';
const endpoint = 'cluster.example';

/**
 * @typedef {object} StormOptions
 * @property {number} processes
 * @property {number} connections of each, at most
 * @property {number} limit
 * @property {number} seconds of the storm; before it, the fleet may fill the limit
 * @property {number} [leaseSeconds] how long a lease lasts; all else that takes time goes by it
 * @property {number} [fillSeconds] so long it may take until the limit is reached
 * @property {number} [holdMs] how long a caller keeps a connection, at most
 * @property {object} [lease] further options of the leases
 * @property {object} [rate] options of a rate limiter; without it there is none
 * @property {(line: string) => void} [log]
 */

/**
 * @typedef {object} StormResult
 * @property {number} limit
 * @property {number} peak the most sockets at one moment, as the server saw it
 * @property {number | undefined} fillMs after how long the limit was reached, from the first connection on
 * @property {number} stormMean sockets during the storm, on average
 * @property {number} opened
 * @property {number} kills
 * @property {number} pauses
 * @property {import('./faulty-proxy.mjs').FaultCounts} faults
 * @property {number} audits how often counter and leases were compared while no slot moved
 * @property {string[]} mismatches when they were not the same, or more than the limit
 * @property {number} graceMs
 * @property {number | undefined} agreedMs how long after the storm the counter was the sum of the leases
 * @property {number | undefined} settledMs how long after it there was no lease of a process that is gone
 * @property {number | undefined} refillMs how long after that the limit was reached again
 * @property {number} stuck processes that did not end when they were told to
 * @property {number} left slots in the table after all have ended in good order
 */

/** So long a process may take to end in good order: callers come back, connections are closed, slots are given back. */
const endMs = 40_000;
const stormyFaults = { lostAnswers: 0.03, repeats: 0.03, conflicts: 0.1, throttles: 0.03 };

/**
 * @param {StormOptions} options
 * @returns {Promise<StormResult>}
 */
export async function storm(options) {
  const {
    processes,
    connections,
    limit,
    seconds,
    leaseSeconds = 5,
    fillSeconds = 60,
    holdMs = 1_000,
  } = options;
  const { lease, rate, log = () => {} } = options;
  const leaseMs = leaseSeconds * 1_000;
  const graceMs = 0.6 * leaseMs;
  const dynamo = await startDynamo();
  await dynamo.createTable(table);
  const proxy = await startFaultyProxy(dynamo.url);
  const server = await startCountingServer();
  proxy.setFaults(stormyFaults);
  const settings = {
    entries: {
      main: pathToFileURL(join(root, 'dist/index.js')).href,
      dynamodb: pathToFileURL(join(root, 'dist/dynamodb.js')).href,
    },
    ...{ url: proxy.url, table, endpoint, limit, port: server.port, max: connections, rate, holdMs },
    lease: { leaseFor: leaseMs, renewEvery: 0.3 * leaseMs, grace: graceMs, ...lease },
    // Less than lease and grace together.
    idleMs: leaseMs,
  };
  const fleet = new Set(Array.from({ length: processes }, () => startInstance(settings)));
  const client = dynamo.client();
  const look = () => audit(client, table, endpoint);
  const watch = watchBooks(look, limit, server, log);
  try {
    // Programs take a while to start, and longer when many do.
    while (server.open() === 0) await wait(50);
    const fillMs = await reached(server, limit, fillSeconds * 1_000);
    log(`filled to ${server.peak()} of ${limit}; the storm begins`);
    watch.isStorm = true;
    const { kills, pauses } = await blow(fleet, settings, seconds, leaseMs);
    watch.isStorm = false;
    proxy.setFaults(noFaults);
    for (const instance of fleet) instance.kill('SIGCONT');
    log('the storm is over');
    const alive = new Set(Array.from(fleet, ({ pid }) => String(pid)));
    const { agreedMs, settledMs } = await settled(look, alive, 4 * (leaseMs + graceMs));
    const refillMs = await reached(server, limit, fillSeconds * 1_000);
    const peak = server.peak();
    log('all end in good order');
    const stuck = await endAll(fleet);
    const { active: left } = await look();
    const { audits, mismatches, stormMean } = await watch.stop();
    return {
      ...{ limit, peak, fillMs, stormMean, opened: server.opened(), kills, pauses, faults: proxy.counts },
      ...{ audits, mismatches, graceMs, agreedMs, settledMs, refillMs, stuck, left },
    };
  } finally {
    await watch.stop();
    for (const instance of fleet) instance.kill('SIGKILL');
    client.destroy();
    await server.stop();
    await proxy.stop();
    await dynamo.stop();
  }
}

/**
 * Kills and halts, one at a time.
 *
 * @param {Set<import('node:child_process').ChildProcess>} fleet
 * @param {object} settings
 * @param {number} seconds
 * @param {number} leaseMs
 */
async function blow(fleet, settings, seconds, leaseMs) {
  let kills = 0;
  let pauses = 0;
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    await wait(((0.5 + Math.random()) * 2 * leaseMs) / fleet.size);
    const victim = [...fleet][Math.floor(Math.random() * fleet.size)];
    if (victim === undefined) continue;
    if (Math.random() < 0.4) {
      kills++;
      fleet.delete(victim);
      victim.kill('SIGKILL');
      fleet.add(startInstance(settings));
    } else {
      pauses++;
      victim.kill('SIGSTOP');
      setTimeout(() => victim.kill('SIGCONT'), (0.2 + Math.random() * 2) * leaseMs).unref();
    }
  }
  return { kills, pauses };
}

/**
 * Compares counter and leases again and again, and notes how many sockets there are.
 *
 * @param {() => Promise<import('./table-audit.mjs').Audit>} look
 * @param {number} limit
 * @param {import('./counting-server.mjs').CountingServer} server
 * @param {(line: string) => void} log
 */
function watchBooks(look, limit, server, log) {
  /** @type {string[]} */
  const mismatches = [];
  let audits = 0;
  let isOver = false;
  let nextLine = 0;
  /** @type {number[]} */
  const stormy = [];
  const watch = {
    isStorm: false,
    stop: async () => {
      isOver = true;
      await done;
      const stormMean = stormy.reduce((sum, open) => sum + open, 0) / Math.max(1, stormy.length);
      return { audits, mismatches, stormMean: Math.round(stormMean) };
    },
  };
  const done = run();
  return watch;

  async function run() {
    while (!isOver) {
      const { active, sum, isWhole, instances } = await look();
      if (isWhole) audits++;
      if (isWhole && active !== sum) mismatches.push(`the counter says ${active}, the leases ${sum}`);
      if (active > limit) mismatches.push(`${active} slots of ${limit}`);
      if (watch.isStorm) stormy.push(server.open());
      if (performance.now() > nextLine) {
        nextLine = performance.now() + 2_000;
        log(
          `${server.open()} sockets of ${limit}, at most ${server.peak()}; ${active} slots of ${instances.length} leases`,
        );
      }
      await wait(200);
    }
  }
}

/**
 * @param {import('./counting-server.mjs').CountingServer} server
 * @param {number} limit
 * @param {number} withinMs
 * @returns {Promise<number | undefined>} after how long
 */
async function reached(server, limit, withinMs) {
  const began = performance.now();
  while (server.open() < limit) {
    if (performance.now() - began > withinMs) return undefined;
    await wait(1);
  }
  return performance.now() - began;
}

/** @param {object} settings */
function startInstance(settings) {
  const path = fileURLToPath(new URL('./instance-process.mjs', import.meta.url));
  return fork(path, [JSON.stringify(settings)], {
    execArgv: ['--no-warnings'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

/**
 * @param {Set<import('node:child_process').ChildProcess>} fleet
 * @returns {Promise<number>} how many did not
 */
async function endAll(fleet) {
  for (const instance of fleet) instance.send('end');
  const end = performance.now() + endMs;
  const running = () =>
    [...fleet].filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  while (running().length > 0 && performance.now() < end) await wait(50);
  return running().length;
}

/**
 * Faults of a result, in words.
 *
 * @param {StormResult} result
 */
export function violations({ limit, peak, mismatches, graceMs, agreedMs, settledMs, stuck, left }) {
  return [
    ...(peak > limit ? [`the server saw ${peak} sockets, more than ${limit}`] : []),
    ...mismatches.slice(0, 3),
    ...(agreedMs === undefined || agreedMs > graceMs
      ? [`the counter was not the sum of the leases within ${graceMs} ms of the storm`]
      : []),
    ...(settledMs === undefined ? ['leases of processes that are gone were not taken back'] : []),
    ...(stuck > 0 ? [`${stuck} processes did not end when they were told to`] : []),
    ...(left > 0 ? [`${left} slots were not given back at the end`] : []),
  ];
}

/** @param {StormResult} result */
function unfilled({ limit, peak, fillMs, refillMs }) {
  if (fillMs === undefined) return [`only ${peak} of ${limit} were reached before the storm`];
  return refillMs === undefined ? [`after the storm, ${limit} were not reached again`] : [];
}

if (process.argv[1] === fileURLToPath(import.meta.url) && hasJava) {
  const [processes = 40, connections = 100, limit = 2_000, seconds = 60, leaseSeconds = 20] = process.argv
    .slice(2)
    .map(Number);
  const log = console.log;
  const result = await storm({
    ...{ processes, connections, limit, seconds, leaseSeconds, log },
    // So long that the machine is not what limits them, and shorter than the grace, in which they are to come back.
    holdMs: 400 * leaseSeconds,
  });
  console.log(result);
  const wrong = [...violations(result), ...unfilled(result)];
  const { peak, audits, kills, pauses } = result;
  console.log(
    wrong.length === 0
      ? `PASSED: ${peak} of ${limit} sockets at most, ${kills} killed, ${pauses} paused, counter and leases the same in ${audits} of ${audits} looks`
      : `FAILED: ${wrong.join('; ')}`,
  );
  if (wrong.length > 0) process.exitCode = 1;
}
