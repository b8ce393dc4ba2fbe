// Leases out of a user's own functions: what is asked of a coordinator, what it answers, and who is told.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LeaseCoordinatorError, LeaseLimitError } from '../../src/coordination/errors.js';
import { leasesFrom } from '../../src/coordination/promised-leases.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { ModelHolder } from './model-holder.js';
import { type SceneOptions, scene, sceneWith, timeout } from './promised-scene.js';

test('Asking a coordinator answers at once that it is being asked, and later grants the lease', async () => {
  const { world, leases, calls, holder, last } = scene();
  const orders = holder('orders');
  orders.want(1);
  expect([orders.isAsking, calls.length]).toEqual([true, 0]);
  await world.settle();
  expect(last()).toMatchObject({ what: 'acquire', count: 1 });
  expect(leases.stats()).toMatchObject({ held: 0, asking: 1 });
  await last().answer(true);
  expect([orders.held, calls.length]).toEqual([1, 1]);
  expect(leases.stats()).toMatchObject({ held: 1, asking: 0, owed: 0 });
  expect(world.armed).toEqual([]);
});

test('Asking a coordinator asks once, however often the holder does before there is an answer', async () => {
  const { world, leases, calls, holder } = scene();
  const orders = holder('orders');
  for (let n = 0; n < 5; n++) expect(leases.acquire(1, orders)).toBe('asking');
  await world.settle();
  expect(calls).toHaveLength(1);
});

test('Asking a coordinator waits when the coordinator says no, and is told why', async () => {
  const { world, holder, last } = scene();
  const orders = holder('orders');
  orders.want(1);
  await world.settle();
  await last().answer(false);
  expect(orders.delays[0]).toBeInstanceOf(LeaseLimitError);
  expect(orders.delays[0]).toMatchObject({ code: 'HG_LEASE_LIMIT', asked: 1, held: 0, limit: undefined });
  expect(orders.refusals).toEqual([]);
  expect(orders.delays[0]?.message).toMatch(/no lease left: orders asked for 1, and this process holds 0/);
});

test('Asking a coordinator is refused with the cause when the coordinator fails', async () => {
  const { world, holder, last } = scene();
  const orders = holder('orders');
  orders.want(1);
  await world.settle();
  await last().fail('connection refused');
  const [error] = orders.refusals;
  expect(error).toBeInstanceOf(LeaseCoordinatorError);
  expect(error).toMatchObject({ code: 'HG_LEASE_COORDINATOR', cause: new Error('connection refused') });
  expect(error?.message).toMatch(
    /^Asking the coordinator for a lease for orders failed: connection refused\./,
  );
});

test.each([
  ['throws at once', () => Promise.reject(new Error('thrown')), /failed: thrown/],
  [
    'throws synchronously',
    () => {
      throw new Error('thrown');
    },
    /failed: thrown/,
  ],
  ['answers with nothing', async () => undefined, /must answer true or false, but answered undefined/],
  ['answers with a number', async () => 1, /must answer true or false, but answered 1/],
])('Asking a coordinator is refused when the function %s', async (_how, acquire, message) => {
  const { world, leases, holder } = scene({ acquire: acquire as never });
  const orders = holder('orders');
  orders.want(1);
  await world.settle();
  expect(orders.refusals[0]).toBeInstanceOf(LeaseCoordinatorError);
  expect(orders.refusals[0]?.message).toMatch(message);
  expect(leases.stats()).toMatchObject({ held: 0, asking: 0, owed: 0 });
});

test('Asking a coordinator is refused, and its signal fires, when there is no answer in time', async () => {
  const { world, holder, last } = scene();
  const orders = holder('orders');
  orders.want(1);
  await world.advance(timeout - 1);
  expect([last().signal.aborted, orders.refusals]).toEqual([false, []]);
  await world.advance(1);
  expect(last().signal.aborted).toBe(true);
  expect(orders.refusals[0]).toBeInstanceOf(LeaseCoordinatorError);
  expect(orders.refusals[0]?.message).toMatch(/took longer than 5s/);
});

test('Asking a coordinator gives a lease back that comes after that', async () => {
  const { world, leases, holder, last } = scene();
  const orders = holder('orders');
  orders.want(1);
  await world.advance(timeout);
  await last().answer(true);
  expect(last()).toMatchObject({ what: 'release', count: 1 });
  expect(orders.held).toBe(0);
  await last().answer();
  expect(leases.pending()).toBe(0);
});

test('Asking a coordinator gives a lease back that its holder does not want any more', async () => {
  const { world, holder, last } = scene();
  const orders = holder('orders');
  orders.want(1);
  await world.settle();
  orders.mood = 'uninterested';
  await last().answer(true);
  expect(last()).toMatchObject({ what: 'release', count: 1 });
});

test('Asking a coordinator never tells a holder anything from inside its own call', async () => {
  const { world, leases, holder } = scene({ acquire: async () => true });
  const orders = holder('orders');
  orders.want(3);
  await world.settle();
  leases.lost(1);
  orders.want(0);
  await world.settle();
  expect(orders.complaints).toEqual([]);
});

/** `a` holds two; `b` and `c` wait. */
async function twoWait(options: SceneOptions = {}) {
  const made = await sceneWith({ a: 2 }, options);
  const { world, holder, last, calls } = made;
  const [b, c] = [holder('b'), holder('c')];
  for (const waiting of [b, c]) {
    waiting.want(1);
    await world.settle();
    await last().answer(false);
  }
  calls.length = 0;
  return { ...made, a: made.holders['a'] as ModelHolder, b, c };
}

test('A request that a coordinator has nothing for is repeated as soon as the coordinator has confirmed that it has more to give, one for each lease', async () => {
  const { world, calls, holders, holder, last } = await sceneWith({ a: 2 });
  const [b, c] = [holder('b'), holder('c')];
  holders['a']?.want(1);
  await world.settle();
  const release = last();
  for (const waiting of [b, c]) {
    waiting.want(1);
    await world.settle();
    await last().answer(false);
  }
  await release.answer();
  expect(calls.map(({ what }) => what)).toEqual(['release', 'acquire', 'acquire', 'acquire']);
  await last().answer(true);
  expect([b.held, c.held]).toEqual([1, 0]);
  expect([b.delays.length, c.delays.length]).toEqual([1, 1]);
});

test('A request that a coordinator has nothing for is repeated after a backoff, one for all, until it is granted', async () => {
  const { world, calls, last, b, c } = await twoWait();
  // Both have been denied by now: the first pause is that after two failures.
  for (const pause of [100, 200, 400]) {
    await world.advance(pause - 1);
    expect(calls).toHaveLength(0);
    await world.advance(1);
    expect(calls).toHaveLength(1);
    if (pause === 400) break;
    await last().answer(false);
    calls.length = 0;
  }
  await last().answer(true);
  expect([b.held, c.held, b.delays.length, c.delays.length]).toEqual([1, 0, 1, 1]);
  // There may be more.
  await last().answer(true);
  expect(c.held).toBe(1);
  expect(world.armed).toEqual([]);
});

test('A request that a coordinator has nothing for is granted a lease of this process while the coordinator is asked', async () => {
  const { world, leases, calls, last, a, b, c } = await twoWait();
  await world.advance(200);
  expect(calls).toHaveLength(1);
  a.want(1);
  expect(b.held).toBe(1);
  await last().answer(true);
  expect([b.held, c.held]).toEqual([1, 1]);
  expect(leases.stats()).toMatchObject({ held: 3, owed: 0, waiting: 0 });
});

test('A request that a coordinator has nothing for is void when its holder has no need any more, and the coordinator is not asked', async () => {
  const { world, leases, calls, b, c } = await twoWait();
  for (const waiting of [b, c]) {
    waiting.wants = 0;
    waiting.tellsDemand = true;
  }
  await world.advance(60_000);
  expect(calls).toEqual([]);
  expect([b.tellings, c.tellings]).toEqual([1, 1]);
  expect(leases.stats().waiting).toBe(0);
  expect(world.armed).toEqual([]);
});

test('A request that a coordinator has nothing for becomes the business of its holder when the coordinator fails', async () => {
  const { world, leases, last, b, c } = await twoWait();
  await world.advance(200);
  await last().fail('down');
  expect([b.refusals.length, c.refusals.length]).toEqual([1, 0]);
  await last().fail('down');
  expect([b.refusals.length, c.refusals.length]).toEqual([1, 1]);
  expect(leases.stats()).toMatchObject({ waiting: 0, asking: 0 });
});

test('A request that a coordinator has nothing for of a holder that does not want the lease leaves it to the next', async () => {
  const { world, calls, holders, holder, last } = await sceneWith({ a: 2 });
  const [b, c] = [holder('b'), holder('c')];
  holders['a']?.want(1);
  await world.settle();
  const release = last();
  for (const waiting of [b, c]) {
    waiting.want(1);
    await world.settle();
    await last().answer(false);
  }
  b.mood = 'uninterested';
  await release.answer();
  await last().answer(true);
  expect([b.held, c.held]).toEqual([0, 1]);
  expect(calls.filter(({ what }) => what === 'release')).toHaveLength(1);
});

test('A request that a coordinator has nothing for is repeated when another got a lease: there may be more', async () => {
  const { world, last, b, c, holder } = await twoWait();
  const other = holder('other');
  other.want(1);
  await world.settle();
  await last().answer(true);
  expect([other.held, b.held, c.held]).toEqual([1, 0, 0]);
  await last().answer(true);
  expect([b.held, c.held]).toEqual([1, 0]);
  await last().answer(false);
  expect([c.held, c.delays.length]).toEqual([0, 1]);
});

test('A request that a coordinator has no lease for gets one that the holder before it does not want', async () => {
  const { a, b, c } = await twoWait();
  b.mood = 'uninterested';
  a.want(1);
  expect([b.held, c.held]).toEqual([0, 1]);
});

test('A request that a coordinator has no lease for is not overtaken by a holder that asks while the request is answered', async () => {
  const { a, b, holder } = await twoWait();
  const late = holder('late');
  b.onTold = () => late.want(1);
  a.want(1);
  expect([b.held, late.held]).toEqual([1, 0]);
});

test('A request that a coordinator has nothing for is asked for again when the no was older than what has been given back since', async () => {
  const { world, calls, holders, holder, leases } = await sceneWith({ a: 1 });
  const b = holder('b');
  holders['a']?.want(0);
  await world.settle();
  b.want(1);
  await world.settle();
  const [release, acquire] = calls;
  await release?.answer();
  await acquire?.answer(false);
  expect(b.refusals).toEqual([]);
  expect(calls).toHaveLength(3);
  await calls[2]?.answer(true);
  expect(b.held).toBe(1);
  expect(leases.stats().waiting).toBe(0);
});

test('A request that may or may not have taken effect is cancelled under its own id until that is confirmed, where the coordinator can', async () => {
  const { world, leases, calls, holder, last } = scene({ canCancel: true });
  const a = holder('a');
  a.want(1);
  await world.settle();
  await last().fail('reset');
  expect(last()).toMatchObject({ what: 'cancel', count: 1, id: calls[0]?.id });
  expect(leases.pending()).toBe(1);
  await last().fail('reset');
  await world.advance(125);
  expect(last()).toMatchObject({ what: 'cancel', id: calls[0]?.id });
  expect(calls).toHaveLength(3);
  await last().answer();
  expect(leases.pending()).toBe(0);
});

test('A request that may or may not have taken effect is not a lease any more, whatever it answers after its time', async () => {
  const { world, leases, calls, holder, last } = scene({ canCancel: true });
  holder('a').want(1);
  await world.advance(timeout);
  expect(last().what).toBe('cancel');
  await calls[0]?.answer(true);
  await last().answer();
  expect(calls).toHaveLength(2);
  expect(leases.stats()).toMatchObject({ held: 0, owed: 0 });
});

test('A request that may or may not have taken effect turns its holder away until then, and tells it afterwards', async () => {
  const { world, calls, holder, last } = scene({ canCancel: true });
  const a = holder('a');
  a.want(1);
  await world.settle();
  await last().fail('reset');
  a.isRefused = false;
  a.pump();
  expect(a.refusals[1]).toBeInstanceOf(LeaseCoordinatorError);
  expect(a.refusals[1]?.message).toMatch(/not confirmed yet that it is void/);
  expect(calls).toHaveLength(2);
  await last().answer();
  await last().answer(true);
  expect(a.held).toBe(1);
});

test('Leases that a coordinator takes away are those of the pool that was given one last', async () => {
  const { leases, holders } = await sceneWith({ a: 2, b: 2, c: 1 });
  const { a, b, c } = holders as Record<'a' | 'b' | 'c', ModelHolder>;
  for (const each of [a, b, c]) each.onTold = () => (each.wants = each.held);
  leases.lost(2);
  expect([a.held, b.held, c.held]).toEqual([2, 1, 0]);
  expect(leases.stats().held).toBe(3);
});

test('A coordinator that takes leases away takes unused ones first', async () => {
  const { world, leases, calls, holders } = await sceneWith({ a: 3 });
  holders['a']?.want(1);
  leases.lost(2);
  await world.settle();
  expect([holders['a']?.held, holders['a']?.lost]).toEqual([1, 0]);
  expect(calls).toEqual([]);
  expect(leases.pending()).toBe(0);
});

test('Leases that a coordinator takes away can be more than there are', async () => {
  const { leases, holders } = await sceneWith({ a: 1 });
  (holders['a'] as ModelHolder).onTold = () => ((holders['a'] as ModelHolder).wants = 0);
  leases.lost(100);
  expect(leases.stats().held).toBe(0);
  for (const count of [0, -1, 0.5, Number.NaN]) expect(() => leases.lost(count)).toThrow(RangeError);
});

test('Leases that a coordinator takes away are not reported to a holder from inside its own call', async () => {
  const { world, leases, holders, holder, last } = await sceneWith({ a: 2 });
  const a = holders['a'] as ModelHolder;
  const b = holder('b');
  b.want(1);
  await world.settle();
  await last().answer(false);
  b.onTold = () => leases.lost(2);
  a.want(1);
  expect([a.held, a.lost]).toEqual([1, 0]);
  await world.settle();
  expect(a.lost + b.lost).toBe(2);
  expect(a.complaints).toEqual([]);
});

test('leasesFrom() refuses options that make no sense, all at once', () => {
  const make = () => leasesFrom({ acquire: 1, relaese: 2, timeout: 0, alarm: {}, clock: {} } as never);
  expect(make).toThrow(PoolOptionsError);
  expect(make).toThrow(
    /timeout: is 0 ms.*acquire: must be a function.*release: is missing.*clock: must be.*alarm: must be.*relaese: is not/s,
  );
});

test('leasesFrom() gives every request an id that no other has', async () => {
  await fc.assert(
    fc.asyncProperty(fc.infiniteStream(fc.double({ min: 0, max: 0.999_999, noNaN: true })), async (draws) => {
      const random = { next: () => draws.next().value as number };
      const { world, calls, holder, leases } = scene({ random, timeout: '1s' });
      const a = holder('a');
      for (let n = 0; n < 5; n++) {
        leases.acquire(1, a);
        await world.settle();
        await calls.at(-1)?.fail('down');
      }
      expect(new Set(calls.map(({ id }) => id)).size).toBe(5);
    }),
    { numRuns: 10 },
  );
});

test('leasesFrom() works in real time without being given any', async () => {
  let free = 1;
  const leases = leasesFrom({
    acquire: async (count) => {
      if (count > free) return false;
      free -= count;
      return true;
    },
    release: async (count) => {
      free += count;
    },
  });
  const a = new ModelHolder('a', leases);
  const told = new Promise((resolve) => {
    a.onTold = resolve;
  });
  a.want(1);
  await told;
  expect([a.held, free]).toEqual([1, 0]);
  a.want(0);
  expect(await leases.flush()).toBe(0);
  expect(free).toBe(1);
});
