// Poolers that share an address pass cancel requests on to the one whose client it is.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { CancelKeys } from '../../../src/pooler/clients/cancel-keys.js';
import { keyForPeer, peerOfKey } from '../../../src/pooler/clients/peer-keys.js';
import { peersKind } from '../../../src/pooler/config/peers.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeCancelRequest } from '../../../src/wire/startup-packet.js';
import { startTestPooler } from '../../support/pooler.js';
import { withDatabase } from '../../support/postgres.js';

const context = { folder: '/', environment: {}, readsFiles: false };

test.each([false, true])(
  'The key of a pooler with peers says whose it is, and is good for its client after it was passed on',
  (isLong) => {
    const keys = new CancelKeys(undefined, 4_711);
    const client = { cancel: async () => {} };
    const key = keys.register(client, isLong);
    expect(peerOfKey(key)).toBe(4_711);
    const passed = keyForPeer(key);
    expect(passed && keys.find(keys.own(passed))).toBe(client);
    const wrong = Buffer.from(key.secretKey);
    wrong[2] = (wrong[2] as number) ^ 1;
    expect(keys.find(keys.own({ ...key, secretKey: wrong }))).toBeUndefined();
    expect(keys.find(keys.own({ ...key, processId: key.processId ^ 1 }))).toBeUndefined();
    keys.forget(key);
    expect(keys.size).toBe(0);
  },
);

test('The key of a pooler with peers has the peer and the number of hops where PgBouncer has them, and a positive process id', () => {
  const keys = new CancelKeys(undefined, 0x1234);
  for (let i = 0; i < 20; i++) {
    const { processId, secretKey } = keys.register({ cancel: async () => {} }, i % 2 === 0);
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(processId);
    secretKey.copy(bytes, 4);
    expect(bytes.readInt32BE(0)).toBeGreaterThanOrEqual(0);
    expect(bytes.readUInt16LE(1)).toBe(0x1234);
    expect(bytes.readUInt8(7) & 0b11).toBe(0b11);
  }
});

test('The key of a pooler with peers is passed on three times and no more, so that no request goes round for ever', () => {
  let key = new CancelKeys(undefined, 1).register({ cancel: async () => {} }, false);
  for (let i = 0; i < 3; i++) key = keyForPeer(key) as typeof key;
  expect(keyForPeer(key)).toBeUndefined();
});

test('peers are written as a list, as a mapping, or as pgbouncer.ini has them', () => {
  const expected = new Map([
    [1, { host: '/run/one', port: 6432, poolSize: undefined }],
    [2, { host: 'two', port: 7000, poolSize: undefined }],
  ]);
  expect(peersKind.fromText('1=/run/one, 2=two:7000', context)).toEqual(expected);
  expect(peersKind.fromData({ 1: 'host=/run/one', 2: { host: 'two', port: 7000 } }, context)).toEqual(
    expected,
  );
  expect(peersKind.show(expected)).toBe('1=/run/one:6432, 2=two:7000');
  for (const wrong of ['0=a', '16384=a', '1=', '1=a:0', 'a'])
    expect(() => peersKind.fromText(wrong, context)).toThrow(/peer/);
});

test('a cancel request that comes to another pooler reaches the client of its peer', async () => {
  const db = await withDatabase();
  const one = await startTestPooler(db, { listen: { port: 0, peerId: 1 } });
  const peers = { 1: `127.0.0.1:${one.port}` };
  const other = await startTestPooler(db, { listen: { port: 0, peerId: 2, peers } });
  const client = await one.connect();
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
  const secret = Buffer.alloc(4);
  secret.writeInt32BE(secretKey);
  const slept = client.query('select pg_sleep(600)').catch((error: { code: string }) => error.code);
  await expect.poll(() => one.pooler.stats().pools[0]?.inUse).toBe(1);
  await expect
    .poll(
      async () => {
        await requestCancel(other.port, processID, secret);
        return Promise.race([slept, Promise.resolve('asleep')]);
      },
      { timeout: 30_000 },
    )
    .toBe('57014');
});

test('a cancel request waits for a peer that is not there yet, and is shown meanwhile', async () => {
  const db = await withDatabase();
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as AddressInfo;
  listener.close();
  const pooler = await startTestPooler(db, {
    listen: { port: 0, peerId: 1, peers: { 2: `127.0.0.1:${port}` } },
    admin: { adminUsers: [db.user] },
    pooling: { serverLoginRetry: '100ms' },
    timeouts: { cancelWaitTimeout: 0 },
  });
  const console = await pooler.connect({ database: 'pgbouncer' });
  const secret = Buffer.from([0, 0, 0, 0b11]);
  const done = requestCancel(pooler.port, 2 << 16, secret);
  const waiting = async () =>
    (await console.query('show clients')).rows.filter(({ state }) => state === 'waiting_cancel_req').length;
  await expect.poll(waiting).toBe(1);
  const late = createServer();
  const arrived = once(late, 'connection') as Promise<[Socket]>;
  await new Promise<void>((resolve) => late.listen(port, '127.0.0.1', resolve));
  const [socket] = await arrived;
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  expect(bytes.subarray(8)).toEqual(Buffer.from([0, 2, 0, 0, 0, 0, 0, 0b10]));
  socket.destroy();
  await done;
  expect(await waiting()).toBe(0);
  await new Promise((resolve) => late.close(resolve));
});

/** Resolves when the pooler has hung up. */
async function requestCancel(port: number, processId: number, secretKey: Buffer): Promise<void> {
  const writer = new MessageWriter();
  writeCancelRequest(writer, processId, secretKey);
  const socket = connect(port, '127.0.0.1');
  socket.end(writer.take()).resume();
  await once(socket, 'close');
}
