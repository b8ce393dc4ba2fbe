// Each law is noticed when it is broken: an engine, a server or a coordinator with a mistake is put in, and found out.
import { expect, test } from 'vitest';
import { ConnectionPool, type PoolParts } from '../../src/core/connection-pool.js';
import type { Dialer } from '../../src/core/dialer.js';
import type { PoolCounts } from '../../src/core/pool-counts.js';
import type { PoolStats } from '../../src/core/pool-stats.js';
import type { PooledConnection } from '../../src/core/pooled-connection.js';
import type { Waiter } from '../../src/core/waiters.js';
import { Laws } from '../../src/simulator/laws.js';
import type { ServiceProcess } from '../../src/simulator/process/service-process.js';
import type { LawBreach } from '../../src/simulator/result.js';
import type { Session } from '../../src/simulator/server/session.js';
import { simulateWith } from '../../src/simulator/simulate.js';
import { Timeline } from '../../src/simulator/time/timeline.js';
import type { Sabotage } from '../../src/simulator/world.js';
import { callers, type SmallScenario, scenario, service, services } from './small-worlds.js';

const busy = callers({ fromMs: 1_000, perSecond: 20, hold: { kind: 'fixed', ms: 100 }, maxWaitMs: 2_000 });
const coordinator = { leaseLimit: 15, latency: { kind: 'fixed', ms: 4 }, timeoutMs: 500 } as const;

function breachesOf(sabotage: Sabotage, changes: SmallScenario = {}): readonly LawBreach[] {
  const plan = scenario({
    durationMs: 20_000,
    services: [
      service(
        'orders',
        { max: 10, reservoir: { baseLifetime: 8_000, lifetimeJitter: 4_000, guardWindow: 500 } },
        busy,
      ),
    ],
    ...changes,
  });
  expect(simulateWith(plan, {}, {}).laws).toEqual([]);
  const result = simulateWith(plan, {}, sabotage);
  expect(result.passed).toBe(result.laws.length === 0);
  return result.laws;
}

function broken(sabotage: Sabotage, changes?: SmallScenario): string[] {
  return breachesOf(sabotage, changes).map(({ law }) => law);
}

class Pool extends ConnectionPool<Session> {}

/** An engine whose dialer is not quite what it asked for. */
function dialingWith(
  change: (dialer: Dialer<Session>, pool: () => Pool) => Partial<Dialer<Session>>,
): Sabotage {
  return {
    makePool: (parts) => {
      let pool: Pool | undefined;
      const { dialer } = parts;
      const same: Dialer<Session> = {
        dial: (dial) => dialer.dial(dial),
        abandon: (dial) => dialer.abandon(dial),
        close: (pooled) => dialer.close(pooled),
        destroy: (pooled) => dialer.destroy(pooled),
        check: (pooled) => dialer.check(pooled),
      };
      pool = new Pool({ ...parts, dialer: { ...same, ...change(dialer, () => pool as Pool) } });
      return pool;
    },
  };
}

test('a breach says which law, when, where, and with what numbers; and only the first of its kind is told', () => {
  const breaches = breachesOf({
    makePool: (parts) =>
      new (class extends Pool {
        override counts(): PoolCounts {
          return { ...super.counts(), limit: 9 };
        }
      })(parts),
  });
  expect(breaches).toEqual([
    {
      law: 'never over the limit',
      atMs: expect.any(Number),
      service: 'orders',
      message: expect.stringMatching(/^10 of 9; \{"limit":9,"pending":\d+,/),
    },
  ]);
  expect(breaches[0]?.atMs).toBeLessThan(1_000);
});

test('an engine that opens more than its limit', () => {
  class TooMany extends Pool {
    constructor(parts: PoolParts<Session>) {
      super({ ...parts, policy: { ...parts.policy, max: 12, minIdle: 12 } });
    }
    override counts(): PoolCounts {
      return { ...super.counts(), limit: 10 };
    }
  }
  expect(broken({ makePool: (parts) => new TooMany(parts) })).toEqual(['never over the limit']);
});

test('an engine that takes a connection for gone while its socket still exists', () => {
  const forgetful = dialingWith((_dialer, pool) => ({
    close: (pooled: PooledConnection<Session>) => pool().closed(pooled),
  }));
  const laws = broken(forgetful);
  expect(laws).toContain('never over the limit');
  expect(laws).toContain('counts are true');
  expect(laws).toContain('every approval and every lease ends once');
});

test('an engine whose counts do not add up', () => {
  class Miscounting extends Pool {
    override counts(): PoolCounts {
      const counts = super.counts();
      return { ...counts, idle: counts.idle + 1 };
    }
  }
  expect(broken({ makePool: (parts) => new Miscounting(parts) })).toEqual(['counts are true']);
});

test('an engine that believes in connections that do not exist', () => {
  class Dreaming extends Pool {
    override counts(): PoolCounts {
      const { live, idle, ...rest } = super.counts();
      return { ...rest, limit: 20, live: live + 1, idle: idle + 1 };
    }
  }
  const breaches = breachesOf({ makePool: (parts) => new Dreaming(parts) });
  expect(breaches.map(({ law }) => law)).toEqual(['counts are true']);
});

test('an engine that takes a session for live that the server does not have', () => {
  const laws = new Laws(new Timeline());
  const counts = { limit: 10, pending: 0, live: 3, closing: 0, idle: 3, inUse: 0, checking: 0, waiting: 0 };
  const process = {
    name: 'orders',
    pool: { counts: () => counts },
    dialer: { pending: 0, live: 3, closing: 0 },
    lostSessions: 1,
    disownedSessions: 0,
    excess: () => 0,
  } as unknown as ServiceProcess;
  laws.check(Object.assign(process, { sessions: 2 }));
  expect(laws.breaches).toEqual([]);
  laws.check(Object.assign(process, { sessions: 1 }));
  expect(laws.breaches).toMatchObject([
    { law: 'counts are true', message: expect.stringMatching(/^the server has only 1 sessions of it; /) },
  ]);
});

test('an engine that has more connections above a lowered limit than were there when it was lowered', () => {
  const laws = new Laws(new Timeline());
  const process = (idle: number) =>
    ({
      name: 'orders',
      pool: {
        counts: () => ({
          limit: 4,
          pending: 0,
          live: idle,
          closing: 0,
          idle,
          inUse: 0,
          checking: 0,
          waiting: 0,
        }),
      },
      dialer: { pending: 0, live: idle, closing: 0 },
      sessions: idle,
      lostSessions: 0,
      disownedSessions: 0,
      excess: () => 2,
    }) as unknown as ServiceProcess;
  laws.check(process(6));
  expect(laws.breaches).toEqual([]);
  laws.check(process(7));
  expect(laws.breaches).toMatchObject([
    { law: 'never over the limit', message: expect.stringMatching(/^7 of 4;/) },
  ]);
});

test('an engine whose totals do not tell what happened', () => {
  class Boasting extends Pool {
    override stats(): PoolStats {
      const stats = super.stats();
      return { ...stats, totals: { ...stats.totals, acquired: stats.totals.acquired + 1 } };
    }
  }
  const [breach] = breachesOf({ makePool: (parts) => new Boasting(parts) });
  expect(breach).toMatchObject({ law: 'counts are true', service: 'orders' });
  expect(breach?.message).toMatch(/^checkouts: the pool says \d+, but it is \d+$/);
});

test('an engine that lets callers wait while a connection is ready', () => {
  class Lazy extends Pool {
    override tryTake(): undefined {
      return undefined;
    }
    override enqueue(waiter: Waiter<Session>, timeoutMs: number): void {
      this.pause();
      super.enqueue(waiter, timeoutMs);
    }
    override get state(): 'open' {
      return 'open';
    }
  }
  expect(broken({ makePool: (parts) => new Lazy(parts) })).toContain(
    'no caller waits while a connection is ready',
  );
});

test('an engine that forgets a caller for whom nothing is on its way', () => {
  const silent = { granularityMs: 1, set: () => {}, keepProcessAlive: () => {}, clear: () => {} };
  const laws = broken(
    { makePool: (parts) => new Pool({ ...parts, alarm: () => silent }) },
    {
      durationMs: 20_000,
      services: [service('orders', { max: 1 }, callers({ everyMs: 15_000 }))],
      server: { dialFailures: 1 },
    },
  );
  expect(laws).toContain('no caller is stranded');
  expect(laws).toContain('every caller has one answer');
});

test('an engine that answers a caller twice', () => {
  class Repeating extends Pool {
    override enqueue(waiter: Waiter<Session>, timeoutMs: number): void {
      super.enqueue(waiter, timeoutMs);
      waiter.failed(new Error('once more'));
    }
  }
  const laws = broken(
    { makePool: (parts) => new Repeating(parts) },
    { services: [service('orders', { max: 1 }, callers({ everyMs: 5_000 }))] },
  );
  expect(laws).toContain('every caller has one answer');
});

test('an engine that closes a connection and does not say why', () => {
  const secretive = dialingWith((dialer) => ({
    close: (pooled: PooledConnection<Session>) => {
      pooled.reason = undefined;
      dialer.close(pooled);
    },
  }));
  expect(broken(secretive)).toEqual(['no decision without its reason']);
});

test('an engine that throws', () => {
  class Fragile extends Pool {
    override tryTake(): undefined {
      throw new Error('not today');
    }
  }
  const breaches = breachesOf({ makePool: (parts) => new Fragile(parts) });
  expect(breaches).toContainEqual(
    expect.objectContaining({ law: 'the engine does not fail', message: 'Error: not today' }),
  );
});

test('an engine that does not come to an end', () => {
  class Clinging extends Pool {
    override drain(): void {}
  }
  expect(broken({ makePool: (parts) => new Clinging(parts) })).toContain(
    'every approval and every lease ends once',
  );
});

test('an engine that opens connections without a lease', () => {
  const greedy: Sabotage = {
    makePool: (parts) =>
      new Pool({
        ...parts,
        policy: { ...parts.policy, leases: { acquire: () => 'granted', release: () => {} } },
      }),
  };
  expect(broken(greedy, { coordinator })).toEqual(['never over the lease limit']);
});

test('an engine that keeps leases that it has no use for', () => {
  const hoarding: Sabotage = {
    makePool: (parts) => {
      const { leases } = parts.policy;
      return new Pool({
        ...parts,
        policy: {
          ...parts.policy,
          leases: {
            acquire: (count, holder) => leases?.acquire(count, holder) ?? 'granted',
            release: () => {},
          },
        },
      });
    },
  };
  expect(broken(hoarding, { coordinator })).toEqual(['every approval and every lease ends once']);
});

test('a server that lets in more than it has room for', () => {
  const breaches = breachesOf(
    { connectionLimit: 20 },
    { server: { connectionLimit: 15 }, services: services(2) },
  );
  expect(breaches).toEqual([
    {
      law: 'never over the limits of the server',
      atMs: expect.any(Number),
      service: undefined,
      message: '16 sessions of 15',
    },
  ]);
});

test('a server that lets in more in a second than its bucket has', () => {
  const breaches = breachesOf(
    { door: { admits: () => true } },
    { server: { perSecond: 3, burst: 4 }, services: [service('orders', { max: 10, reservoir: true })] },
  );
  expect(breaches.map(({ message }) => message)).toEqual(['more than 7 accepted within one second']);
});

test('a coordinator that grants more leases than there are', () => {
  expect(broken({ mayGrant: () => true }, { coordinator, services: services(2) })).toEqual([
    'never over the lease limit',
  ]);
});
