// @ts-check
// The cost of watching with very many users: node bench/many-users.mjs [users]. Each of them logs in to a real pooler, asks something and leaves, so that
// the pooler has a pool for each; the server behind it says yes to everybody. Some hundred stay, and ask once a second each. Then: how long a scrape of /metrics and
// an update of the page take, and for how long they keep the event loop; where there is a Chromium, also what the page's script costs in it. The pooler is a process
// of its own, so that neither the users' work nor their garbage is counted as the pooler's.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const users = Number(process.argv[2] ?? 10_000);
const atOnce = 50;
/** Users that stay connected. */
const active = Math.min(300, users);
const pageSeconds = 10;

const question = message('Q', Buffer.from('select 1\0'));
const { port: serverPort, close } = await startYesServer();
const pooler = fork(new URL('many-users-pooler.mjs', import.meta.url), [String(serverPort)]);
const [{ port, metricsPort, pagePath }] = await once(pooler, 'message');
const began = performance.now();
/** @type {import('node:net').Socket[]} */
const sockets = [];
await logInAll(port);
console.log(`${(await tell('pools')).pools} pools after ${Math.round(performance.now() - began)} ms`);

const http = `http://127.0.0.1:${metricsPort}`;
await Promise.all(Array.from({ length: active }, (_, n) => visit(port, `user_${n}`, true)));
let next = 0;
// One at a time: a hundred at once would be the longest delay of the loop.
const asking = setInterval(() => sockets[next++ % sockets.length]?.write(question), 1_000 / active);
await measured('nothing, for the delay without', 10, async () => ({ ms: 0, bytes: 0 }));
await measured('first scrape of /metrics', 1, scrape);
await measured('scrape of /metrics', 20, scrape);
await measured('first digest for the page', 1, () => tell('digest'));
await measured('digest for the page', 20, () => tell('digest'));
await measureUpdates(http, String(pagePath?.split('#token=')[1]));
clearInterval(asking);
for (const socket of sockets) socket.destroy();
await measurePage(`${http}${pagePath}`, port);
pooler.send('stop');
await once(pooler, 'exit');
close();

/** Asks the pooler's process. @param {string} what */
async function tell(what) {
  pooler.send(what);
  return (await once(pooler, 'message'))[0];
}

/** The time until the whole text is there. */
async function scrape() {
  const from = performance.now();
  const { length } = await (await fetch(`${http}/metrics`))
    .arrayBuffer()
    .then((bytes) => ({ length: bytes.byteLength }));
  return { ms: performance.now() - from, bytes: length };
}

/**
 * @param {string} what
 * @param {number} times
 * @param {() => Promise<{ ms: number, bytes: number }>} act
 */
async function measured(what, times, act) {
  const figures = [];
  await tell('begin');
  for (let n = 0; n < times; n++) {
    figures.push(await act());
    await sleep(100);
  }
  report(what, figures, await tell('end'));
}

/**
 * Measures what an open page costs the pooler each second: making the digest, and sending it.
 * @param {string} base
 * @param {string} token
 */
async function measureUpdates(base, token) {
  const ended = new AbortController();
  const response = await fetch(`${base}/api/live`, {
    headers: { authorization: `Bearer ${token}` },
    signal: ended.signal,
  });
  let frames = 0;
  const reading = (async () => {
    for await (const chunk of /** @type {AsyncIterable<Uint8Array>} */ (response.body))
      frames += Buffer.from(chunk).toString('latin1').split('\n\n').length - 1;
  })().catch(() => {});
  await sleep(2_000);
  frames = 0;
  await tell('begin');
  await sleep(1_000 * pageSeconds);
  const { processor, late } = await tell('end');
  console.log(
    `a page that is open: ${frames} updates in ${pageSeconds} s, ${(processor / pageSeconds).toFixed(0)} ms of processor a second with the load, ` +
      `longest delay of the event loop ${late.toFixed(1)} ms`,
  );
  ended.abort();
  await reading;
}

/**
 * Measures what one update costs the browser, while users come and go.
 * @param {string} url
 * @param {number} port
 */
async function measurePage(url, port) {
  const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium';
  if (!existsSync(executablePath)) return console.log('page: no Chromium (set CHROMIUM_PATH)');
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
  const page = await browser.newPage();
  await page.goto(url);
  await page.locator('#connections tbody, #connections .empty').first().waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  await page.evaluate(`globalThis.longest = 0; new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
  }).observe({ type: 'longtask' })`);
  const look = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    const of = (/** @type {string} */ name) => metrics.find((metric) => metric.name === name)?.value ?? 0;
    return { script: 1_000 * of('ScriptDuration'), all: 1_000 * of('TaskDuration') };
  };
  const before = await look();
  const end = performance.now() + 1_000 * pageSeconds;
  for (let n = 0; performance.now() < end; n++) {
    await visit(port, `user_${(n * 7919) % users}`);
    await sleep(20);
  }
  const after = await look();
  const longest = /** @type {number} */ (await page.evaluate('longest'));
  const each = (/** @type {'script' | 'all'} */ key) => ((after[key] - before[key]) / pageSeconds).toFixed(1);
  console.log(
    `page: ${each('script')} ms of script a second (one update), ${each('all')} ms with layout and paint, ` +
      (longest > 0 ? `longest task ${longest.toFixed(0)} ms` : 'no task above 50 ms'),
  );
  await browser.close();
}

/**
 * @param {string} what
 * @param {readonly { ms: number, bytes: number }[]} figures
 * @param {{ processor: number, late: number }} of
 */
function report(what, figures, { processor, late }) {
  const sorted = figures.map(({ ms }) => ms).sort((a, b) => a - b);
  const [median, worst] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  console.log(
    `${what}: median ${median?.toFixed(1)} ms, worst ${worst?.toFixed(1)} ms, ${(processor / figures.length).toFixed(0)} ms of processor with the load, ` +
      `${figures[0]?.bytes} bytes, longest delay of the event loop ${late.toFixed(1)} ms`,
  );
}

/** @param {number} port */
async function logInAll(port) {
  let next = 0;
  const worker = async () => {
    while (next < users) await visit(port, `user_${next++}`);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/**
 * Logs in, asks, and leaves when it has the answer, or stays.
 * @param {number} port
 * @param {string} user
 * @param {boolean} stays
 */
function visit(port, user, stays = false) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const body = Buffer.from(`\0\x03\0\0user\0${user}\0database\0app\0\0`, 'latin1');
    let hasAsked = false;
    socket.on('data', (data) => {
      if (data.at(-6) !== 0x5a) return;
      if (!hasAsked) socket.write(question);
      else if (stays) {
        sockets.push(socket);
        resolve(undefined);
        // Later answers are of no interest.
        socket.removeAllListeners('data').resume();
      } else socket.end(message('X', Buffer.alloc(0)));
      hasAsked = true;
    });
    socket.on('close', () => resolve(undefined));
    socket.on('error', reject);
    socket.write(Buffer.concat([length(body), body]));
  });
}

/** Logs everybody in, and answers each query with nothing. */
async function startYesServer() {
  const ready = message('Z', Buffer.from('I'));
  const parameters = Object.entries({
    server_version: '16.0',
    client_encoding: 'UTF8',
    standard_conforming_strings: 'on',
    integer_datetimes: 'on',
    DateStyle: 'ISO, MDY',
    TimeZone: 'UTC',
  });
  const welcome = Buffer.concat([
    message('R', Buffer.from([0, 0, 0, 0])),
    ...parameters.map(([name, value]) => message('S', Buffer.from(`${name}\0${value}\0`))),
    message('K', Buffer.alloc(8, 1)),
    ready,
  ]);
  const server = createServer((socket) => {
    let isIn = false;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      if (!isIn) socket.write(welcome);
      else if (data[0] === 0x51)
        socket.write(Buffer.concat([message('C', Buffer.from('SELECT 1\0')), ready]));
      isIn = true;
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { port, close: () => server.close() };
}

/**
 * @param {string} type
 * @param {Buffer} body
 */
function message(type, body) {
  return Buffer.concat([Buffer.from(type), length(body), body]);
}

/** @param {Buffer} body */
function length(body) {
  const four = Buffer.alloc(4);
  four.writeInt32BE(body.length + 4);
  return four;
}
