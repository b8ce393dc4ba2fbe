// Poolers that share an address pass cancel requests on to the one whose client it is.
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { CancelKeys, keyForPeer, peerOfKey } from '../../../src/pooler/clients/cancel-keys.js';
import { peersKind } from '../../../src/pooler/config/peers.js';
import { MessageWriter } from '../../../src/wire/message-writer.js';
import { writeCancelRequest } from '../../../src/wire/startup-packet.js';
import { startTestPooler } from '../../support/pooler.js';
import { withDatabase } from '../../support/postgres.js';

const context = { folder: '/', environment: {}, readsFiles: false };

describe('The key of a pooler with peers', () => {
  test.each([false, true])(
    'says whose it is, and is good for its client after it was passed on',
    (isLong) => {
      const keys = new CancelKeys(undefined, 4_711);
      const client = { cancel: async () => {} };
      const key = keys.register(client, isLong);
      expect(peerOfKey(key)).toBe(4_711);
      const passed = keyForPeer(key);
      expect(passed && keys.find(passed)).toBe(client);
      const wrong = Buffer.from(key.secretKey);
      wrong[3] = (wrong[3] as number) ^ 1;
      expect(keys.find({ ...key, secretKey: wrong })).toBeUndefined();
    },
  );

  test('is passed on three times and no more, so that no request goes round for ever', () => {
    let key = new CancelKeys(undefined, 1).register({ cancel: async () => {} }, false);
    for (let i = 0; i < 3; i++) key = keyForPeer(key) as typeof key;
    expect(keyForPeer(key)).toBeUndefined();
  });
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
  await expect.poll(() => one.pooler.stats().pools[0]?.lent).toBe(1);
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

/** Resolves when the pooler has hung up. */
async function requestCancel(port: number, processId: number, secretKey: Buffer): Promise<void> {
  const writer = new MessageWriter();
  writeCancelRequest(writer, processId, secretKey);
  const socket = connect(port, '127.0.0.1');
  socket.end(writer.take()).resume();
  await once(socket, 'close');
}
