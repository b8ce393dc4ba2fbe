// @ts-check
// The cost of the DSQL stand-in against the PostgreSQL 16 that it stands on: processor time per statement, both in turns.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DsqlSigner } from '@aws-sdk/dsql-signer';
import pg from 'pg';
import { findPostgres } from '../../dist/dsql-local/cluster/find-postgres.js';
import { findServerOwner } from '../../dist/dsql-local/cluster/server-owner.js';
import { startCluster } from '../../dist/dsql-local/cluster/start-cluster.js';
import { prepareCertificates } from '../../dist/dsql-local/identity/certificate-authority.js';
import { layOut } from '../table.mjs';
import { processorTime } from './processor-time.mjs';

export const dsqlLocal = { name: 'dsql-local', run };

const clients = 4;
const mostTimes = 2;

/**
 * @typedef {object} Contestant
 * @property {string} name
 * @property {pg.Client[]} clients
 * @property {number} pid of the process that has started all that counts
 * @property {() => Promise<void>} stop
 */

/** @type {{ name: string, hasTarget: boolean, run: (client: pg.Client, n: number) => Promise<unknown> }[]} */
const cases = [
  {
    name: 'SELECT by key, simple',
    hasTarget: true,
    run: (client, n) => client.query(`SELECT v FROM counters WHERE id = ${n % 8}`),
  },
  {
    name: 'SELECT by key, parameter',
    hasTarget: true,
    run: (client, n) => client.query('SELECT v FROM counters WHERE id = $1', [n % 8]),
  },
  {
    name: 'UPDATE of a row of its own',
    hasTarget: false,
    run: (client, n) => client.query('UPDATE rows SET v = v + 1 WHERE id = $1', [n % 1000]),
  },
  {
    name: 'BEGIN, SELECT, UPDATE, COMMIT',
    hasTarget: false,
    run: async (client, n) => {
      await client.query('BEGIN');
      await client.query('SELECT v FROM rows WHERE id = $1', [n % 1000]);
      await client.query('UPDATE rows SET v = v + 1 WHERE id = $1', [n % 1000]);
      await client.query('COMMIT');
    },
  },
];

/**
 * @param {{ quick?: boolean, rounds?: number | undefined }} [options]
 * @returns {Promise<{ report: object, output: string, missed: number }>}
 */
async function run({ quick = false, rounds = quick ? 3 : 7 } = {}) {
  if (process.platform !== 'linux')
    return {
      report: {},
      output: 'dsql-local: processor time is read from /proc, which this system has not',
      missed: 0,
    };
  const contestants = [await startPlain(), await startStandIn()];
  try {
    for (const { clients: all } of contestants) await fill(all);
    const results = [];
    for (const one of cases) results.push(await compare(one, contestants, rounds, quick ? 1_500 : 6_000));
    return present(results);
  } finally {
    for (const contestant of contestants) await contestant.stop();
  }
}

/**
 * @param {(typeof cases)[number]} one
 * @param {Contestant[]} contestants
 * @param {number} rounds
 * @param {number} count
 */
async function compare(one, contestants, rounds, count) {
  /** @type {number[][]} */
  const times = contestants.map(() => []);
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, contestant] of contestants.entries()) {
      const before = processorTime(contestant.pid);
      await Promise.all(
        contestant.clients.map(async (client, number) => {
          for (let n = 0; n < count; n += 1) await one.run(client, n * clients + number);
        }),
      );
      const used = ((processorTime(contestant.pid) - before) * 1e6) / (count * clients);
      // The first round warms up.
      if (round >= 0) times[index]?.push(used);
    }
  }
  const [plain = 0, standIn = 0] = times.map(median);
  return { name: one.name, hasTarget: one.hasTarget, plain, standIn, ratio: standIn / plain };
}

/** @param {Awaited<ReturnType<typeof compare>>[]} results */
function present(results) {
  const table = layOut(
    ['', 'PostgreSQL us', 'stand-in us', 'times'],
    results.map(({ name, plain, standIn, ratio }) => [
      name,
      plain.toFixed(0),
      standIn.toFixed(0),
      ratio.toFixed(2),
    ]),
    [1, 2, 3],
  );
  const targets = results.filter(({ hasTarget }) => hasTarget);
  const verdicts = targets.map(
    ({ name, ratio }) => `  ${ratio <= mostTimes ? 'reached' : 'MISSED '}  ${name}: at most ${mostTimes}x`,
  );
  const about =
    'dsql-local: processor time per statement, PostgreSQL alone and the stand-in with its PostgreSQL, both with TLS';
  return {
    report: { name: 'dsql-local', results },
    output: [about, table, ...verdicts].join('\n'),
    missed: targets.filter(({ ratio }) => ratio > mostTimes).length,
  };
}

/**
 * With TLS on the loopback, as clients of DSQL connect.
 * @returns {Promise<Contestant>}
 */
async function startPlain() {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const { ca, cert, key } = prepareCertificates({ folder, hosts: [] });
  const owner = findServerOwner();
  chmodSync(folder, 0o755);
  const files = { 'plain.crt': cert, 'plain.key': key };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    if (owner !== undefined) chownSync(join(folder, name), owner.uid, owner.gid);
  }
  const settings = {
    ssl: true,
    ssl_cert_file: join(folder, 'plain.crt'),
    ssl_key_file: join(folder, 'plain.key'),
  };
  const cluster = await startCluster({ programs: await findPostgres(), transport: 'tcp', settings });
  const { host, port, user, password } = cluster;
  const all = await connectAll(async () => ({
    host,
    port,
    user,
    password,
    database: 'postgres',
    ssl: { ca },
  }));
  const stop = async () => {
    await cluster.stop();
    rmSync(folder, { recursive: true });
  };
  return { name: 'PostgreSQL', clients: all, pid: cluster.pid, stop: () => stopAll(all, stop) };
}

/** @returns {Promise<Contestant>} */
async function startStandIn() {
  const child = fork(fileURLToPath(new URL('stand-in-process.mjs', import.meta.url)));
  const [ready] = await once(child, 'message');
  const { pid, host, port, region, accessKeyId, secretAccessKey, ca } = ready;
  const signer = new DsqlSigner({ hostname: host, region, credentials: { accessKeyId, secretAccessKey } });
  const all = await connectAll(async () => ({
    host,
    port,
    user: 'admin',
    database: 'postgres',
    password: await signer.getDbConnectAdminAuthToken(),
    ssl: { ca },
  }));
  const stop = async () => {
    const gone = once(child, 'exit');
    child.disconnect();
    await gone;
  };
  return { name: 'dsql-local', clients: all, pid, stop: () => stopAll(all, stop) };
}

/** @param {() => Promise<pg.ClientConfig>} config */
async function connectAll(config) {
  const all = [];
  for (let n = 0; n < clients; n += 1) {
    const client = new pg.Client(await config());
    await client.connect();
    all.push(client);
  }
  return all;
}

/** @param {pg.Client[]} all @param {() => Promise<void>} stop */
async function stopAll(all, stop) {
  for (const client of all) await client.end();
  await stop();
}

/** @param {pg.Client[]} all */
async function fill(all) {
  const [first, ...others] = all;
  for (const table of ['counters', 'rows']) {
    await first?.query(`CREATE TABLE ${table} (id int PRIMARY KEY, v int)`);
    await first?.query(`INSERT INTO ${table} SELECT n, 0 FROM generate_series(0, 999) n`);
  }
  // The stand-in tells each session once that the schema has changed.
  for (const client of others) await client.query('SELECT 1 FROM rows').catch(() => {});
}

/** @param {number[]} numbers */
function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
