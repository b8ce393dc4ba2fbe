// A closed transport leaves nothing behind, however it was closed.
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Recorder } from './recorder.js';
import { kinds, type Pair } from './sockets.js';

function openFiles(): number {
  return readdirSync('/proc/self/fd').length;
}

const partings: readonly ((pair: Pair, heard: Recorder) => Promise<unknown>)[] = [
  async ({ subject, peer }, heard) => {
    subject.end();
    peer.resume().end();
    return heard.end();
  },
  async ({ subject }, heard) => {
    subject.destroy();
    return heard.end();
  },
  async ({ reset }, heard) => {
    reset();
    return heard.end();
  },
  async ({ subject, peer }, heard) => {
    peer.end('bye');
    await heard.until(() => heard.calls.includes('ended'));
    peer.resume();
    subject.end();
    return heard.end();
  },
  async ({ subject }, heard) => {
    subject.send(Buffer.alloc(8_000_000), 0, 8_000_000);
    subject.destroy();
    return heard.end();
  },
];

describe.runIf(process.platform === 'linux').each(kinds)(
  'Hundreds of connections one after the other ($name)',
  (kind) => {
    test('closed transports leave no file open', async () => {
      const cycles = ['raw, accepted', 'streams'].includes(kind.name) ? 500 : 100;
      let before = 0;
      for (let i = 0; i < cycles + 10; i++) {
        // A file that is opened once, on first use, is no leak.
        if (i === 10) before = openFiles();
        const pair = await kind.open();
        const heard = new Recorder(pair.subject);
        pair.subject.start();
        const parting = partings[i % partings.length] as (typeof partings)[number];
        await parting(pair, heard);
        if (!pair.peer.closed) {
          const gone = once(pair.peer, 'close');
          pair.peer.destroy();
          await gone;
        }
        expect(heard.count('closed')).toBe(1);
      }
      for (let i = 0; i < 10; i++) await nextTurn();
      expect(openFiles()).toBeLessThanOrEqual(before + 2);
    });
  },
);
