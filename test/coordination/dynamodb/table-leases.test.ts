// What instances that share a budget can rely on, whatever happens to them, to their calls, and to the table.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { leaseOf } from '../../../src/coordination/dynamodb/lease-items.js';
import { numberOf } from '../../../src/coordination/dynamodb/table.js';
import { Fleet, type Instance, keys } from './fleet.js';

test('leases in a table are granted at once from slots in hand, and replaced without asking the table', () => {
  const fleet = new Fleet({ seed: 1, limit: 100 });
  const one = fleet.start();
  one.want(20);
  fleet.run(5_000);
  expect(one.pool.size).toBe(20);
  const { writes } = fleet.table;
  for (let n = 0; n < 200; n++) {
    one.deliver(() => one.pool.expireOne());
    fleet.run(100);
  }
  expect(one.pool.size).toBe(20);
  // Renewals, and what was looked through, in 20 s: not one for a connection.
  expect(fleet.table.writes - writes).toBeLessThan(15);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table are kept for a while by an instance that needs fewer, and had again without asking the table', () => {
  const fleet = new Fleet({ seed: 13, limit: 200 });
  const one = fleet.start();
  one.want(50);
  fleet.run(60_000);
  const version = numberOf(fleet.table.get(keys.counter), 'version');
  for (let n = 0; n < 5; n++) {
    one.want(5);
    fleet.run(60_000);
    one.want(50);
    fleet.run(5_000);
    expect(one.pool.size).toBe(50);
  }
  // Not one slot has moved.
  expect(numberOf(fleet.table.get(keys.counter), 'version')).toBe(version);
  one.want(5);
  fleet.run(15 * 60_000);
  expect(fleet.active).toBeLessThan(5 + 20);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table are not kept when more than nine tenths are in use, so that newcomers find some', () => {
  const fleet = new Fleet({ seed: 14, limit: 100 });
  const [a, b] = [fleet.start(), fleet.start()] as const;
  a.want(60);
  fleet.run(10_000);
  a.want(5);
  fleet.run(60_000);
  expect(fleet.active).toBeGreaterThanOrEqual(60);
  b.want(35);
  fleet.run(10_000);
  expect(b.pool.size).toBe(35);
  // Leases in use, and a block at most.
  expect(a.leases.stats().owned).toBeLessThanOrEqual(5 + 20);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table are fetched in few calls by an instance that grows slowly, and never waited for', () => {
  const fleet = new Fleet({ seed: 15, limit: 1_000 });
  const one = fleet.start();
  one.want(1);
  fleet.run(10_000);
  const before = numberOf(fleet.table.get(keys.counter), 'version');
  for (let n = 2; n <= 200; n++) {
    one.want(n);
    fleet.run(2_000);
    expect(one.pool.size).toBe(n);
  }
  expect(numberOf(fleet.table.get(keys.counter), 'version') - before).toBeLessThan(200 / 5);
});

test('leases in a table go to instances that want them up to the limit exactly, and then in equal shares', () => {
  const fleet = new Fleet({ seed: 2, limit: 100 });
  const [a, b, c] = [fleet.start(), fleet.start(), fleet.start()] as const;
  a.want(100);
  fleet.run(10_000);
  expect(a.pool.size).toBe(100);
  b.want(60);
  c.want(10);
  fleet.run(60_000);
  expect([a.pool.size, b.pool.size, c.pool.size]).toEqual([45, 45, 10]);
  b.want(5);
  fleet.run(60_000);
  expect([a.pool.size, b.pool.size, c.pool.size]).toEqual([85, 5, 10]);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table are waited for with one request, which is granted when a slot is free', () => {
  const fleet = new Fleet({ seed: 16, limit: 10 });
  const [a, b] = [fleet.start(), fleet.start()] as const;
  a.want(10);
  fleet.run(5_000);
  b.want(0, 3);
  fleet.run(10 * 60_000);
  expect([a.pool.size, b.pool.size]).toEqual([10, 0]);
  expect([b.pool.waits, b.pool.refusals]).toEqual([1, 0]);
  a.want(8);
  fleet.run(30_000);
  expect([a.pool.size, b.pool.size]).toEqual([8, 2]);
  // At most one more for each lease that it got.
  expect(b.pool.waits).toBeLessThanOrEqual(3);
  expect(b.pool.refusals).toBe(0);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table that are waited for are refused when all are given back for good', () => {
  const fleet = new Fleet({ seed: 17, limit: 1 });
  const [a, b] = [fleet.start(), fleet.start()] as const;
  a.want(1);
  fleet.run(5_000);
  b.want(0, 1);
  fleet.run(5_000);
  expect(b.leases.stats().waiting).toBe(1);
  b.deliver(() => b.leases.end(() => {}));
  expect(b.pool.refusals).toBe(1);
});

test('leases in a table go round when there are more instances than slots: each has its turn, in the order of waiting', () => {
  const fleet = new Fleet({ seed: 10, limit: 10 });
  const instances = Array.from({ length: 30 }, () => fleet.start());
  for (const instance of instances) instance.want(3);
  fleet.run(30_000);
  const turns = turnsDuring(fleet, instances, 120_000);
  // 30 instances share what 10 have at a time: a third of the time each, and no one twice before all others once.
  expect(Math.min(...turns)).toBeGreaterThan(0);
  expect(Math.max(...turns) - Math.min(...turns)).toBeLessThanOrEqual(2);
  // Slots go from hand to hand, and are not left lying about.
  expect(fleet.meanSockets).toBeGreaterThan(0.6 * 10);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table stay with their holders when no holder without a lease wants one', () => {
  const fleet = new Fleet({ seed: 11, limit: 10 });
  const instances = Array.from({ length: 10 }, () => fleet.start());
  for (const instance of instances) instance.want(3);
  fleet.run(30_000);
  fleet.start();
  expect(instances.map(({ pool }) => pool.size)).toEqual(Array(10).fill(1));
  expect(turnsDuring(fleet, instances, 60_000)).toEqual(Array(10).fill(0));
  expect(fleet.problems).toEqual([]);
});

test('leases in a table come to a waiting instance although the instance that has had its slot for longest keeps it', () => {
  const fleet = new Fleet({ seed: 12, limit: 4, longestLoanMs: 1e9 });
  const [stuck, ...others] = Array.from({ length: 4 }, () => fleet.start()) as [Instance, ...Instance[]];
  stuck.want(1);
  fleet.run(2_000);
  stuck.deliver(() => stuck.pool.lend());
  for (const instance of others) instance.want(1);
  fleet.run(10_000);
  const late = fleet.start();
  late.want(1);
  const [turns] = turnsDuring(fleet, [late], 60_000);
  expect(turns).toBeGreaterThan(0);
  expect(stuck.pool.inUse).toBe(1);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table go round among any number of instances, whatever goes wrong with their calls', () => {
  fc.assert(
    fc.property(
      fc.record({
        seed: fc.integer({ min: 1, max: 1e9 }),
        limit: fc.integer({ min: 1, max: 8 }),
        more: fc.integer({ min: 1, max: 16 }),
      }),
      ({ seed, limit, more }) => {
        const fleet = new Fleet({ seed, limit, skewMs: 3_600_000 });
        fleet.faults = { lostRequests: 0.01, lostReplies: 0.02, conflicts: 0.05, throttles: 0.02 };
        const instances = Array.from({ length: limit + more }, () => fleet.start());
        for (const instance of instances) instance.want(1 + Math.floor(fleet.random.next() * 3));
        fleet.run(20_000);
        // A turn and the way to the next take some ten seconds, should a call be lost.
        const rounds = Math.ceil(instances.length / limit);
        const turns = turnsDuring(fleet, instances, 4 * rounds * 10_000);
        expect(Math.min(...turns)).toBeGreaterThan(0);
        expect(fleet.problems).toEqual([]);
      },
    ),
    { numRuns: Number(process.env['HEADGATE_RUNS'] ?? 12) },
  );
});

test('leases in a table of a crashed instance are taken back once, after its time and the grace', () => {
  const fleet = new Fleet({ seed: 3, limit: 50 });
  const [a, b] = [fleet.start(), fleet.start()] as const;
  a.want(40);
  fleet.run(5_000);
  b.want(50);
  fleet.run(30_000);
  a.kill();
  fleet.run(25_000);
  expect(fleet.reclaims).toEqual([]);
  fleet.run(60_000);
  expect(b.pool.size).toBe(50);
  expect(fleet.reclaims.length).toBe(1);
  expect(fleet.active).toBe(fleet.slots);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table are all given back by an instance that ends in good order', () => {
  const fleet = new Fleet({ seed: 4, limit: 50 });
  const a = fleet.start();
  a.want(30);
  fleet.run(5_000);
  let isEnded = false;
  a.want(0);
  a.deliver(() => a.leases.end(() => (isEnded = true)));
  fleet.run(5_000);
  expect(isEnded).toBe(true);
  expect(fleet.active).toBe(0);
  expect(fleet.table.list(keys.leases)).toEqual([]);
});

test('leases in a table are kept through an outage of the table with hold, and all of them are shed without it', () => {
  for (const [onCoordinatorLoss, left] of [
    ['hold', 20],
    ['shed', 0],
    ['localShare', 6],
  ] as const) {
    const fleet = new Fleet({ seed: 5, limit: 50, settings: { onCoordinatorLoss, localShare: 6 } });
    const [a, b] = [fleet.start(), fleet.start()] as const;
    a.want(20);
    b.want(20);
    fleet.run(5_000);
    fleet.isTableDown = true;
    fleet.run(120_000);
    expect([a.pool.size, b.pool.size]).toEqual([left, left]);
    expect(a.leases.stats().state).toBe('lost');
    fleet.isTableDown = false;
    fleet.run(30_000);
    expect([a.pool.size, b.pool.size]).toEqual([20, 20]);
    expect(fleet.reclaims).toEqual([]);
    expect(a.leases.stats().state).toBe('ok');
    expect(fleet.problems).toEqual([]);
  }
});

test('leases in a table of an instance that is cut off are closed by itself before others can use them', () => {
  const fleet = new Fleet({ seed: 8, limit: 50, longestLoanMs: 5_000 });
  const [a, b] = [fleet.start(), fleet.start()] as const;
  a.want(50);
  fleet.run(5_000);
  b.want(50);
  a.isCutOff = true;
  for (let n = 0; n < 1_000; n++) {
    a.deliver(() => a.pool.lend());
    fleet.run(100);
  }
  expect([a.pool.size, b.pool.size]).toEqual([0, 50]);
  expect(fleet.peakSockets).toBe(50);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table of an instance that stands still until after its time, but not after the grace, are still its own', () => {
  const fleet = new Fleet({ seed: 9, limit: 50 });
  const [a, b] = [fleet.start(), fleet.start()] as const;
  a.want(50);
  fleet.run(5_000);
  b.want(50);
  a.pause();
  fleet.run(34_000);
  expect(b.pool.size).toBe(0);
  a.resume();
  fleet.run(60_000);
  expect([a.pool.size, b.pool.size]).toEqual([25, 25]);
  expect(fleet.reclaims).toEqual([]);
  expect(fleet.problems).toEqual([]);
});

test('leases in a table that were taken away while the instance stood still are had again, or shed', () => {
  const fleet = new Fleet({ seed: 6, limit: 50, settings: { onCoordinatorLoss: 'hold' } });
  const [a, b] = [fleet.start(), fleet.start()] as const;
  a.want(40);
  fleet.run(5_000);
  a.pause();
  b.want(30);
  fleet.run(100_000);
  expect(b.pool.size).toBe(30);
  fleet.problems.length = 0;
  a.resume();
  fleet.run(60_000);
  expect(a.pool.size + b.pool.size).toBe(50);
  expect([a.pool.size, b.pool.size]).toEqual([25, 25]);
  expect(fleet.active).toBe(fleet.slots);
});

test('leases in a table correct a counter that was changed by hand', () => {
  const fleet = new Fleet({ seed: 7, limit: 50 });
  const a = fleet.start();
  a.want(20);
  fleet.run(5_000);
  fleet.table.apply([{ key: keys.counter, set: { active: 3 } }]);
  fleet.run(60_000);
  expect(fleet.active).toBe(fleet.slots);
  a.want(0);
  fleet.run(60_000);
  expect(fleet.active).toBe(fleet.slots);
});

test('leases in a table never exceed the limit, and add up, whatever is killed, paused, cut off, lost, refused or repeated', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e9 }), (seed) => {
      const fleet = storm(seed);
      expect(fleet.problems).toEqual([]);
      // After the storm, within the time of a lease and the grace, nobody holds what no one uses.
      fleet.run(60_000);
      const alive = new Set(fleet.instances.filter(({ isGone }) => !isGone).map(({ name }) => name));
      const leases = fleet.table.list(keys.leases).map(leaseOf);
      expect(leases.filter(({ instance }) => !alive.has(instance))).toEqual([]);
      expect(fleet.active).toBe(leases.reduce((sum, { slots }) => sum + slots, 0));
      expect(fleet.problems).toEqual([]);
    }),
    { numRuns: Number(process.env['HEADGATE_RUNS'] ?? 12) },
  );
});

/** How often each has been given its first slot. Connections are taken now and then meanwhile. */
function turnsDuring(fleet: Fleet, instances: readonly Instance[], ms: number): number[] {
  const turns = instances.map(() => 0);
  let had = instances.map(({ pool }) => pool.held > 0);
  for (const end = fleet.timeline.now + ms; fleet.timeline.now < end; ) {
    for (const one of instances) if (fleet.random.next() < 0.01) one.deliver(() => one.pool.lend());
    fleet.run(20);
    const has = instances.map(({ pool }) => pool.held > 0);
    for (const [n, isNow] of has.entries()) if (isNow && !had[n]) turns[n] = (turns[n] as number) + 1;
    had = has;
  }
  return turns;
}

/** Eight instances, five minutes, and everything that can happen. */
function storm(seed: number): Fleet {
  const fleet = new Fleet({ seed, limit: 50, skewMs: 3_600_000 });
  const { random, timeline } = fleet;
  for (let n = 0; n < 8; n++) wantAnything(fleet.start());
  fleet.faults = { lostRequests: 0.03, lostReplies: 0.05, conflicts: 0.1, throttles: 0.05 };
  const end = timeline.now + 300_000;
  while (timeline.now < end) {
    fleet.run(random.next() * 1_000);
    act(fleet);
  }
  fleet.faults = { lostRequests: 0, lostReplies: 0, conflicts: 0, throttles: 0 };
  fleet.isTableDown = false;
  for (const instance of fleet.instances) {
    instance.isCutOff = false;
    instance.resume();
  }
  return fleet;
}

/** For callers, to be ready, or both; and for some number of users. */
function wantAnything(instance: Instance): void {
  const { random } = instance.fleet;
  const count = (): number => Math.floor(random.next() * 25);
  instance.pool.claimants = 1 + Math.floor(random.next() * 3);
  if (random.next() < 0.5) instance.want(count());
  else instance.want(Math.floor(random.next() * 8), count());
}

function act(fleet: Fleet): void {
  const { random, timeline } = fleet;
  const alive = fleet.instances.filter(({ isGone }) => !isGone);
  const one = alive[Math.floor(random.next() * alive.length)];
  if (one === undefined) return;
  const drawn = random.next();
  if (drawn < 0.3) wantAnything(one);
  else if (drawn < 0.6) one.deliver(() => one.pool.lend());
  else if (drawn < 0.8) one.deliver(() => one.pool.expireOne());
  else if (drawn < 0.84) {
    one.kill();
    timeline.plan(timeline.now + random.next() * 5_000, () => wantAnything(fleet.start()));
  } else if (drawn < 0.88 && !one.isPaused) {
    // Past its lease, but not past the grace: nobody can close the sockets of a process that stands still.
    one.pause();
    timeline.plan(timeline.now + random.next() * (one.leaseLeftMs + 7_000), () => one.resume());
  } else if (drawn < 0.92 && !one.isCutOff) {
    one.isCutOff = true;
    timeline.plan(timeline.now + random.next() * 90_000, () => {
      one.isCutOff = false;
    });
  } else if (drawn < 0.925 && !fleet.isTableDown) {
    fleet.isTableDown = true;
    timeline.plan(timeline.now + random.next() * 60_000, () => {
      fleet.isTableDown = false;
    });
  }
}
