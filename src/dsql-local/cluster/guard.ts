/**
 * A process of its own that owns one PostgreSQL server: makes it, watches it, and always removes it again.
 *
 * Standard input brings the orders, and its end is the order to stop. That end also comes when the program which asked for
 * the server exits, crashes or is killed in any way, so that nothing is left behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  type WriteStream,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { GuardOrders, GuardReport } from './guard-orders.js';

const portAttempts = 5;
const patienceMs = 5_000;
const keptLines = 30;
/** A kept log that is longer begins anew at the next start. */
const longestLog = 10 * 1024 ** 2;

/** English messages, and no settings that PostgreSQL's programs would take from PGPORT, PGDATA and the like. */
const plainEnvironment = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PG'))),
  LC_ALL: 'C',
};

let isStopping = false;
let running: ChildProcess | undefined;
let recentLines: string[] = [];
let log: WriteStream | undefined;

const input = createInterface({ input: process.stdin });
const firstLine = new Promise<string>((resolve) => input.once('line', resolve));
input.once('close', () => {
  isStopping = true;
  if (running !== undefined) endPatiently(running);
});
// A Ctrl-C in the terminal is for the program that uses the server; the guard ends when that one has ended.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => input.close());
// After the program's end its pipe has no reader; the end of standard input says so, too.
process.stdout.on('error', () => {});

const orders = JSON.parse(await firstLine) as GuardOrders;
const [folder] = orders.temporaryFolders;
let failure: string | undefined;
try {
  for (const path of orders.temporaryFolders) giveToOwner(path, 0o700);
  if (orders.logFile !== undefined) openLog(orders.logFile);
  if (!existsSync(join(orders.dataFolder, 'PG_VERSION'))) await makeCluster();
  await serve();
} catch (error) {
  failure = error instanceof Error ? error.message : String(error);
}
for (const path of orders.temporaryFolders)
  rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
if (failure !== undefined && !isStopping) report({ state: 'failed', message: failure });
process.exit(failure === undefined || isStopping ? 0 : 1);

/** `initdb` works beside the data folder, which is there only when it is complete. */
async function makeCluster(): Promise<void> {
  const unfinished = `${orders.dataFolder}.new-${process.pid}`;
  const passwordFile = join(folder, 'password');
  mkdirSync(unfinished, { mode: 0o700 });
  giveToOwner(unfinished, 0o700);
  if (orders.password !== undefined) {
    writeFileSync(passwordFile, `${orders.password}\n`, { mode: 0o600 });
    giveToOwner(passwordFile, 0o600);
  }
  try {
    const code = await run(orders.initdb, [
      `--pgdata=${unfinished}`,
      `--username=${orders.user}`,
      ...(orders.password === undefined
        ? ['--auth=trust']
        : [
            `--pwfile=${passwordFile}`,
            '--auth=scram-sha-256',
            // A password on the loopback needs no costly hash; each connect would pay for it.
            '--set=scram_iterations=16',
          ]),
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync',
      '--no-instructions',
    ]);
    if (code !== 0) throw new Error(`initdb ended with ${code}:\n${recentLines.join('\n')}`);
    renameSync(unfinished, orders.dataFolder);
  } finally {
    rmSync(passwordFile, { force: true });
    rmSync(unfinished, { recursive: true, force: true });
  }
}

async function serve(): Promise<void> {
  const { address, settings } = orders;
  for (let attempt = 1; !isStopping; attempt += 1) {
    const port = address.port ?? (await findFreePort());
    const code = await run(
      orders.postgres,
      ['-D', orders.dataFolder, '-p', String(port), ...addressArguments(), ...argumentsOf(settings)],
      (line, pid) => {
        log?.write(`${line}\n`);
        if (line.includes('ready to accept connections')) report({ state: 'ready', port, pid });
      },
    );
    if (isStopping) return;
    const lines = recentLines.join('\n');
    if (lines.includes('lock file "postmaster.pid" already exists'))
      throw new Error(`${orders.dataFolder} is in use by another PostgreSQL server.`);
    // Another program may take the port between the look and the use.
    const isPortTaken = /Address already in use|could not bind/.test(lines);
    if (isPortTaken && address.port === undefined && attempt < portAttempts) continue;
    if (isPortTaken && address.kind === 'tcp')
      throw new Error(
        `PostgreSQL could not listen on ${address.host}:${port}, which is in use by another program.`,
      );
    throw new Error(`PostgreSQL ended with ${code}:\n${lines}`);
  }
}

function addressArguments(): string[] {
  const { address } = orders;
  return address.kind === 'tcp'
    ? argumentsOf({ listen_addresses: address.host, unix_socket_directories: '' })
    : argumentsOf({
        listen_addresses: '',
        unix_socket_directories: address.folder,
        unix_socket_permissions: '0700',
      });
}

function argumentsOf(settings: GuardOrders['settings']): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Resolves with the exit code, or the signal that ended the program. */
function run(
  program: string,
  args: readonly string[],
  onLine?: (line: string, pid: number) => void,
): Promise<number | string> {
  recentLines = [];
  return new Promise((resolve, reject) => {
    if (isStopping) return resolve('a stop before it started');
    const child = spawn(program, args, {
      ...orders.owner,
      cwd: folder,
      env: plainEnvironment,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    running = child;
    createInterface({ input: child.stderr }).on('line', (line) => {
      recentLines.push(line);
      if (recentLines.length > keptLines) recentLines.shift();
      onLine?.(line, child.pid ?? 0);
    });
    child.once('error', (error) => reject(new Error(`${program} could not be run: ${error.message}`)));
    child.once('close', (code, signal) => {
      running = undefined;
      resolve(code ?? signal ?? 0);
    });
  });
}

/** Asks for a shutdown that ends sessions in an orderly way, then for one that does not wait, then does not ask. */
function endPatiently(child: ChildProcess): void {
  child.kill('SIGINT');
  setTimeout(() => child.kill('SIGQUIT'), patienceMs).unref();
  setTimeout(() => child.kill('SIGKILL'), 2 * patienceMs).unref();
}

function giveToOwner(path: string, mode: number): void {
  if (orders.owner !== undefined) chownSync(path, orders.owner.uid, orders.owner.gid);
  chmodSync(path, mode);
}

function openLog(file: string): void {
  const isLong = existsSync(file) && statSync(file).size > longestLog;
  log = createWriteStream(file, { flags: isLong ? 'w' : 'a', mode: 0o600 });
  // A full disk must not end the server.
  log.on('error', () => {
    log = undefined;
  });
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

function report(message: GuardReport): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
