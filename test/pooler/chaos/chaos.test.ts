// A bank's work through the pooler, while clients and servers are lost at random points and an operator does everything at once.
//
// HEADGATE_SEED=<seed> makes the same draws again; HEADGATE_CHAOS_SECONDS says for how long.
import { expect, test } from 'vitest';
import { seededRandom } from '../../support/seeded-random.js';
import { type ChaosPlan, runChaos } from './chaos-run.js';

const seconds = Number(process.env['HEADGATE_CHAOS_SECONDS'] ?? 8);
const users = ['plain', 'hasty', 'sessions'].map((name) => `chaos_${name}_${process.pid}`);
const [, hasty, sessions] = users as [string, string, string];

const pooling = {
  multiplexDepth: 4,
  multiplexLongest: '10s',
  poolSize: 3,
  serverLifetime: '3s',
  serverLifetimeJitter: 0.5,
  serverIdleTimeout: '1s',
  serverCleaningTimeout: '400ms',
  serverConnectTimeout: '1s',
  serverLoginRetry: '200ms',
  serverCheckDelay: '20ms',
  maxPreparedStatements: 4,
};
const timeouts = { queryWaitTimeout: '4s', cancelWaitTimeout: '200ms', queryWaitNotify: '100ms' };

const plan: Omit<ChaosPlan, 'seed'> = {
  seconds,
  clients: 6,
  readers: 4,
  users,
  userOptions: {
    [hasty]: { queryTimeout: '250ms', idleTransactionTimeout: '40ms', transactionTimeout: '600ms' },
    [sessions]: { poolMode: 'session', clientIdleTimeout: '500ms' },
  },
  trees: [
    { pooling: { ...pooling, prepareUnnamed: true }, timeouts, limits: { maxDbConnections: 7 } },
    {
      pooling: {
        ...pooling,
        poolSize: 2,
        serverRoundRobin: true,
        serverFastClose: true,
        prepareUnnamed: true,
      },
      timeouts,
      limits: { maxDbConnections: 5 },
    },
    {
      pooling: {
        ...pooling,
        serverLifetime: '300ms',
        minPoolSize: 1,
        multiplexDepth: 1,
        serverResetQueryAlways: true,
      },
      timeouts,
      limits: { maxDbConnections: 7 },
    },
  ],
  limits: { ofPool: () => 3, ofDatabase: 7 },
};

test(
  'no row is wrong, no commit is lost, no connection leaks, and no client sees what is of another',
  async () => {
    const { seed } = seededRandom();
    const report = await runChaos({ ...plan, seed });
    const { wrong, ...rest } = report;
    const hint = `replay with HEADGATE_SEED=${seed}; ${JSON.stringify(rest)}`;
    if (process.env['HEADGATE_CHAOS_SECONDS'] !== undefined) console.log(hint);
    expect(wrong, hint).toEqual([]);
    // A chaos in which nothing happened would prove nothing.
    expect(report.kept, hint).toBeGreaterThan(10);
    expect(report.samples, hint).toBeGreaterThan(10);
    expect(report.multiplexed, hint).toBeGreaterThan(0);
  },
  (seconds + 60) * 1_000,
);
