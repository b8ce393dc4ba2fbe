// Leases on their way back to a user's own coordinator: sent as one, sent again, had again, and waited for.
import { expect, test } from 'vitest';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { watch } from '../support/outcomes.js';
import { collectUncaught } from '../support/uncaught.js';
import type { ModelHolder } from './model-holder.js';
import { scene, sceneWith, timeout } from './promised-scene.js';

test('Giving back to a coordinator sends what was given back together as one', async () => {
  const { world, calls, holders, last, leases } = await sceneWith({ a: 2, b: 1 });
  holders['a']?.want(0);
  holders['b']?.want(0);
  expect(calls).toEqual([]);
  await world.settle();
  expect(calls).toMatchObject([{ what: 'release', count: 3 }]);
  expect(leases.pending()).toBe(3);
  await last().answer();
  expect(leases.pending()).toBe(0);
});

test('Giving back to a coordinator is tried again under the same id, with growing pauses, and is reported', async () => {
  const { world, calls, failures, holders, last } = await sceneWith({ a: 1 });
  holders['a']?.want(0);
  await world.settle();
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 9; attempt++) {
    const before = world.now;
    await last().fail('down');
    const pausing = world.armed.at(-1)?.at ?? Number.NaN;
    pauses.push(pausing - before);
    await world.advance(pausing - before);
  }
  expect(pauses).toEqual([125, 250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000]);
  expect(new Set(calls.map(({ id }) => id)).size).toBe(1);
  expect(calls.every(({ what, count }) => what === 'release' && count === 1)).toBe(true);
  expect(failures).toHaveLength(9);
  expect(failures[0]?.message).toMatch(/^Giving a lease back to the coordinator failed: down\./);
});

test('Giving back to a coordinator is tried again when there is no answer in time', async () => {
  const { world, calls, holders } = await sceneWith({ a: 1 });
  holders['a']?.want(0);
  await world.advance(timeout);
  expect(calls[0]?.signal.aborted).toBe(true);
  await world.advance(125);
  expect(calls).toHaveLength(2);
  expect(calls[1]?.id).toBe(calls[0]?.id);
});

test('Giving back to a coordinator counts as done when the answer is late', async () => {
  const { world, calls, holders, leases } = await sceneWith({ a: 1 });
  holders['a']?.want(0);
  await world.advance(timeout);
  await calls[0]?.answer();
  expect(leases.pending()).toBe(0);
  await world.advance(60_000);
  expect(calls).toHaveLength(1);
});

test('Giving back to a coordinator counts as done when the answer is late, even if the next attempt fails', async () => {
  const { world, calls, holders, failures, leases } = await sceneWith({ a: 1 });
  holders['a']?.want(0);
  await world.advance(timeout + 125);
  await calls[0]?.answer();
  await calls[1]?.fail('down');
  expect(leases.pending()).toBe(0);
  expect(failures).toHaveLength(1);
  await world.advance(60_000);
  expect(calls).toHaveLength(2);
});

test('Giving back to a coordinator gathers what is given back meanwhile, and sends it under another id', async () => {
  const { world, calls, holders, last, leases } = await sceneWith({ a: 5 });
  holders['a']?.want(4);
  await world.settle();
  holders['a']?.want(3);
  await world.settle();
  holders['a']?.want(1);
  await world.settle();
  expect(calls).toHaveLength(1);
  expect(leases.pending()).toBe(4);
  await last().answer();
  expect(last()).toMatchObject({ what: 'release', count: 3 });
  expect(calls[1]?.id).not.toBe(calls[0]?.id);
});

test('Giving back to a coordinator never throws, and counts what was not held', async () => {
  const { world, leases, calls, holder } = scene();
  for (const count of [1, 2, -1, Number.NaN]) leases.release(count, holder('a'));
  await world.settle();
  expect(leases.stats()).toMatchObject({ held: 0, owed: 0, strayReleases: 3 });
  expect(calls).toEqual([]);
});

test('Giving back to a coordinator goes on when the function that is told of failures throws', async () => {
  await using uncaught = collectUncaught();
  const { world, holders, last } = await sceneWith(
    { a: 1 },
    {
      onReleaseFailed: () => {
        throw new Error('a mistake in the log');
      },
    },
  );
  holders['a']?.want(0);
  await world.settle();
  await last().fail('down');
  expect(await uncaught.next()).toBe('a mistake in the log');
  await world.advance(125);
  expect(last().what).toBe('release');
});

test('A lease that is given back is there for its pool again, without a request, until it is sent', async () => {
  const { world, calls, holders } = await sceneWith({ a: 3 });
  holders['a']?.replaceOne();
  await world.settle();
  expect([holders['a']?.held, calls.length]).toEqual([3, 0]);
});

test('A lease that is given back goes to the pool that was refused first', async () => {
  const { world, calls, holders, holder, last } = await sceneWith({ a: 1 });
  const [b, c] = [holder('b'), holder('c')];
  for (const waiting of [b, c]) {
    waiting.want(1);
    await world.settle();
    await last().answer(false);
  }
  calls.length = 0;
  holders['a']?.replaceOne();
  expect([b.held, c.held, holders['a']?.held]).toEqual([1, 0, 0]);
  expect(holders['a']?.complaints).toEqual([]);
  await world.settle();
  expect(calls.map(({ what }) => what)).toEqual(['acquire']);
});

test('A lease that is given back returns to its holder, if that waits, before it is sent', async () => {
  const { world, leases, holders, last, calls } = await sceneWith({ a: 1 });
  const a = holders['a'] as ModelHolder;
  a.want(2);
  await world.settle();
  await last().answer(false);
  calls.length = 0;
  a.held--;
  leases.release(1, a);
  expect([a.grants, a.held]).toEqual([1, 0]);
  await world.settle();
  expect([a.grants, a.held]).toEqual([2, 1]);
  expect(calls.map(({ what }) => what)).toEqual(['acquire']);
});

test('A lease that is given back keeps a pool going while the coordinator is down', async () => {
  const { world, calls, holders, last } = await sceneWith({ a: 5 });
  const a = holders['a'] as ModelHolder;
  a.want(4);
  await world.settle();
  await last().fail('down');
  for (let n = 0; n < 20; n++) {
    a.replaceOne();
    await world.settle();
  }
  expect(a.held).toBe(4);
  expect(calls.filter(({ what }) => what === 'acquire')).toEqual([]);
});

test('A lease that is given back answers a pool that the coordinator has just refused, too', async () => {
  const { world, calls, holders, holder, last, leases } = await sceneWith({ a: 2 });
  const b = holder('b');
  holders['a']?.want(1);
  await world.settle();
  b.want(1);
  await world.settle();
  holders['a']?.want(0);
  expect(leases.pending()).toBe(2);
  expect(last().what).toBe('acquire');
  await last().answer(false);
  expect([b.held, b.refusals]).toEqual([1, []]);
  expect(leases.pending()).toBe(1);
  expect(calls).toHaveLength(2);
});

/** A release has failed eight times, and the next attempt is far away. */
async function sceneOfAnOutage() {
  const scene = await sceneWith({ a: 1 });
  const { world, holders, last } = scene;
  holders['a']?.want(0);
  await world.settle();
  for (let n = 0; n < 8; n++) {
    await last().fail('down');
    await world.advance(n < 7 ? 10_000 : 0);
  }
  return scene;
}

test('flush() resolves at once when nothing is owed', async () => {
  expect(await scene().leases.flush()).toBe(0);
});

test('flush() waits until all that was given back is confirmed', async () => {
  const { world, leases, holders, last } = await sceneWith({ a: 2 });
  holders['a']?.want(0);
  const flushed = watch(leases.flush());
  await world.settle();
  expect(flushed.settled).toBe(false);
  await last().answer();
  expect(await flushed.promise).toBe(0);
  expect(world.armed).toEqual([]);
});

test('flush() waits for what is being asked, too: it may have to be given back', async () => {
  const { world, leases, holder, last } = scene();
  const a = holder('a');
  a.want(1);
  await world.settle();
  a.wants = 0;
  const flushed = watch(leases.flush());
  await last().answer(true);
  expect(flushed.settled).toBe(false);
  expect(last().what).toBe('release');
  await last().answer();
  expect(await flushed.promise).toBe(0);
});

test('flush() does not wait longer than it was told, and says how many are still owed', async () => {
  const { world, leases, holders } = await sceneWith({ a: 3 });
  holders['a']?.want(0);
  const flushed = watch(leases.flush({ timeout: '2s' }));
  await world.advance(1_999);
  expect(flushed.settled).toBe(false);
  await world.advance(1);
  expect(await flushed.promise).toBe(3);
});

test('flush() tries again at once what is waiting for its next attempt', async () => {
  const { world, leases, calls, last } = await sceneOfAnOutage();
  const before = calls.length;
  const flushed = watch(leases.flush());
  await world.settle();
  expect(calls).toHaveLength(before + 1);
  await last().answer();
  expect(await flushed.promise).toBe(0);
});

test('flush() begins with short pauses again', async () => {
  const { world, leases, calls, last } = await sceneOfAnOutage();
  const flushed = watch(leases.flush());
  await world.settle();
  await last().fail('still down');
  const before = calls.length;
  await world.advance(125);
  expect(calls).toHaveLength(before + 1);
  await last().answer();
  expect(await flushed.promise).toBe(0);
});

test('flush() waits until a request that went unanswered is cancelled', async () => {
  const { world, leases, holder, last } = scene({ canCancel: true });
  holder('a').want(1);
  await world.advance(timeout);
  const flushed = watch(leases.flush());
  await world.settle();
  expect(flushed.settled).toBe(false);
  await last().answer();
  expect(await flushed.promise).toBe(0);
});

test('flush() is all that keeps the program running', async () => {
  const { world, leases, holders, holder, last } = await sceneWith({ a: 1 });
  holders['a']?.want(0);
  await world.settle();
  holder('b').want(1);
  await world.settle();
  expect(world.armed.map((alarm) => alarm.keepsProcessAlive)).toEqual([false, false]);
  await last().fail('down');
  const flushed = watch(leases.flush());
  expect(world.armed.filter((alarm) => alarm.keepsProcessAlive)).toHaveLength(1);
  await world.advance(timeout);
  await flushed.promise;
  expect(world.armed.filter((alarm) => alarm.keepsProcessAlive)).toHaveLength(0);
});

test('flush() refuses a timeout that makes no sense', () => {
  const { leases } = scene();
  expect(() => leases.flush({ timeout: 'soon' as never })).toThrow(PoolOptionsError);
});
