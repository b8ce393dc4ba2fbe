// Workers that die while their logins are slow: a login under way counts until the server has ended it.
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { type Served, serve } from './served.js';

const limit = 10;
const isLinux = process.platform === 'linux';

/** The server's own processes, by their titles; a process that was just forked has none yet. */
const ownTitle =
  /^postgres: (checkpointer|background writer|walwriter|io worker|logical replication launcher|archiver)/;

/** Counts the processes that a server has for clients, whatever they do: those that log in are in no view of PostgreSQL. */
class ProcessWatch {
  readonly #server: number;
  readonly #timer: NodeJS.Timeout;
  most = 0;
  now = 0;

  constructor(server: number) {
    this.#server = server;
    this.#timer = setInterval(() => this.#look(), 20);
  }

  #look(): void {
    this.now = childrenOf(this.#server).filter((pid) => !ownTitle.test(titleOf(pid))).length;
    this.most = Math.max(this.most, this.now);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

function titleOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
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

/** Between the pooler and a server. While it sticks, answers get lost, and the server does not learn that a client has gone. */
class StickyProxy {
  readonly #server = createServer();
  isSticking = false;

  async open(serverPort: number): Promise<number> {
    this.#server.on('connection', (client) => this.#join(client, serverPort));
    this.#server.listen(0, '127.0.0.1');
    onTestFinished(() => void this.#server.close());
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  #join(client: Socket, port: number): void {
    const server = connect(port, '127.0.0.1');
    const sticks = this.isSticking;
    client.on('data', (bytes) => server.write(bytes));
    server.on('data', (bytes) => {
      if (!sticks) client.write(bytes);
    });
    for (const socket of [client, server]) socket.on('error', () => {});
    server.on('close', () => client.destroy());
    client.on('close', () => {
      if (!sticks) server.destroy();
    });
  }
}

interface Slow {
  readonly served: Served;
  readonly watch: ProcessWatch;
}

/** A server whose logins take long, and a pooler with two workers in front of it. */
async function slowServer(settings: Record<string, number>, proxy?: StickyProxy): Promise<Slow> {
  const server = await startPostgres({ settings: { autovacuum: false, ...settings } });
  const watch = new ProcessWatch(server.pid);
  const port = (await proxy?.open(server.port)) ?? server.port;
  const db: TestDatabase = { ...server, port, drop: async () => {} };
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
  ['before', { pre_auth_delay: 4 }],
  ['after', { post_auth_delay: 4 }],
])(
  'server logins that are slow %s authentication stay within the limit when workers are killed',
  async (_, settings) => {
    const { served, watch } = await slowServer(settings);
    await warmUp(served);
    await expect.poll(() => watch.now, { timeout: 20_000 }).toBe(0);
    watch.most = 0;
    let isOver = false;
    const clients = Array.from({ length: 20 }, () => answered(served, () => isOver));
    await expect.poll(() => watch.now, { timeout: 20_000 }).toBe(limit);
    process.kill(await pidOf(served, 1), 'SIGKILL');
    const admin = await served.console().catch(() => served.console());
    await admin.query('RELOAD').catch(() => {});
    // Longer than a slot without a login is kept. The other worker dies while the replacement of the first one is to dial.
    await sleep(1_500);
    process.kill(await pidOf(served, 2), 'SIGKILL');
    await served.says(/server logins orphaned {2}worker=1 logins=\d+/);
    await served.says(/orphaned server logins ended {2}worker=1 /);
    await served.says(/orphaned server logins ended {2}worker=2 /);
    await Promise.all(clients);
    isOver = true;
    watch.stop();
    expect(watch.most).toBe(limit);
  },
  90_000,
);

test.runIf(isLinux)(
  'server logins behind a proxy count until authentication_timeout when a worker is killed',
  async () => {
    const proxy = new StickyProxy();
    const { served, watch } = await slowServer({ authentication_timeout: 6 }, proxy);
    await warmUp(served);
    await expect.poll(() => watch.now, { timeout: 20_000 }).toBe(0);
    watch.most = 0;
    proxy.isSticking = true;
    let isOver = false;
    const clients = Array.from({ length: 20 }, () => answered(served, () => isOver));
    await expect.poll(() => watch.now, { timeout: 20_000 }).toBe(limit);
    process.kill(await pidOf(served, 1), 'SIGKILL');
    proxy.isSticking = false;
    await served.says(/server logins orphaned {2}worker=1 logins=\d+ visible=0 most_ms=7000/);
    await served.says(/orphaned server logins ended {2}worker=1 gone=0 overdue=[1-9]/);
    await Promise.all(clients);
    isOver = true;
    watch.stop();
    expect(watch.most).toBe(limit);
  },
  90_000,
);
