// Notes of a worker about its server connections, and questions that it answers for others: a real pooler in front of a real PostgreSQL.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { FromWorker } from '../../../src/pooler/messages/messages.js';
import { readFromWorker } from '../../../src/pooler/messages/messages.js';
import { WorkerIds } from '../../../src/pooler/messages/worker-ids.js';
import { whichAreThere, whichPortsAreThere } from '../../../src/pooler/worker/server-processes.js';
import { SupervisorBudgets } from '../../../src/pooler/worker/supervisor-budgets.js';
import { type ConfigTree, startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';

let db: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

/** A pooler as a worker has it, whose supervisor grants every slot. */
async function worker(tree: ConfigTree = {}) {
  const told: FromWorker[] = [];
  const budgets: SupervisorBudgets = new SupervisorBudgets((message) => {
    expect(readFromWorker(structuredClone(message))).toBeDefined();
    told.push(message);
    if (message.kind === 'ask') setImmediate(() => budgets.granted(message.report.pool));
  });
  const shared = {
    ids: new WorkerIds(1, 2),
    budgets,
    rates: { limiterOf: () => undefined },
    places: { take: async () => () => {} },
    cancelElsewhere: async () => {},
    consoleOf: <T>(here: T): T => here,
  };
  const { pooler, connect } = await startTestPooler(db, tree, { host: { shared } });
  // Clients are handed to a worker.
  const door = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) =>
    pooler.adopt(socket, { kind: 'tcp', host: '127.0.0.1', port: 0 }),
  ).listen(0, '127.0.0.1');
  onTestFinished(() => void door.close());
  await once(door, 'listening');
  const { port } = door.address() as AddressInfo;
  const client = (options: pg.ClientConfig = {}): Promise<pg.Client> => connect({ port, ...options });
  /** In order, without what is about slots only. */
  const notes = (): FromWorker[] =>
    told.filter(({ kind }) => ['dial', 'dialEnded', 'facts', 'server', 'release'].includes(kind));
  return { pools: () => pooler.pools, client, notes };
}

test('a worker tells of a server connection before its login, after its login, and when it is open', async () => {
  const { client: connect, notes } = await worker();
  const client = await connect();
  const { rows } = await client.query('select pg_backend_pid() as pid, inet_client_port() as port');
  const [{ pid: processId, port: localPort }] = rows as [{ pid: number; port: number }];
  const ends = { localAddress: '127.0.0.1', localPort, remoteAddress: db.host, remotePort: db.port };
  const at = { host: db.host, port: db.port, path: undefined };
  const [first] = notes() as [Extract<FromWorker, { kind: 'dial' }>];
  const { server } = first.dial;
  const facts = {
    address: db.host,
    port: db.port,
    isDirect: true,
    authenticationMs: 60_000,
    askedOver: ends,
  };
  expect(notes()).toEqual([
    { kind: 'dial', dial: { pool: 1, server, ...at, ends, key: undefined } },
    {
      kind: 'dial',
      dial: { pool: 1, server, ...at, ends, key: { processId, secretKey: expect.anything() } },
    },
    { kind: 'facts', facts },
    { kind: 'server', server: { pool: 1, server, ...at, processId, secretKey: expect.anything() } },
  ]);
});

test('a worker tells that a login has failed before it gives the slot back', async () => {
  const { client, notes } = await worker({ pooling: { poolSize: 1 } });
  await expect(client({ user: 'nobody_of_this_name' })).rejects.toThrow();
  await expect.poll(() => notes().some(({ kind }) => kind === 'release')).toBe(true);
  expect(
    notes()
      .slice(0, 3)
      .map(({ kind }) => kind),
  ).toEqual(['dial', 'dialEnded', 'release']);
});

test('a worker finds the sessions of a user by their ports, and says so where it can not look', async () => {
  const { pools, client } = await worker();
  await (await client()).query('select 1');
  const direct = new pg.Client(db.url);
  await direct.connect();
  const { rows } = await direct.query('select pg_backend_pid() as pid, inet_client_port() as port');
  const [{ pid, port }] = rows as [{ pid: number; port: number }];
  const question = { user: db.user, address: db.host, port: db.port, from: '127.0.0.1', ports: [port, 1] };
  expect(await whichPortsAreThere(pools(), question)).toEqual([port]);
  expect(await whichPortsAreThere(pools(), { ...question, from: '10.0.0.1' })).toEqual([]);
  expect(await whichPortsAreThere(pools(), { ...question, user: 'another' })).toBeUndefined();
  expect(await whichPortsAreThere(pools(), { ...question, address: '10.0.0.1' })).toBeUndefined();
  const place = { host: db.host, port: db.port, path: undefined };
  expect(await whichAreThere(pools(), place, [pid])).toEqual([pid]);
  await direct.end();
  await expect.poll(() => whichPortsAreThere(pools(), question)).toEqual([]);
  await expect.poll(() => whichAreThere(pools(), place, [pid])).toEqual([]);
});
