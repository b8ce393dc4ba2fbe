// Engines that are spoiled in one way, and the search for a life in which it shows.
import { ConnectionPool, type PoolParts } from '../../../src/core/connection-pool.js';
import type { PoolPolicy } from '../../../src/core/pool-policy.js';
import type { FakeSocket } from '../../support/fake-server.js';
import type { Sabotage } from './play.js';
import type { Kind, WeatherName } from './scenario.js';
import { type Finding, search } from './search.js';

export type Parts = PoolParts<FakeSocket>;

/** An engine that follows another policy than the one it was given. */
export function misled(change: (policy: PoolPolicy) => Partial<PoolPolicy>): Sabotage {
  return {
    makePool: (parts) =>
      new ConnectionPool({ ...parts, policy: { ...parts.policy, ...change(parts.policy) } }),
  };
}

/** An engine in which one method is replaced. */
export function spoiled(spoil: (parts: Parts) => ConnectionPool<FakeSocket>): Sabotage {
  return { makePool: spoil };
}

/** The lives are the same each time, a few in each weather before more of any. */
export function find(sabotage: Sabotage, kind: Kind): Finding {
  for (let first = 1; first < 1_000; first += 50) {
    for (const weather of ['fair', 'flaky', 'hanging', 'down'] satisfies WeatherName[]) {
      const finding = search(first, 50, weather, kind, new Set(), sabotage);
      if (finding !== undefined) return finding;
    }
  }
  throw new Error('Nothing was found.');
}
