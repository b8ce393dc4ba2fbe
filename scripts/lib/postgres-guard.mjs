// @ts-check
// A process of its own that owns one PostgreSQL server: it makes it, watches it, and always takes it away again.
//
// It reads its orders from standard input, and the end of standard input is the order to stop. That end also comes when
// the program which asked for the server exits, crashes or is killed in any way, so that nothing is ever left behind.
import { spawn } from 'node:child_process';
import { chmodSync, chownSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/**
 * @typedef {object} GuardOrders
 * @property {string} initdb
 * @property {string} postgres
 * @property {string} folder an empty folder which the guard owns from here on
 * @property {{ uid: number, gid: number } | undefined} owner who runs the server, when that isn't the present user
 * @property {string} host
 * @property {number | undefined} port any free one when it is not given
 * @property {string} user
 * @property {string} password
 * @property {string[]} serverArguments
 */
/** @typedef {{ state: 'ready', port: number, pid: number } | { state: 'failed' | 'ended', message: string }} GuardReport */

const portAttempts = 5;
const patienceMs = 5_000;

/** English messages, and none of the settings that PostgreSQL's programs would take from PGPORT, PGDATA and the like. */
const plainEnvironment = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PG'))),
  LC_ALL: 'C',
};

let stopping = false;
/** @type {import('node:child_process').ChildProcess | undefined} */
let running;
/** @type {string[]} */
let recentLines = [];

const input = createInterface({ input: process.stdin });
const firstLine = new Promise((resolve) => input.once('line', resolve));
input.once('close', () => {
  stopping = true;
  if (running === undefined) return;
  endPatiently(running);
});
// A Ctrl-C in the terminal is for the program that uses the server; the guard goes when that one has gone.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.on(signal, () => input.close());

/** @type {GuardOrders} */
const orders = JSON.parse(await firstLine);
const dataFolder = join(orders.folder, 'data');
/** @type {string | undefined} */
let failure;
try {
  await makeCluster();
  await serve();
} catch (error) {
  failure = error instanceof Error ? error.message : String(error);
}
rmSync(orders.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
if (failure !== undefined && !stopping) report({ state: 'failed', message: failure });
process.exit(failure === undefined || stopping ? 0 : 1);

async function makeCluster() {
  const passwordFile = join(orders.folder, 'password');
  writeFileSync(passwordFile, `${orders.password}\n`, { mode: 0o600 });
  if (orders.owner !== undefined) {
    chownSync(orders.folder, orders.owner.uid, orders.owner.gid);
    chownSync(passwordFile, orders.owner.uid, orders.owner.gid);
  }
  chmodSync(orders.folder, 0o700);
  const code = await run(orders.initdb, [
    `--pgdata=${dataFolder}`,
    `--username=${orders.user}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    // The password of a server that lives for seconds on the loopback needs no costly hash; each connect would pay for it.
    '--set=scram_iterations=16',
    '--encoding=UTF8',
    '--locale=C',
    '--no-sync',
    '--no-instructions',
  ]);
  rmSync(passwordFile, { force: true });
  if (code !== 0) throw new Error(`initdb ended with ${code}:\n${recentLines.join('\n')}`);
}

async function serve() {
  for (let attempt = 1; !stopping; attempt += 1) {
    const port = orders.port ?? (await findFreePort());
    const code = await run(
      orders.postgres,
      [
        '-D',
        dataFolder,
        '-p',
        String(port),
        '-c',
        `listen_addresses=${orders.host}`,
        ...orders.serverArguments,
      ],
      (line, pid) => {
        if (line.includes('ready to accept connections')) report({ state: 'ready', port, pid });
      },
    );
    if (stopping) return;
    const log = recentLines.join('\n');
    // Another program may take the port between the look and the use.
    const portTaken = /Address already in use|could not bind/.test(log);
    if (portTaken && orders.port === undefined && attempt < portAttempts) continue;
    if (portTaken)
      throw new Error(
        `PostgreSQL could not listen on ${orders.host}:${port}, which is in use by another program.`,
      );
    throw new Error(`PostgreSQL ended with ${code}:\n${log}`);
  }
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {(line: string, pid: number) => void} [onLine]
 * @returns {Promise<number | string>} the exit code, or the signal that ended it
 */
function run(program, args, onLine) {
  recentLines = [];
  return new Promise((resolve, reject) => {
    if (stopping) return resolve('a stop before it started');
    const child = spawn(program, args, {
      ...orders.owner,
      cwd: orders.folder,
      env: plainEnvironment,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    running = child;
    createInterface({ input: child.stderr }).on('line', (line) => {
      recentLines.push(line);
      if (recentLines.length > 30) recentLines.shift();
      onLine?.(line, child.pid ?? 0);
    });
    child.once('error', (error) => reject(new Error(`${program} could not be run: ${error.message}`)));
    child.once('close', (code, signal) => {
      running = undefined;
      resolve(code ?? signal ?? 0);
    });
  });
}

/**
 * Asks for a shutdown that ends sessions in an orderly way, then for one that does not wait, then does not ask.
 * @param {import('node:child_process').ChildProcess} child
 */
function endPatiently(child) {
  child.kill('SIGINT');
  setTimeout(() => child.kill('SIGQUIT'), patienceMs).unref();
  setTimeout(() => child.kill('SIGKILL'), 2 * patienceMs).unref();
}

/** @returns {Promise<number>} */
function findFreePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, orders.host, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

/** @param {GuardReport} message */
function report(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
