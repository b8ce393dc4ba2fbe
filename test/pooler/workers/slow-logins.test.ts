// Workers that die while their logins are slow: a login under way counts until the server has ended it.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { expect, test } from 'vitest';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { type Served, serve } from './served.js';

const limit = 10;
const isLinux = process.platform === 'linux';

/** Counts the processes that a server has for clients, whatever they do: those that log in are in no view of PostgreSQL. */
class ProcessWatch {
  readonly #server: number;
  readonly #others: ReadonlySet<number>;
  readonly #timer: NodeJS.Timeout;
  most = 0;
  now = 0;

  /** To be made before there are clients: the processes of that moment are the server's own. */
  constructor(server: number) {
    this.#server = server;
    this.#others = new Set(childrenOf(server));
    this.#timer = setInterval(() => this.#look(), 20);
  }

  #look(): void {
    this.now = childrenOf(this.#server).filter((pid) => !this.#others.has(pid)).length;
    this.most = Math.max(this.most, this.now);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent);
}

function parentOf(pid: number): number | undefined {
  try {
    const [, , ppid] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/s, ')').split(' ');
    return Number(ppid);
  } catch {
    return undefined;
  }
}

interface Slow {
  readonly served: Served;
  readonly watch: ProcessWatch;
}

/** A server whose logins take long, and a pooler with two workers in front of it. */
async function slowServer(settings: Record<string, number>): Promise<Slow> {
  const server = await startPostgres({ settings: { autovacuum: false, ...settings } });
  const watch = new ProcessWatch(server.pid);
  const db: TestDatabase = { ...server, drop: async () => {} };
  const served = await serve(db, {
    pooling: { poolSize: 20 },
    limits: { maxServerConnections: limit },
    logging: { connections: false, disconnections: false, poolerErrors: false },
  });
  return { served, watch };
}

/** A client that comes back until it has its answer, whichever worker dies. */
async function answered(served: Served, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    let client: pg.Client | undefined;
    try {
      client = await served.connect();
      await client.query('select pg_sleep(0.2)');
      return;
    } catch {
      await sleep(20);
    } finally {
      await client?.end().catch(() => {});
    }
  }
}

async function pidOf(served: Served, number: number): Promise<number> {
  let pid: number | undefined;
  await expect
    .poll(
      async () => {
        const workers = await served.workers().catch(() => []);
        pid = workers.find(({ worker, state }) => worker === number && state === 'ready')?.pid;
        return pid;
      },
      { timeout: 20_000 },
    )
    .toBeDefined();
  return pid as number;
}

/** The pooler has had a connection to the server, and has none now. */
async function warmUp(served: Served): Promise<void> {
  const client = await served.connect();
  await client.query('select 1');
  await client.end();
  const admin = await served.console();
  await admin.query('RECONNECT');
  await admin.end();
}

test.runIf(isLinux).each([
  ['before', { pre_auth_delay: 6 }],
  ['after', { post_auth_delay: 6 }],
])(
  'server logins that are slow %s authentication stay within the limit when workers are killed',
  async (_, settings) => {
    const { served, watch } = await slowServer(settings);
    await warmUp(served);
    await expect.poll(() => watch.now, { timeout: 20_000 }).toBe(0);
    let isOver = false;
    const clients = Array.from({ length: 20 }, () => answered(served, () => isOver));
    await expect.poll(() => watch.now, { timeout: 20_000 }).toBe(limit);
    process.kill(await pidOf(served, 1), 'SIGKILL');
    const admin = await served.console().catch(() => served.console());
    await admin.query('RELOAD').catch(() => {});
    // Longer than a slot without a login is kept. The other worker dies while the replacement of the first one is to dial.
    await sleep(1_500);
    process.kill(await pidOf(served, 2), 'SIGKILL');
    await served.says(/worker 1 died during \d+ server logins; their slots are kept/);
    await served.says(/all server logins of worker 1 have ended/);
    await served.says(/all server logins of worker 2 have ended/);
    await Promise.all(clients);
    isOver = true;
    watch.stop();
    expect(watch.most).toBe(limit);
  },
  90_000,
);
