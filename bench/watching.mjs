// @ts-check
// The cost of watching the pooler: node bench/watching.mjs [rounds]. Clients ask `select 1` through `headgate serve`, in turns with nobody who watches, and with the page open and
// /metrics scraped each second. Who watches is a process of its own, so that what a browser and Prometheus do with the answers is not counted as the pooler's.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../scripts/lib/embedded-postgres.mjs';

const rounds = Number(process.argv[2] ?? 40);
/** Short, so that what else changes on the machine changes both kinds of rounds. */
const roundMs = 1_000;
const clients = 16;
const password = 'the-operator-password';

// Run with `watch`, this file is the program that watches, from one line of its input to the next.
if (process.argv[2] === 'watch') {
  let stop = () => {};
  let isWatching = false;
  for await (const _line of process.stdin) {
    stop();
    isWatching = !isWatching;
    stop = isWatching ? watch(process.argv[3] ?? '') : () => {};
    if (!isWatching) process.stdout.write('no more\n');
  }
  process.exit();
}

const server = await startEmbeddedPostgres({ maxConnections: 50 });
const folder = mkdtempSync(join(tmpdir(), 'headgate-watching-'));
const pooler = await startServe();
try {
  const [, port = ''] = /listening on 127\.0\.0\.1:(\d+)/.exec(pooler.said()) ?? [];
  const [, http = ''] = /(http:\/\/127\.0\.0\.1:\d+)/.exec(pooler.said()) ?? [];
  const load = await startLoad(Number(port));
  await load.round();
  const watcher = startWatcher(http);
  /** @type {Record<'alone' | 'watched', Round[]>} */
  const figures = { alone: [], watched: [] };
  for (let n = 0; n < rounds; n++) {
    /** @type {('alone' | 'watched')[]} */
    const order = n % 2 === 0 ? ['alone', 'watched'] : ['watched', 'alone'];
    for (const kind of order) {
      if (kind === 'watched') await watcher.turn();
      const before = processorMs(pooler.child.pid);
      const round = await load.round();
      const micros = (1_000 * (processorMs(pooler.child.pid) - before)) / round.queries;
      figures[kind].push({ ...round, micros });
      if (kind === 'watched') await watcher.turn();
    }
  }
  await load.end();
  await watcher.end();
  const [alone, watched] = [median(figures.alone), median(figures.watched)];
  const loss = 100 * (1 - watched.perSecond / alone.perSecond);
  for (const [kind, { perSecond, p99, micros }] of Object.entries({ alone, watched })) {
    const cost = `${micros.toFixed(1)} us of the pooler's processor for each`;
    console.log(`${kind.padEnd(8)} ${Math.round(perSecond)} queries/s, p99 ${p99.toFixed(2)} ms, ${cost}`);
  }
  const more = 100 * (watched.micros / alone.micros - 1);
  console.log(
    `watching costs ${loss.toFixed(1)} % of throughput and ${more.toFixed(1)} % more processor for a query (medians of ${rounds} rounds of ${roundMs / 1_000} s, in turns)`,
  );
} finally {
  pooler.child.kill('SIGTERM');
  await once(pooler.child, 'exit');
  await server.stop();
  rmSync(folder, { recursive: true });
}

async function startServe() {
  const file = join(folder, 'headgate.json');
  const tree = {
    listen: { port: 0, addresses: ['127.0.0.1'] },
    unixSocket: { dir: '' },
    auth: { type: 'trust' },
    databases: { [server.database]: { host: server.host, port: server.port, password: server.password } },
    pooling: { poolSize: 4 },
    observability: { metricsListen: '127.0.0.1:0', pagePassword: password },
    logging: { stats: false },
  };
  writeFileSync(file, JSON.stringify(tree));
  const program = new URL('../dist/cli/main.js', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, 'serve', '--config', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  const hasStarted = new Promise((resolve, reject) => {
    const hear = (/** @type {Buffer} */ text) => {
      said += text;
      if (/listening on/.test(said) && /http:\/\//.test(said)) resolve(undefined);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('exit', () => reject(new Error(said)));
  });
  await hasStarted;
  return { child, said: () => said };
}

/** @param {number} port */
async function startLoad(port) {
  const { user, password: secret, database } = server;
  const all = Array.from(
    { length: clients },
    () => new pg.Client({ host: '127.0.0.1', port, user, password: secret, database }),
  );
  await Promise.all(all.map((client) => client.connect()));
  return {
    async round() {
      const end = performance.now() + roundMs;
      /** @type {number[]} */
      const times = [];
      await Promise.all(
        all.map(async (client) => {
          for (let from = performance.now(); from < end; ) {
            await client.query('select 1');
            const now = performance.now();
            times.push(now - from);
            from = now;
          }
        }),
      );
      times.sort((a, b) => a - b);
      return {
        queries: times.length,
        perSecond: times.length / (roundMs / 1_000),
        p99: times[Math.floor(times.length * 0.99)] ?? 0,
      };
    },
    end: () => Promise.all(all.map((client) => client.end())),
  };
}

/** Processor time that a process has used. @param {number | undefined} pid */
function processorMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

/** @param {string} http */
function startWatcher(http) {
  const program = new URL(import.meta.url).pathname;
  const child = spawn(process.execPath, [program, 'watch', http], { stdio: ['pipe', 'pipe', 'inherit'] });
  return {
    /** Begins or ends watching. Resolves when the page is loaded, or closed. */
    async turn() {
      child.stdin.write('turn\n');
      await once(child.stdout, 'data');
    },
    async end() {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}

/** Opens the page's stream, and scrapes each second. @param {string} http */
function watch(http) {
  const over = new AbortController();
  const { signal } = over;
  const ignore = () => {};
  const scrape = () =>
    fetch(`${http}/metrics`, { signal })
      .then((response) => response.text(), ignore)
      .catch(ignore);
  const timer = setInterval(scrape, 1_000);
  void scrape();
  (async () => {
    const response = await fetch(`${http}/api/live`, {
      headers: { authorization: `Bearer ${password}` },
      signal,
    });
    let isFirst = true;
    for await (const _part of response.body ?? []) {
      if (isFirst) process.stdout.write('watching\n');
      isFirst = false;
    }
  })().catch(ignore);
  return () => {
    clearInterval(timer);
    over.abort();
  };
}

/** @typedef {{ queries: number, perSecond: number, p99: number, micros: number }} Round */

/** @param {Round[]} rounds */
function median(rounds) {
  /** @param {'perSecond' | 'p99' | 'micros'} key */
  const of = (key) =>
    rounds.map((round) => round[key]).sort((a, b) => a - b)[Math.floor(rounds.length / 2)] ?? 0;
  return { perSecond: of('perSecond'), p99: of('p99'), micros: of('micros') };
}
