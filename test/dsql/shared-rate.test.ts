// The limiter that the pools of a cluster share.
import { afterEach, expect, test } from 'vitest';
import { DsqlPool, type DsqlPoolOptions } from '../../src/dsql.js';
import { TokenBucket } from '../../src/index.js';

const idOf = (letter: string): string => letter.repeat(26);
const hostOf = (letter: string): string => `${idOf(letter)}.dsql.us-east-1.on.aws`;
const pools: DsqlPool[] = [];

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
});

function limiterOf(options: DsqlPoolOptions): unknown {
  const pool = new DsqlPool({ env: {}, ...options });
  pools.push(pool);
  return (pool.options as DsqlPoolOptions).rateLimiter;
}

test('pools in one process share a limiter when they lead to the same cluster, however that is named', () => {
  const limiter = limiterOf({ host: hostOf('a') });
  expect(limiter).toBeInstanceOf(TokenBucket);
  expect(limiterOf({ host: hostOf('a'), user: 'app' })).toBe(limiter);
  expect(limiterOf({ clusterId: idOf('a'), region: 'us-east-1' })).toBe(limiter);
  expect(limiterOf({ host: `${idOf('a')}.dsql-fnh4.us-east-1.on.aws` })).toBe(limiter);
});

test('pools in one process share the permits of the limiter', () => {
  const limiter = limiterOf({ host: hostOf('b') }) as TokenBucket;
  for (let count = 0; count < 100; count++) expect(limiter.take(0)).toBe(0);
  expect((limiterOf({ host: hostOf('b') }) as TokenBucket).take(0)).toBeGreaterThan(0);
});

test('pools in one process do not share one when they lead to different clusters, or go at different speeds', () => {
  const limiter = limiterOf({ host: hostOf('c') });
  expect(limiterOf({ host: hostOf('d') })).not.toBe(limiter);
  expect(limiterOf({ host: hostOf('c'), env: { DSQL_CONNECTION_RATE_LIMIT: '5' } })).not.toBe(limiter);
});

test('pools in one process have the limiter that they are given', () => {
  const rateLimiter = new TokenBucket({ rate: 1, burst: 1 });
  expect(limiterOf({ host: hostOf('e'), rateLimiter })).toBe(rateLimiter);
});
