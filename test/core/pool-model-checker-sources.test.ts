// As pool-model-checker.test.ts, for the laws about leases, permits, the reservoir, the warmup and the keeper.
import { expect, test } from 'vitest';
import type { DialFailureCause } from '../../src/core/breaker.js';
import { ConnectionPool } from '../../src/core/connection-pool.js';
import type { Dial } from '../../src/core/dialer.js';
import type { Leases } from '../../src/core/leases.js';
import type { PoolPolicy } from '../../src/core/pool-policy.js';
import type { PooledConnection } from '../../src/core/pooled-connection.js';
import type { RateLimiter } from '../../src/core/rate-limiter.js';
import type { FakeSocket } from '../support/fake-server.js';
import type { Sabotage } from './model/play.js';
import { find, misled, type Parts, spoiled } from './model/sabotage.js';

type Pool = ConnectionPool<FakeSocket>;
type Pooled = PooledConnection<FakeSocket>;

const never = Number.POSITIVE_INFINITY;

/** An engine that asks another budget than it was given, where it was given one. */
function otherLeases(change: (leases: Leases) => Partial<Leases>): Sabotage {
  return misled(({ leases }) =>
    leases === undefined ? {} : { leases: { ...both(leases), ...change(leases) } },
  );
}

function both(leases: Leases): Leases {
  return {
    acquire: (count, holder) => leases.acquire(count, holder),
    release: (count, holder) => leases.release(count, holder),
  };
}

function otherReservoir(change: Partial<NonNullable<PoolPolicy['reservoir']>>): Sabotage {
  return misled(({ reservoir }) => ({ reservoir: reservoir && { ...reservoir, ...change } }));
}

/** Forgets the lease of a dial that failed. */
function forgetsOnFailure(parts: Parts): Pool {
  const { leases } = parts.policy;
  let isFailing = false;
  const forgetful = leases && {
    ...both(leases),
    release: ((count, holder) => isFailing || leases.release(count, holder)) as Leases['release'],
  };
  class Forgetful extends ConnectionPool<FakeSocket> {
    override dialFailed(dial: Dial<FakeSocket>, error: Error, cause?: DialFailureCause): void {
      isFailing = true;
      super.dialFailed(dial, error, cause);
      isFailing = false;
    }
  }
  return new Forgetful({ ...parts, policy: { ...parts.policy, leases: forgetful } });
}

/** Takes no permit for the dial that is made in the place of another. */
function secondChanceIsFree(parts: Parts): Pool {
  const { rateLimiter } = parts.policy;
  let isFree = false;
  const limiter: RateLimiter | undefined = rateLimiter && {
    take: (now, isUrgent) => {
      if (!isFree) return rateLimiter.take(now, isUrgent);
      isFree = false;
      return 0;
    },
    rate: rateLimiter.rate,
  };
  class Generous extends ConnectionPool<FakeSocket> {
    override dialAgain(dial: Dial<FakeSocket>): boolean {
      isFree = !dial.isSecondChance;
      const isAccepted = super.dialAgain(dial);
      isFree = false;
      return isAccepted;
    }
  }
  return new Generous({ ...parts, policy: { ...parts.policy, rateLimiter: limiter } });
}

/** Scans those that are in use as well. */
function scansThoseInUse(parts: Parts): Pool {
  const pool: Pool = new ConnectionPool({
    ...parts,
    alarm: (ring) =>
      parts.alarm(() => {
        const now = parts.clock.now();
        for (const inUse of [...pool.connections()])
          if (inUse.state === 'in_use' && now >= inUse.lendUntil) pool.release(inUse, inUse.generation);
        ring();
      }),
  });
  return pool;
}

class DeafToLosses extends ConnectionPool<FakeSocket> {
  override leasesLost(): void {}
}

class LosesTwice extends ConnectionPool<FakeSocket> {
  override leasesLost(count: number): void {
    super.leasesLost(count);
    super.leasesLost(count);
  }
}

class DeafToRefusals extends ConnectionPool<FakeSocket> {
  override leasesRefused(): void {
    this.leasesAvailable();
  }
}

class Patient extends ConnectionPool<FakeSocket> {
  override get usualTimeoutMs(): number {
    return this.policy.acquireTimeout + 1;
  }
}

class CountsTwice extends ConnectionPool<FakeSocket> {
  override tryTake(holder?: unknown): Pooled | undefined {
    return super.tryTake(holder) ?? super.tryTake(holder);
  }
}

class Unspecific extends ConnectionPool<FakeSocket> {
  override dialFailed(dial: Dial<FakeSocket>, error: Error): void {
    super.dialFailed(dial, error);
  }
}

class NeverFails extends ConnectionPool<FakeSocket> {
  override dialAgain(dial: Dial<FakeSocket>): boolean {
    dial.isSecondChance = false;
    return super.dialAgain(dial);
  }
}

test.each<[string, Sabotage, RegExp]>([
  [
    'a lease that is given back twice',
    otherLeases((leases) => ({
      release: (count, holder) => {
        leases.release(count, holder);
        leases.release(count, holder);
      },
    })),
    /more was given back|places are occupied|holds/,
  ],
  [
    'a lease that is kept after a failed dial',
    spoiled(forgetsOnFailure),
    /says that it holds|a lease is held/,
  ],
  ['a lease that is never given back', otherLeases(() => ({ release: () => {} })), /says that it holds/],
  [
    'a dial without a lease',
    otherLeases(() => ({ acquire: () => 'granted' })),
    /places are occupied with 0 leases|says that it holds/,
  ],
  ['a lost lease that changes nothing', spoiled((p) => new DeafToLosses(p)), /says that it holds/],
  ['a loss that is paid for twice', spoiled((p) => new LosesTwice(p)), /says that it holds|lease_lost/],
  [
    'a refusal that is taken for a yes',
    spoiled((p) => new DeafToRefusals(p)),
    /failures by lease_acquire counted/,
  ],
  ['a second chance without a permit', spoiled(secondChanceIsFree), /dials with \d+ permits/],
  ['one second chance after the other', spoiled((p) => new NeverFails(p)), /had a second chance/],
  ['causes that are mixed up', spoiled((p) => new Unspecific(p)), /failures by \w+ counted/],
  [
    'a connection given out inside its guard window',
    misled(() => ({ guardWindow: 0 })),
    /inside its guard window|the word for that is insufficient/,
  ],
  [
    'a guard window that is too wide',
    misled((p) => ({ guardWindow: p.guardWindow * 1.5 + 2 })),
    /ms until|law/,
  ],
  [
    'a surplus that is kept',
    otherReservoir({ targetReady: never }),
    /was kept, but the word for that is reservoir_full/,
  ],
  ['what is no surplus and is not kept', otherReservoir({ targetReady: 0 }), /the word for that is none/],
  [
    'a scanner that looks at what is in use',
    spoiled(scansThoseInUse),
    /given out|not in use|did not come back|already been released/,
  ],
  [
    'no scanner',
    misled(() => ({ reservoir: undefined })),
    /first fill|a scan should|no word of a reservoir|usually/,
  ],
  [
    'connections that are replaced long before their time',
    misled(({ rateLimiter }) => ({
      rateLimiter: { take: (now) => rateLimiter?.take(now) ?? 0, rate: 0.1 },
    })),
    /all of them could be replaced/,
  ],
  [
    'too wide a spread of lives',
    misled((p) => ({ maxLifetimeJitter: p.maxLifetimeJitter * 2 + 5 })),
    /given a life/,
  ],
  ['a wait at an empty reservoir that is too long', spoiled((p) => new Patient(p)), /usually waits/],
  ['an empty checkout that is counted twice', spoiled((p) => new CountsTwice(p)), /empty checkouts counted/],
  [
    'a first fill that goes on for too long',
    otherReservoir({ initialFillTimeout: never }),
    /usually waits|alarm/,
  ],
  ['a fill of the wrong size', otherReservoir({ lowWatermark: 0 }), /low watermark/],
  [
    'a warmup that goes too far',
    misled(({ warmup }) => ({ warmup: warmup && { ...warmup, target: warmup.target + 1 } })),
    /warmup started|dials for/,
  ],
  [
    'a keeper in a hurry',
    misled(({ keeper }) => ({ keeper: keeper && { ...keeper, perTick: keeper.perTick + 1 } })),
    /dials for \d+ callers/,
  ],
  ['a keeper that sleeps', misled(() => ({ keeper: undefined })), /a look of the keeper/],
  ['spares that do not wait for the start', misled(() => ({ startJitter: 0 })), /before the start/],
  [
    'spares that wait for too long',
    misled((p) => ({ startJitter: p.startJitter * 2 })),
    /no dial begins|look of the keeper/,
  ],
])('The laws notice %s', (_what, sabotage, complaint) => {
  const finding = find(sabotage, 'source');
  expect(finding.wrong.join('\n')).toMatch(complaint);
  // Small enough to be read.
  expect(finding.scenario.steps.length).toBeLessThan(16);
});
