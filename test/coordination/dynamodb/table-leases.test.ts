// What instances that share a budget can rely on, whatever happens to them, to their calls, and to the table.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leaseOf } from '../../../src/coordination/dynamodb/lease-items.js';
import { Fleet, keys } from './fleet.js';

describe('leases in a table', () => {
  it('are granted at once from slots in hand, and replaced without asking the table', () => {
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

  it('go to those who want them up to the limit exactly, and then in equal shares', () => {
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

  it('of a crashed instance are taken back once, after its time and the grace', () => {
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

  it('are all given back by an instance that ends in good order', () => {
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

  it('are kept through an outage of the table with hold, and all of them are shed without it', () => {
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

  it('of an instance that is cut off are closed by itself before others can use them', () => {
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

  it('of an instance that stands still until after its time, but not after the grace, are still its own', () => {
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

  it('that were taken away while the instance stood still are had again, or shed', () => {
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

  it('put a counter right that somebody has changed by hand', () => {
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

  it('never exceed the limit, and add up, whatever is killed, paused, cut off, lost, refused or repeated', () => {
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
});

/** Eight instances, five minutes, and everything that can happen. */
function storm(seed: number): Fleet {
  const fleet = new Fleet({ seed, limit: 50, skewMs: 3_600_000 });
  const { random, timeline } = fleet;
  for (let n = 0; n < 8; n++) fleet.start().want(Math.floor(random.next() * 25));
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

function act(fleet: Fleet): void {
  const { random, timeline } = fleet;
  const alive = fleet.instances.filter(({ isGone }) => !isGone);
  const one = alive[Math.floor(random.next() * alive.length)];
  if (one === undefined) return;
  const drawn = random.next();
  if (drawn < 0.3) one.want(Math.floor(random.next() * 25));
  else if (drawn < 0.6) one.deliver(() => one.pool.lend());
  else if (drawn < 0.8) one.deliver(() => one.pool.expireOne());
  else if (drawn < 0.84) {
    one.kill();
    timeline.plan(timeline.now + random.next() * 5_000, () =>
      fleet.start().want(Math.floor(random.next() * 25)),
    );
  } else if (drawn < 0.88 && !one.isPaused) {
    // Past its lease, but not past the grace: nobody can close the sockets of a process that stands still.
    one.pause();
    timeline.plan(timeline.now + random.next() * 28_000, () => one.resume());
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
