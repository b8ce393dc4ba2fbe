// Hazards of the layer below the streams alone, and when that layer is used.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { plainTransport } from '../../src/net/make-transport.js';
import { type NativeHandle, nativeHandleOf, nativeStreams } from '../../src/net/native-streams.js';
import { Outbox } from '../../src/net/outbox.js';
import { RawTransport } from '../../src/net/raw-transport.js';
import { tcpEnds } from '../../src/net/socket-ends.js';
import { StreamTransport } from '../../src/net/stream-transport.js';
import { seededRandom } from '../support/seeded-random.js';
import { Recorder } from './recorder.js';
import { openSockets, rawTransport } from './sockets.js';
import { pieces, readFrom } from './traffic.js';

test('The layer below the streams is there in this version of Node, and is used', async () => {
  const { accepted } = await openSockets();
  expect(nativeStreams).toBeDefined();
  expect(plainTransport(accepted, tcpEnds(accepted), 'shared')).toBeInstanceOf(RawTransport);
});

test('The layer below the streams is not used with HEADGATE_STREAMS=1', async () => {
  const { accepted } = await openSockets();
  process.env['HEADGATE_STREAMS'] = '1';
  onTestFinished(() => {
    delete process.env['HEADGATE_STREAMS'];
  });
  expect(plainTransport(accepted, tcpEnds(accepted), 'shared')).toBeInstanceOf(StreamTransport);
});

test('The layer below the streams is not used on a socket without a handle, or with one that lacks something', async () => {
  const { accepted } = await openSockets();
  accepted.destroy();
  expect(nativeHandleOf(accepted)).toBe(undefined);
  const strange = Object.assign(Object.create(accepted), { _handle: { readStart() {} } });
  expect(nativeHandleOf(strange)).toBe(undefined);
});

test('The layer below the streams is got without a warning', () => {
  const run = `process.on('warning', (warning) => console.log(warning.name)); process.binding('stream_wrap');`;
  expect(execFileSync(process.execPath, ['-e', run], { encoding: 'utf8' })).toBe('');
});

test.each(['shared', 10_000] as const)(
  'A raw transport does not touch what a pending write refers to (read buffer: %s)',
  async (readBuffer) => {
    const source = await openSockets();
    const sink = await openSockets();
    const from = rawTransport(source.accepted, readBuffer);
    const to = rawTransport(sink.accepted, 'shared');
    const heard = new Recorder(from);
    const random = seededRandom();
    // Nobody reads at the other end, so that writes soon stay pending; and it is sent and read on nevertheless, by
    // this connection and by another.
    let pending = 0;
    heard.onBytes = (bytes, start, end) => {
      if (!to.send(bytes, start, end)) pending += 1;
    };
    const noise = await openSockets();
    const noisy = rawTransport(noise.accepted, 'shared');
    const noiseHeard = new Recorder(noisy);
    noiseHeard.onBytes = (bytes, start, end) => noisy.send(bytes, start, end);
    noise.connecting.resume();
    noisy.start();
    from.start();
    const total = 30_000_000;
    for (const piece of pieces(total, random)) {
      source.connecting.write(piece);
      noise.connecting.write(Buffer.alloc(piece.length, 0xee));
    }
    await heard.until(() => heard.received === total);
    await noiseHeard.until(() => noiseHeard.received === total);
    expect(pending).toBeGreaterThan(0);
    const came = await readFrom(sink.connecting, total, random);
    expect(came.checksum, `seed ${random.seed}`).toBe(heard.checksum);
  },
);

test('A raw transport reads the last bytes of a peer that is gone, although it can no longer be written to', async () => {
  const { accepted, connecting } = await openSockets();
  const subject = rawTransport(accepted, 'shared');
  const heard = new Recorder(subject);
  connecting.write('the last words');
  await new Promise<void>((resolve) => connecting.end(resolve));
  connecting.destroy();
  await once(connecting, 'close');
  // This is answered with a reset.
  subject.send(Buffer.from('a question'), 0, 10);
  for (let i = 0; i < 20; i++) await nextTurn();
  subject.start();
  expect(subject.send(Buffer.from('another'), 0, 7)).toBe(false);
  expect(heard.calls).toEqual([]);
  expect(await heard.end()).toMatchObject({ syscall: 'write' });
  expect(heard.text).toBe('the last words');
});

test('A raw transport leaves what is not about bytes to the socket', async () => {
  const { accepted } = await openSockets();
  const subject = rawTransport(accepted, 'shared');
  subject.start();
  const handle = nativeHandleOf(accepted) as NativeHandle & { hasRef(): boolean };
  subject.socket.setKeepAlive(true, 5_000).setNoDelay(true).unref();
  expect(handle.hasRef()).toBe(false);
  subject.socket.ref();
  expect(handle.hasRef()).toBe(true);
  expect(subject.remoteAddress).toBe('127.0.0.1');
  expect(subject.remotePort).toBe(accepted.remotePort);
});

test('What waits to be sent comes out as it went in, in few blocks', () => {
  const random = seededRandom();
  const outbox = new Outbox();
  const all: Buffer[] = [];
  const memory = Buffer.alloc(400_000);
  for (const piece of pieces(3_000_000, random)) {
    all.push(piece);
    piece.copy(memory, 7);
    outbox.add(memory, 7, 7 + piece.length);
    memory.fill(0);
  }
  expect(outbox.size).toBe(3_000_000);
  const blocks = outbox.takeAll();
  expect(blocks.length).toBeLessThanOrEqual(all.length);
  expect(Buffer.concat(blocks).equals(Buffer.concat(all)), `seed ${random.seed}`).toBe(true);
  expect(outbox.size).toBe(0);
  expect(outbox.takeAll()).toEqual([]);
});

test('What waits to be sent is gathered, so that many small pieces are one write', () => {
  const outbox = new Outbox();
  for (let i = 0; i < 1_000; i++) outbox.add(Buffer.from('0123456789'), 0, 10);
  expect(outbox.takeAll()).toHaveLength(1);
});
