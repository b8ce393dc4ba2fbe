// Chaos where every kind of limit holds at once: PostgreSQL's own list of sessions never has one too many.
//
// HEADGATE_SEED=<seed> makes the same draws again; HEADGATE_CHAOS_SECONDS says for how long.
import { expect, test } from 'vitest';
import { seededRandom } from '../../support/seeded-random.js';
import { runChaos } from './chaos-run.js';

const seconds = Number(process.env['HEADGATE_CHAOS_SECONDS'] ?? 5);
const users = ['one', 'two', 'three'].map((name) => `limited_${name}_${process.pid}`);
const [smallest] = users as [string];

const pooling = {
  poolSize: 2,
  reservePoolSize: 1,
  reservePoolTimeout: '30ms',
  serverLifetime: '400ms',
  serverLifetimeJitter: 0.5,
  serverIdleTimeout: '200ms',
  serverConnectTimeout: '1s',
  serverLoginRetry: '200ms',
  serverCleaningTimeout: '400ms',
};
const timeouts = { queryWaitTimeout: '4s', cancelWaitTimeout: '200ms' };
const limits = { maxUserConnections: 4, maxDbConnections: 5, maxServerConnections: 8 };

test(
  'pools, their reserves, users, databases and the whole never exceed their limits, seen from outside',
  async () => {
    const { seed } = seededRandom();
    const { wrong, ...rest } = await runChaos({
      seconds,
      seed,
      clients: 4,
      users,
      userOptions: { [smallest]: { maxUserConnections: 2 } },
      trees: [
        { pooling, timeouts, limits },
        { pooling: { ...pooling, serverLifetime: '600ms' }, timeouts, limits },
        { pooling: { ...pooling, minPoolSize: 2, serverRoundRobin: true }, timeouts, limits },
      ],
      limits: {
        ofPool: () => 3,
        ofUser: (user) => (user === smallest ? 2 : 4),
        ofDatabase: 5,
        total: 8,
      },
    });
    const hint = `replay with HEADGATE_SEED=${seed}; ${JSON.stringify(rest)}`;
    if (process.env['HEADGATE_CHAOS_SECONDS'] !== undefined) console.log(hint);
    expect(wrong, hint).toEqual([]);
    expect(rest.samples, hint).toBeGreaterThan(10);
    // The limits were felt: two databases have more than one of them may.
    expect(rest.most, hint).toBeGreaterThan(5);
  },
  (seconds + 60) * 1_000,
);
