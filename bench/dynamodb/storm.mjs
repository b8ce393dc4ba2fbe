// @ts-check
// A fleet of processes that share a limit in DynamoDB Local, in a storm: some are killed and started again, some stand still
// until after their leases have ended, answers are lost, transactions conflict. A server that knows nothing of leases counts.
//
//     node bench/dynamodb/storm.mjs [processes] [connections each] [limit] [seconds] [seconds of a lease]
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { GetItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { hasJava, startDynamo } from '../../scripts/lib/dynamodb-local.mjs';
import { startCountingServer } from './counting-server.mjs';
import { startFaultyProxy } from './faulty-proxy.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const table = 'connections';
const endpoint = 'cluster.example';

/**
 * @typedef {object} StormOptions
 * @property {number} processes
 * @property {number} connections of each, at most
 * @property {number} limit
 * @property {number} seconds
 * @property {number} [leaseSeconds] how long a lease lasts; all else that takes time goes by it
 * @property {object} [lease] further options of the leases
 * @property {object} [rate] options of a rate limiter; without it there is none
 * @property {(line: string) => void} [log]
 */

/**
 * @typedef {object} StormResult
 * @property {number} peak the most sockets at one moment, as the server saw it
 * @property {number} opened
 * @property {number} kills
 * @property {number} pauses
 * @property {{ calls: number, lost: number, conflicts: number, throttles: number }} faults
 * @property {number} settledMs how long after the storm the counter was the sum of the leases of those who live
 * @property {number} active
 * @property {number} open
 */

/**
 * @param {StormOptions} options
 * @returns {Promise<StormResult>}
 */
export async function storm({
  processes,
  connections,
  limit,
  seconds,
  leaseSeconds = 5,
  lease,
  rate,
  log = () => {},
}) {
  const leaseMs = leaseSeconds * 1_000;
  const dynamo = await startDynamo();
  await dynamo.createTable(table);
  const proxy = await startFaultyProxy(dynamo.url);
  const server = await startCountingServer();
  proxy.setFaults({ lostAnswers: 0.03, conflicts: 0.1, throttles: 0.03 });
  const settings = {
    entries: {
      main: pathToFileURL(join(root, 'dist/index.js')).href,
      dynamodb: pathToFileURL(join(root, 'dist/dynamodb.js')).href,
    },
    ...{ url: proxy.url, table, endpoint, limit, port: server.port, max: connections, rate },
    lease: { leaseFor: leaseMs, renewEvery: 0.3 * leaseMs, grace: 0.6 * leaseMs, ...lease },
    // Less than lease and grace together.
    idleMs: leaseMs,
  };
  const fleet = new Set(Array.from({ length: processes }, (_, n) => startInstance(settings, `first-${n}`)));
  let kills = 0;
  let pauses = 0;
  let started = processes;
  try {
    // Programs take a while to start, and longer when many do.
    while (server.open() < Math.min(limit, processes)) await wait(50);
    const end = performance.now() + seconds * 1_000;
    let nextLine = 0;
    while (performance.now() < end) {
      await wait(((0.5 + Math.random()) * 2 * leaseMs) / processes);
      const victim = [...fleet][Math.floor(Math.random() * fleet.size)];
      if (victim === undefined) continue;
      if (Math.random() < 0.4) {
        kills++;
        fleet.delete(victim);
        victim.kill('SIGKILL');
        fleet.add(startInstance(settings, `again-${++started}`));
      } else {
        pauses++;
        victim.kill('SIGSTOP');
        setTimeout(() => victim.kill('SIGCONT'), (0.2 + Math.random() * 2) * leaseMs);
      }
      if (performance.now() > nextLine) {
        nextLine = performance.now() + 1_000;
        log(
          `${server.open()} sockets of ${limit}, at most ${server.peak()}; ${kills} killed, ${pauses} paused`,
        );
      }
    }
    proxy.setFaults({ lostAnswers: 0, conflicts: 0, throttles: 0 });
    for (const instance of fleet) instance.kill('SIGCONT');
    const calm = performance.now();
    const found = await settled(dynamo, new Set([...fleet].map(({ pid }) => String(pid))));
    const result = {
      ...{ peak: server.peak(), opened: server.opened(), kills, pauses, faults: proxy.counts },
      ...{ settledMs: performance.now() - calm, active: found.active, open: server.open() },
    };
    await endAll(fleet);
    return result;
  } finally {
    for (const instance of fleet) instance.kill('SIGKILL');
    await server.stop();
    await proxy.stop();
    await dynamo.stop();
  }
}

/**
 * @param {object} settings
 * @param {string} name
 */
function startInstance(settings, name) {
  const path = fileURLToPath(new URL('./instance-process.mjs', import.meta.url));
  return fork(path, [JSON.stringify(settings)], {
    execArgv: ['--no-warnings'],
    env: { ...process.env, INSTANCE: name },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

/** @param {Set<import('node:child_process').ChildProcess>} fleet */
async function endAll(fleet) {
  await Promise.all(
    Array.from(fleet, (instance) => {
      if (instance.exitCode !== null || instance.signalCode !== null) return undefined;
      instance.send('end');
      return new Promise((resolve) => instance.once('exit', resolve));
    }),
  );
}

/**
 * The counter is the sum of the leases, and no lease is of a process that is gone.
 *
 * @param {Awaited<ReturnType<typeof startDynamo>>} dynamo
 * @param {Set<string>} alive
 */
async function settled(dynamo, alive) {
  const client = dynamo.client();
  for (;;) {
    const counter = await client.send(
      new GetItemCommand({
        TableName: table,
        Key: { pk: { S: `dsqllease_counter#${endpoint}` } },
        ConsistentRead: true,
      }),
    );
    const scan = await client.send(
      new ScanCommand({
        TableName: table,
        ConsistentRead: true,
        FilterExpression: 'begins_with(pk, :p)',
        ExpressionAttributeValues: { ':p': { S: `dsqllease#${endpoint}#` } },
      }),
    );
    const active = Number(counter.Item?.['active']?.N ?? 0);
    const leases = scan.Items ?? [];
    const sum = leases.reduce((total, item) => total + Number(item['slots']?.N ?? 0), 0);
    const strangers = leases.filter(
      (item) => !alive.has(String(item['instance']?.S).split('/').at(-1) ?? ''),
    );
    if (active === sum && strangers.length === 0) return { active };
    await wait(100);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url) && hasJava) {
  const [processes = 40, connections = 100, limit = 2_000, seconds = 120, leaseSeconds = 30] = process.argv
    .slice(2)
    .map(Number);
  const log = console.log;
  const result = await storm({ processes, connections, limit, seconds, leaseSeconds, log });
  console.log(result);
  if (result.peak > limit) process.exitCode = 1;
}
