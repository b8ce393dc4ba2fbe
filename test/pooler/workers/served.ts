// `headgate serve` with several workers, as it is built: real processes in front of a test's database.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { type ConfigTree, treeFor } from '../../support/pooler.js';
import type { TestDatabase } from '../../support/postgres.js';

const root = join(import.meta.dirname, '../../..');
const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { headgate: string } };
const program = join(root, bin.headgate);

export interface WorkerRow {
  readonly worker: number;
  readonly pid: number;
  readonly state: string;
  readonly clients: number;
  readonly servers: number;
  readonly restarts: number;
}

export class Served {
  readonly folder = mkdtempSync(join(tmpdir(), 'headgate-workers-'));
  readonly child: ChildProcess;
  readonly #db: TestDatabase;
  readonly #clients: pg.Client[] = [];
  out = '';
  err = '';

  constructor(db: TestDatabase, tree: ConfigTree, nodeOptions: readonly string[] = []) {
    this.#db = db;
    this.write(tree);
    const { NODE_OPTIONS: _options, ...env } = process.env;
    const serving = [program, 'serve', '--config', join(this.folder, 'headgate.json')];
    this.child = spawn(process.execPath, [...nodeOptions, ...serving], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.err += text;
    });
    afterTest(() => this.end());
  }

  /** Sections of the configuration on top of what a test's database needs; users of the test may use the console. */
  write(tree: ConfigTree): void {
    const usual = treeFor(this.#db, tree);
    const config = {
      ...usual,
      listen: { workers: 2, ...usual['listen'] },
      admin: { adminUsers: [this.#db.user], ...usual['admin'] },
    };
    writeFileSync(join(this.folder, 'headgate.json'), JSON.stringify(config));
  }

  /** Resolves when it has said this. */
  async says(expected: string | RegExp): Promise<void> {
    const hasSaid = (): boolean =>
      typeof expected === 'string'
        ? (this.out + this.err).includes(expected)
        : expected.test(this.out + this.err);
    while (!hasSaid()) {
      if (this.child.exitCode !== null) throw new Error(`It ended: ${this.out}${this.err}`);
      await Promise.race([
        once(this.child.stdout as NodeJS.EventEmitter, 'data'),
        once(this.child.stderr as NodeJS.EventEmitter, 'data'),
        once(this.child, 'exit'),
      ]);
    }
  }

  get port(): number {
    return Number(/listening on 127\.0\.0\.1:(\d+)/.exec(this.out + this.err)?.[1]);
  }

  /** A client that is connected; errors that come later are the test's own business. */
  async connect(options: pg.ClientConfig = {}): Promise<pg.Client> {
    const { user, password, database } = this.#db;
    const client = new pg.Client({
      host: '127.0.0.1',
      port: this.port,
      user,
      password,
      database,
      ...options,
    });
    client.on('error', () => {});
    await client.connect();
    this.#clients.push(client);
    return client;
  }

  console(): Promise<pg.Client> {
    return this.connect({ database: 'headgate' });
  }

  /** On a console of its own, since the worker that has it may be gone. */
  async workers(): Promise<WorkerRow[]> {
    const admin = await this.console();
    try {
      const { rows } = await admin.query('SHOW WORKERS');
      return rows as WorkerRow[];
    } finally {
      await admin.end().catch(() => {});
    }
  }

  /** So many clients of the same pool, evenly on all workers. */
  spread(count: number, options: pg.ClientConfig = {}): Promise<pg.Client[]> {
    const late = { ...options, stream: () => new LateSocket() };
    return Promise.all(Array.from({ length: count }, () => this.connect(late)));
  }

  /** One client on each of two workers, by the worker's number. */
  async clientOfEach(admin: pg.Client): Promise<Map<number, pg.Client>> {
    const clients = new Map<number, pg.Client>();
    while (clients.size < 2) {
      const [client] = (await this.spread(1)) as [pg.Client];
      const worker = await this.workerOf(client, admin);
      if (clients.has(worker)) await client.end();
      else clients.set(worker, client);
    }
    return clients;
  }

  /** The number of the worker that has this client, as `admin` sees it. */
  async workerOf(client: pg.Client, admin: pg.Client): Promise<number> {
    const { connection } = client as unknown as { connection: { stream: Socket } };
    const { rows } = await admin.query('SHOW CLIENTS');
    return workerOf(rows.find(({ port }) => port === connection.stream.localPort)?.id as number);
  }

  /** The exit code, and null where a signal has ended it. */
  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
    return this.child.exitCode;
  }

  async end(): Promise<void> {
    this.child.kill('SIGTERM');
    await Promise.all(this.#clients.map((client) => client.end().catch(() => {})));
    this.child.kill('SIGQUIT');
    await this.ended();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Clients that are late with their startup packet are placed without regard to their pool. */
const lateMs = 1_200;

/** Tells of its connection later than it has it. */
class LateSocket extends Socket {
  override emit(event: string | symbol, ...details: unknown[]): boolean {
    const tell = (): boolean => super.emit(event, ...details);
    if (event !== 'connect') return tell();
    setTimeout(tell, lateMs);
    return true;
  }
}

/** In a hook, whoever has begun it ends it. */
function afterTest(act: () => Promise<void>): void {
  try {
    onTestFinished(act);
  } catch {
    // Called from a hook.
  }
}

/** With two workers, ids have two bits for the worker's number. */
export function workerOf(id: number): number {
  return id >> 29;
}

/** Serving, and ended after the test. */
export async function serve(
  db: TestDatabase,
  tree: ConfigTree = {},
  nodeOptions: readonly string[] = [],
): Promise<Served> {
  const served = new Served(db, tree, nodeOptions);
  await served.says('listening on 127.0.0.1');
  return served;
}
