// The gate of the benchmarks: it must hold its rate itself, or what is measured behind it says nothing.
import { once } from 'node:events';
import net from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { ConnectionGate, GateCounts } from '../../bench/burst-expiry/connection-gate.mjs';
import { startGate } from '../support/connection-gate.js';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

/** The next one would be let in after a quarter of an hour. */
const almostNever = 0.001;

let db: TestDatabase;

beforeAll(async () => {
  db = await withDatabase();
});

afterAll(() => db.drop());

function clientOf({ host, port }: ConnectionGate): pg.Client {
  const { user, password, database } = db;
  const client = new pg.Client({ host, port, user, password, database });
  client.on('error', () => {});
  onTestFinished(() => client.end());
  return client;
}

async function until(gate: ConnectionGate, holds: (counts: GateCounts) => boolean): Promise<void> {
  while (!holds(gate.counts())) await nextTurn();
}

test('a connection that the gate lets in reaches the server', async () => {
  const gate = await startGate(db, { rate: 10, burst: 1, manner: 'queue' });
  const client = clientOf(gate);
  await client.connect();
  const { rows } = await client.query('select 40 + 2 as answer');
  expect(rows).toEqual([{ answer: 42 }]);
});

test('above its rate it refuses with 53400, where refusing is its manner', async () => {
  const gate = await startGate(db, { rate: almostNever, burst: 2, manner: 'refuse' });
  await clientOf(gate).connect();
  await clientOf(gate).connect();
  await expect(clientOf(gate).connect()).rejects.toMatchObject({ code: '53400', severity: 'FATAL' });
  expect(gate.counts()).toMatchObject({ accepted: 2, refused: 1, queued: 0, open: 2 });
});

test('above its rate it makes wait, where that is its manner, and lets in one after the other', async () => {
  const gate = await startGate(db, { rate: 50, burst: 1, manner: 'queue' });
  const clients = [clientOf(gate), clientOf(gate), clientOf(gate), clientOf(gate)];
  await Promise.all(clients.map((client) => client.connect()));
  expect(gate.counts()).toMatchObject({ accepted: 4, refused: 0, queued: 0, open: 4 });
});

test('the gate of connections never lets in more than its burst and its rate allow', async () => {
  const gate = await startGate(db, { rate: 40, burst: 3, manner: 'queue' });
  const startedAt = performance.now();
  const clients = Array.from({ length: 12 }, () => clientOf(gate));
  const connected = clients.map(async (client) => {
    await client.connect();
    const allowed = 3 + (40 * (performance.now() - startedAt)) / 1_000;
    expect(gate.counts().accepted).toBeLessThanOrEqual(allowed);
  });
  await Promise.all(connected);
});

test('a connection that leaves the queue of the gate takes no place', async () => {
  const gate = await startGate(db, { rate: almostNever, burst: 1, manner: 'queue' });
  await clientOf(gate).connect();
  const impatient = clientOf(gate);
  const outcome = impatient.connect().then(
    () => 'connected',
    () => 'gone',
  );
  await until(gate, ({ queued }) => queued === 1);
  (impatient as unknown as { connection: { stream: net.Socket } }).connection.stream.destroy();
  await until(gate, ({ queued }) => queued === 0);
  expect(await outcome).toBe('gone');
  expect(gate.counts()).toMatchObject({ accepted: 1, open: 1 });
});

test('the gate of connections counts a connection until it is gone, and remembers how long the oldest lived', async () => {
  const gate = await startGate(db, { rate: 10, burst: 2, manner: 'refuse' });
  const [first, second] = [clientOf(gate), clientOf(gate)];
  await first.connect();
  await second.connect();
  expect(gate.counts()).toMatchObject({ open: 2, oldestMs: 0 });
  await first.end();
  await until(gate, ({ open }) => open === 1);
  expect(gate.counts()).toMatchObject({ accepted: 2, peak: 2 });
  expect(gate.counts().oldestMs).toBeGreaterThan(0);
});

test.each([
  ['longer than any first message', 1_000_000],
  ['too short to be one', 4],
])('a first message that says it is %s ends the connection', async (_, length) => {
  const gate = await startGate(db, { rate: 10, burst: 1, manner: 'queue' });
  const socket = net.connect(gate.port, gate.host);
  const message = Buffer.alloc(8);
  message.writeUInt32BE(length, 0);
  socket.write(message);
  await once(socket, 'close');
  expect(gate.counts().accepted).toBe(0);
});
