// The contract of transports, run for each kind.
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Transport } from '../../src/net/transport.js';
import { seededRandom } from '../support/seeded-random.js';
import { Recorder } from './recorder.js';
import { kinds, type Pair } from './sockets.js';
import { readFrom, sendThrough, writeTo } from './traffic.js';

const hello = Buffer.from('hello');

function say(transport: Transport, text: string): boolean {
  const bytes = Buffer.from(text, 'latin1');
  return transport.send(bytes, 0, bytes.length);
}

/** Sends until the kernel takes no more, which it does as long as nobody reads at the other end. */
function fill(transport: Transport): number {
  const block = Buffer.alloc(1_000_000, 'x');
  let sent = 0;
  do {
    transport.send(block, 0, block.length);
    sent += block.length;
  } while (transport.unsent < 2_000_000);
  return sent;
}

describe.each(kinds)('A transport ($name)', (kind) => {
  async function open(): Promise<Pair & { heard: Recorder }> {
    const pair = await kind.open();
    return { ...pair, heard: new Recorder(pair.subject) };
  }

  test('a transport carries bytes both ways at once, in order and complete, whatever the sizes and however slowly they are read', async () => {
    const { subject, peer, heard } = await open();
    const random = seededRandom();
    const [total, totalBack] = [12_000_000, 12_000_000];
    let isHeldUp = false;
    heard.onBytes = () => {
      if (isHeldUp || !random.chance(0.05)) return;
      isHeldUp = true;
      subject.pauseReading();
      setImmediate(() => {
        isHeldUp = false;
        subject.resumeReading();
      });
    };
    subject.start();
    const [sent, arrived, written] = await Promise.all([
      sendThrough(subject, heard, total, random),
      readFrom(peer, total, random),
      writeTo(peer, totalBack, random),
    ]);
    await heard.until(() => heard.received >= totalBack);
    expect(arrived, `seed ${random.seed}`).toEqual(sent);
    expect({ bytes: heard.received, checksum: heard.checksum }, `seed ${random.seed}`).toEqual(written);
    expect(subject.unsent).toBe(0);
  });

  test('a transport keeps what is sent although it asked to hold on, and sends it in order', async () => {
    const { subject, peer, heard } = await open();
    subject.start();
    const filled = fill(subject);
    for (let i = 0; i < 1_000; i++) expect(say(subject, `${i},`)).toBe(false);
    const tail = Array.from({ length: 1_000 }, (_, i) => `${i},`).join('');
    let text = '';
    const total = filled + tail.length;
    let bytes = 0;
    for await (const chunk of peer.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      text = (text + chunk.toString('latin1')).slice(-tail.length);
      if (bytes === total) break;
    }
    expect(text).toBe(tail);
    await heard.until(() => heard.calls.includes('drained'));
    expect(subject.unsent).toBe(0);
  });

  test('a transport says how much is unsent, and tells when nothing is', async () => {
    const { subject, peer, heard } = await open();
    subject.start();
    expect(subject.unsent).toBe(0);
    fill(subject);
    expect(subject.unsent).toBeGreaterThan(0);
    expect(heard.calls).toEqual([]);
    peer.resume();
    await heard.nextDrained();
    expect(subject.unsent).toBe(0);
    expect(say(subject, 'more')).toBe(true);
  });

  test('a transport sends nothing for no bytes', async () => {
    const { subject, peer } = await open();
    expect(subject.send(hello, 2, 2)).toBe(true);
    expect(subject.send(hello, 0, 1)).toBe(true);
    const [chunk] = await once(peer.resume(), 'data');
    expect(String(chunk)).toBe('h');
  });

  test('a transport delivers nothing before it is started', async () => {
    const { subject, peer, heard } = await open();
    peer.write('early');
    say(subject, 'answer');
    await once(peer.resume(), 'data');
    for (let i = 0; i < 10; i++) await nextTurn();
    expect(heard.received).toBe(0);
    subject.start();
    await heard.until(() => heard.received === 5);
    expect(heard.text).toBe('early');
  });

  test('a transport delivers nothing while reading is paused, and everything afterwards', async () => {
    const { subject, peer, heard } = await open();
    const random = seededRandom();
    subject.start();
    peer.write('first');
    await heard.until(() => heard.received === 5);
    subject.pauseReading();
    const writing = writeTo(peer, 3_000_000, random);
    // The other way still works, and shows that the bytes have had time to come.
    for (let i = 0; i < 20; i++) {
      say(subject, 'x');
      await once(peer.resume(), 'data');
    }
    expect(heard.received).toBe(5);
    subject.resumeReading();
    await Promise.all([writing, heard.until(() => heard.received === 3_000_005)]);
  });

  test('a transport can be paused and resumed many times in a turn', async () => {
    const { subject, peer, heard } = await open();
    subject.pauseReading();
    subject.start();
    peer.write('some');
    peer.write('thing');
    for (let i = 0; i < 10; i++) {
      subject.resumeReading();
      subject.pauseReading();
    }
    for (let i = 0; i < 10; i++) await nextTurn();
    expect(heard.received).toBe(0);
    subject.resumeReading();
    subject.resumeReading();
    await heard.until(() => heard.received === 9);
    expect(heard.text).toBe('something');
  });

  test('a transport pauses in the middle of a delivery', async () => {
    const { subject, peer, heard } = await open();
    heard.onBytes = () => subject.pauseReading();
    subject.start();
    peer.write('one');
    await heard.until(() => heard.received === 3);
    peer.write('two');
    say(subject, 'x');
    await once(peer.resume(), 'data');
    for (let i = 0; i < 10; i++) await nextTurn();
    expect(heard.text).toBe('one');
    subject.resumeReading();
    await heard.until(() => heard.received === 6);
    expect(heard.text).toBe('onetwo');
  });

  test('a transport notices while it is paused that the other side says goodbye', async () => {
    const { subject, peer, heard } = await open();
    subject.start();
    subject.pauseReading();
    peer.end();
    await heard.until(() => heard.calls.includes('ended'));
    subject.destroy();
    expect(await heard.end()).toBe(undefined);
  });

  test('a transport tells of the end after the bytes before it, however long they were held back', async () => {
    const { subject, peer, heard } = await open();
    subject.pauseReading();
    subject.start();
    peer.end('last words');
    say(subject, 'x');
    await once(peer.resume(), 'data');
    for (let i = 0; i < 10; i++) await nextTurn();
    expect(heard.calls.filter((call) => call !== 'drained')).toEqual([]);
    subject.resumeReading();
    await heard.until(() => heard.calls.includes('ended'));
    expect(heard.text).toBe('last words');
  });

  test('a transport still sends to a peer that has ended its side, and then ends in good order', async () => {
    const { subject, peer, heard } = await open();
    const random = seededRandom();
    subject.start();
    peer.end('bye');
    await heard.until(() => heard.calls.includes('ended'));
    const [sent, arrived] = await Promise.all([
      sendThrough(subject, heard, 5_000_000, random),
      readFrom(peer, 5_000_000, random),
    ]);
    expect(arrived).toEqual(sent);
    subject.end();
    expect(await heard.end()).toBe(undefined);
    expect(heard.count('ended')).toBe(1);
  });

  test('a transport says goodbye only when everything is sent', async () => {
    const { subject, peer, heard } = await open();
    const random = seededRandom();
    subject.start();
    const filled = fill(subject);
    say(subject, 'the end');
    subject.end();
    subject.end();
    expect(say(subject, 'too late')).toBe(false);
    const { bytes } = await readFrom(peer, Number.POSITIVE_INFINITY, random);
    expect(bytes).toBe(filled + 7);
    peer.end();
    expect(await heard.end()).toBe(undefined);
    expect(heard.calls).toEqual(['closed']);
  });

  test('a transport throws away what comes after its goodbye', async () => {
    const { subject, peer, heard } = await open();
    const random = seededRandom();
    subject.start();
    subject.pauseReading();
    peer.write('held back');
    subject.end();
    peer.resume();
    await once(peer, 'end');
    await writeTo(peer, 3_000_000, random);
    peer.end();
    expect(await heard.end()).toBe(undefined);
    expect(heard.calls).toEqual(['closed']);
  });

  test('a transport does not wait for ever for the other side to say goodbye', async () => {
    const { subject, peer, heard } = await open();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    subject.start();
    say(subject, 'bye');
    subject.end();
    peer.resume();
    await once(peer, 'end');
    vi.advanceTimersByTime(5_000);
    expect(await heard.end()).toBe(undefined);
  });

  test('a transport says that bytes are lost when the other side does not read them before it is given up', async () => {
    const { subject, heard } = await open();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    subject.start();
    fill(subject);
    subject.end();
    vi.advanceTimersByTime(5_000);
    expect(await heard.end()).toMatchObject({ code: 'HG_UNSENT_BYTES' });
  });

  test('a transport tells once that the other side has reset the connection, and nothing after it', async () => {
    const { subject, reset, heard } = await open();
    subject.start();
    reset();
    expect(await heard.end()).toMatchObject({ code: 'ECONNRESET' });
    subject.resumeReading();
    subject.end();
    subject.destroy(new Error('late'));
    expect(say(subject, 'late')).toBe(false);
    await nextTurn();
    expect(heard.calls.filter((call) => call !== 'drained')).toEqual(['closed']);
  });

  test('a transport tells of a reset in the middle of sending', async () => {
    const { subject, reset, heard } = await open();
    subject.start();
    fill(subject);
    reset();
    expect(await heard.end()).toBeInstanceOf(Error);
    expect(heard.count('closed')).toBe(1);
    expect(heard.calls.at(-1)).toBe('closed');
    expect(subject.unsent).toBe(0);
  });

  const states: readonly [string, (pair: Pair & { heard: Recorder }) => Promise<void>][] = [
    ['before the start', async () => {}],
    [
      'when it is idle',
      async ({ subject }) => {
        subject.start();
        await nextTurn();
      },
    ],
    [
      'with bytes held back',
      async ({ subject, peer }) => {
        subject.pauseReading();
        subject.start();
        peer.write('held back');
        say(subject, 'x');
        await once(peer.resume(), 'data');
      },
    ],
    [
      'with bytes held back that are about to be delivered',
      async ({ subject, peer }) => {
        subject.pauseReading();
        subject.start();
        peer.write('held back');
        say(subject, 'x');
        await once(peer.resume(), 'data');
        subject.resumeReading();
      },
    ],
    [
      'with bytes unsent',
      async ({ subject }) => {
        subject.start();
        fill(subject);
      },
    ],
    [
      'when the other side has said goodbye',
      async ({ subject, peer, heard }) => {
        subject.start();
        peer.end();
        await heard.until(() => heard.calls.includes('ended'));
      },
    ],
    [
      'after its own goodbye',
      async ({ subject, peer }) => {
        subject.start();
        subject.end();
        await once(peer.resume(), 'end');
      },
    ],
    [
      'during its goodbye, with bytes unsent',
      async ({ subject }) => {
        subject.start();
        fill(subject);
        subject.end();
      },
    ],
  ];

  test.each(states)('can be destroyed %s', async (_state, bring) => {
    const all = await open();
    await bring(all);
    const { subject, heard } = all;
    const before = heard.calls.filter((call) => call !== 'drained');
    const why = new Error('why');
    subject.destroy(why);
    subject.destroy(new Error('another'));
    expect(heard.calls.filter((call) => call !== 'drained')).toEqual(before);
    subject.start();
    subject.resumeReading();
    expect(await heard.end()).toBe(why);
    for (let i = 0; i < 5; i++) await nextTurn();
    expect(heard.count('closed')).toBe(1);
    expect(heard.calls.at(-1)).toBe('closed');
    expect(subject.socket.destroyed).toBe(true);
  });

  test.each(['destroy', 'end', 'pauseReading'] as const)(
    'a transport can be told to %s in the middle of a delivery',
    async (what) => {
      const { subject, peer, heard } = await open();
      heard.onBytes = () => {
        subject[what]();
        expect(heard.calls).toEqual(['bytes']);
      };
      subject.start();
      peer.end('one');
      await heard.until(() => heard.received === 3);
      if (what === 'pauseReading') subject.destroy();
      expect(await heard.end()).toBe(undefined);
    },
  );

  test('a transport reports its end at the start, if it had no listener before', async () => {
    const { subject, reset } = await kind.open();
    const gone = once(subject.socket, 'close');
    reset();
    subject.destroy();
    await gone;
    const heard = new Recorder(subject);
    await nextTurn();
    expect(heard.calls).toEqual([]);
    subject.start();
    subject.start();
    expect(heard.calls).toEqual([]);
    await heard.end();
    await nextTurn();
    expect(heard.calls).toEqual(['closed']);
  });
});
