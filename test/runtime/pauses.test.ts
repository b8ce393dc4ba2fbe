// Work of many pools and users is done in pieces, and sockets are served in between.
import { setImmediate as nextRound } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Pauses } from '../../src/runtime/pauses.js';
import { systemClock } from '../../src/runtime/system.js';

test('several works that pause do one piece together between two looks at the sockets, each in turn', async () => {
  const spy = vi.spyOn(systemClock, 'now').mockImplementation(() => performance.now() * 1_000);
  onTestFinished(() => spy.mockRestore());
  const pieces: string[] = [];
  const work = async (name: string): Promise<void> => {
    const pauses = new Pauses();
    for (let n = 0; n < 5; n++) {
      await nextRound();
      await pauses.afterLongStep();
      pieces.push(name);
    }
  };
  const all = Promise.all(['scrape', 'page', 'export'].map(work));
  let isOver = false;
  void all.then(() => {
    isOver = true;
  });
  let most = 0;
  let before = 0;
  while (!isOver) {
    await nextRound();
    most = Math.max(most, pieces.length - before);
    before = pieces.length;
  }
  expect(most).toBe(1);
  expect(pieces.length).toBe(15);
  expect([...pieces.slice(0, 3)].sort()).toEqual(['export', 'page', 'scrape']);
});

test('short steps pause only when their time is over', () => {
  const pauses = new Pauses();
  const spy = vi.spyOn(systemClock, 'now').mockReturnValue(systemClock.now());
  onTestFinished(() => spy.mockRestore());
  expect(Array.from({ length: 1_000 }, () => pauses.afterStep()).every((pause) => pause === undefined)).toBe(
    true,
  );
});
