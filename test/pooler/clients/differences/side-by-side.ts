// PgBouncer and Headgate in front of the same server, each started from the same pgbouncer.ini.
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, createServer } from 'node:net';
import { basename, join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import pg from 'pg';
import { onTestFinished, vi } from 'vitest';
import { temporaryFolder } from '../../../../src/dsql-local/cluster/folders.js';
import { findServerOwner } from '../../../../src/dsql-local/cluster/server-owner.js';
import type { TestDatabase } from '../../../support/postgres.js';
import { has, type Output, sayNotRun } from '../programs.js';

const root = join(import.meta.dirname, '../../../..');
const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { headgate: string } };
const headgate = join(root, bin.headgate);

/** The installed PgBouncer: its version, or undefined. */
const pgbouncerVersion: string | undefined = has('pgbouncer', '--version', 'pgbouncer')
  ? /PgBouncer (\d+\.\d+)/.exec(spawnSync('pgbouncer', ['--version'], { encoding: 'utf8' }).stdout)?.[1]
  : undefined;

export interface Versions {
  readonly since?: string;
  readonly until?: string;
}

/** True if PgBouncer is installed, in one of these versions. Says so where it is in another one. */
export function hasPgBouncer({ since = '1.18', until = '1.999' }: Versions = {}): boolean {
  if (pgbouncerVersion === undefined) return false;
  const version = minorOf(pgbouncerVersion);
  const isOne = version >= minorOf(since) && version <= minorOf(until);
  if (!isOne)
    sayNotRun(
      `a difference from PgBouncer ${since} to ${until}`,
      `The PgBouncer of this machine is ${pgbouncerVersion}.`,
    );
  return isOne;
}

function minorOf(version: string): number {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major * 1_000 + minor;
}

export type PoolerName = 'PgBouncer' | 'Headgate';

export interface IniParts {
  /** Keys of the only database, on top of the server's. */
  readonly database?: string;
  /** Settings of [pgbouncer], on top of the usual ones. FOLDER stands for the folder of the files. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** False: Headgate does not find its optional package koffi. */
  readonly hasKoffi?: boolean;
  /** Further sections. */
  readonly more?: string;
  /** Files that are copied into the folder. */
  readonly files?: readonly string[];
}

const usual = {
  listen_addr: '127.0.0.1',
  unix_socket_dir: '',
  logfile: 'FOLDER/log',
  auth_type: 'trust',
  auth_file: 'FOLDER/users.txt',
  pool_mode: 'transaction',
  default_pool_size: 1,
};

/** Run before the program: `require('koffi')` fails, as where the package is not installed. */
const withoutKoffi = `
const Module = require('node:module');
const load = Module._load;
Module._load = (name, ...rest) => {
  if (name === 'koffi') throw new Error('not installed');
  return load(name, ...rest);
};
`;

/** One of the two poolers. */
export class Side {
  readonly name: PoolerName;
  readonly port: number;
  readonly folder: string;
  readonly #db: TestDatabase;
  readonly #children: ChildProcess[] = [];
  #hasKoffi = true;
  #ssl: pg.ClientConfig['ssl'] = false;

  private constructor(name: PoolerName, port: number, db: TestDatabase) {
    const owner = name === 'PgBouncer' ? findServerOwner() : undefined;
    this.name = name;
    this.port = port;
    this.#db = db;
    this.folder = temporaryFolder({ forAnotherUser: owner !== undefined });
    if (owner !== undefined) chownSync(this.folder, owner.uid, owner.gid);
    onTestFinished(() => this.stop());
  }

  /** Resolves when it accepts clients. */
  static async start(name: PoolerName, db: TestDatabase, parts: IniParts = {}): Promise<Side> {
    const side = new Side(name, await freePort(), db);
    side.#write(parts);
    if (parts.settings?.['client_tls_sslmode'] === 'require') side.#ssl = { rejectUnauthorized: false };
    side.#hasKoffi = parts.hasKoffi !== false;
    side.spawn();
    await side.isUp(1);
    return side;
  }

  /** Resolves when so many processes have said that they are up. */
  async isUp(count: number): Promise<void> {
    await vi.waitFor(
      () => {
        if ((this.log().match(/process up/g)?.length ?? 0) < count) throw new Error(`Not up: ${this.log()}`);
      },
      { timeout: 30_000, interval: 20 },
    );
  }

  #write({ database = '', settings = {}, files = [], more = '' }: IniParts): void {
    const { host, port, user, password, database: name } = this.#db;
    const all = { ...usual, listen_port: this.port, admin_users: user, ...settings };
    const at = [`host=${host}`, `port=${port}`]
      .filter((part) => !database.includes(part.replace(/=.*/, '=')))
      .join(' ');
    const lines = [
      '[databases]',
      `${name} = ${at} user=${user} password=${password} ${database}`,
      '[pgbouncer]',
      ...Object.entries(all).map(([key, value]) => `${key} = ${value}`),
      more,
      '',
    ];
    writeFileSync(this.ini, lines.join('\n').replaceAll('FOLDER', this.folder));
    writeFileSync(join(this.folder, 'without-koffi.cjs'), withoutKoffi);
    for (const file of files) {
      copyFileSync(file, join(this.folder, basename(file)));
      chmodSync(join(this.folder, basename(file)), 0o644);
    }
    writeFileSync(join(this.folder, 'users.txt'), `"${user}" "${password}"\n"lasting" ""\n`);
  }

  get ini(): string {
    return join(this.folder, 'pgbouncer.ini');
  }

  /** One more process of the same configuration. */
  spawn(args: readonly string[] = []): ChildProcess {
    const [program, all] = this.#command(['-q', ...args, this.ini]);
    const child = spawn(program, all, { ...this.#who, stdio: 'ignore' });
    this.#children.push(child);
    return child;
  }

  /** Runs the program until it ends by itself. */
  run(args: readonly string[]): Promise<Output> {
    const [program, all] = this.#command([...args, this.ini]);
    return new Promise((resolve) => {
      execFile(program, all, { ...this.#who, timeout: 20_000 }, (error, stdout, stderr) => {
        resolve({ stdout, stderr, code: error === null ? 0 : Number(error.code ?? 255) });
      });
    });
  }

  #command(args: readonly string[]): [string, string[]] {
    if (this.name === 'PgBouncer') return ['pgbouncer', [...args]];
    const without = this.#hasKoffi ? [] : ['--require', join(this.folder, 'without-koffi.cjs')];
    return [process.execPath, [...without, headgate, 'pgbouncer', ...args]];
  }

  /** PgBouncer does not run as root. What is set for the tests is no configuration of Headgate. */
  get #who() {
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(?:HEADGATE_|NODE_OPTIONS$)/.test(name)),
    );
    return { env, cwd: this.folder, ...(this.name === 'PgBouncer' ? findServerOwner() : {}) };
  }

  /** The process that was started first. */
  get child(): ChildProcess {
    return this.#children[0] as ChildProcess;
  }

  log(): string {
    const file = join(this.folder, 'log');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  async connect(options: pg.ClientConfig = {}): Promise<pg.Client> {
    const { user, password, database } = this.#db;
    const client = new pg.Client({
      host: '127.0.0.1',
      port: this.port,
      user,
      password,
      database,
      ssl: this.#ssl,
      ...options,
    });
    client.on('error', () => {});
    await client.connect();
    onTestFinished(() => void client.end().catch(() => {}));
    return client;
  }

  /** Runs a command on the console. */
  async command(text: string): Promise<pg.QueryResult<Record<string, unknown>>> {
    const console = await this.connect({ database: 'pgbouncer' });
    try {
      return await console.query(text);
    } finally {
      await console.end();
    }
  }

  async ask(command: string): Promise<Record<string, unknown>[]> {
    return (await this.command(command)).rows;
  }

  /** The value of a setting, as the console shows it. */
  async setting(name: string): Promise<unknown> {
    return (await this.ask('SHOW CONFIG')).find(({ key }) => key === name)?.['value'];
  }

  /** Fingerprint of the certificate that clients are shown. */
  async certificate(): Promise<string> {
    const socket = connectTcp(this.port, '127.0.0.1');
    socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
    await once(socket, 'readable');
    socket.read(1);
    const secure = connectTls({ socket, rejectUnauthorized: false });
    await once(secure, 'secureConnect');
    const { fingerprint256 } = secure.getPeerCertificate();
    secure.destroy();
    return fingerprint256;
  }

  async stop(): Promise<void> {
    for (const child of this.#children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What the same steps give with each of the two. */
export async function besideEachOther<T>(
  db: TestDatabase,
  parts: IniParts,
  act: (side: Side) => Promise<T>,
): Promise<Readonly<Record<PoolerName, T>>> {
  const run = async (name: PoolerName): Promise<T> => act(await Side.start(name, db, parts));
  return { PgBouncer: await run('PgBouncer'), Headgate: await run('Headgate') };
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
