// The engine's options: defaults, what can be switched off, and what makes no sense.
import { describe, expect, it } from 'vitest';
import { type PolicyOptions, readPolicy } from '../../src/core/pool-policy.js';
import { PoolOptionsError } from '../../src/kernel/errors.js';
import { OptionReader } from '../../src/kernel/option-reader.js';
import { policyOf } from '../support/virtual-world.js';

const never = Number.POSITIVE_INFINITY;

function problemsOf(options: object): Record<string, string> {
  const read = new OptionReader(options);
  readPolicy(read, false);
  read.refuseUnknown();
  try {
    read.throwIfAnyProblem();
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    return Object.fromEntries(error.problems.map(({ path, message }) => [path, message]));
  }
  return {};
}

describe("The engine's options", () => {
  it('have defaults that suit most, and are frozen', () => {
    const policy = policyOf({});
    expect(policy).toMatchObject({
      max: 10,
      minIdle: 0,
      idleFloor: 0,
      acquireTimeout: 30_000,
      dialTimeout: 10_000,
      dialLimit: 8,
      closeTimeout: 5_000,
      idleTimeout: 600_000,
      maxLifetime: 1_800_000,
      maxLifetimeJitter: 180_000,
      guardWindow: 18_000,
      maxUses: never,
      checkAfterIdle: never,
      keepalive: never,
      checkTimeout: 5_000,
      idleOrder: 'lifo',
      onDialFailure: 'retry',
      base: 100,
      cap: 10_000,
      threshold: 5,
      leakThreshold: never,
      rateLimiter: undefined,
    });
    expect(Object.isFrozen(policy)).toBe(true);
  });

  it('take 0 for "off"', () => {
    const off: PolicyOptions = { acquireTimeout: 0, dialTimeout: 0, idleTimeout: 0, maxLifetime: 0 };
    expect(policyOf({ ...off, checkAfterIdle: 0, keepalive: 0, leakThreshold: 0 })).toMatchObject({
      acquireTimeout: never,
      dialTimeout: never,
      idleTimeout: never,
      maxLifetime: never,
      maxLifetimeJitter: 0,
      guardWindow: 0,
      checkAfterIdle: never,
      keepalive: never,
      leakThreshold: never,
    });
  });

  it('have a jitter and a guard window that grow with the lifetime', () => {
    expect(policyOf({ maxLifetime: '1h' })).toMatchObject({
      maxLifetimeJitter: 360_000,
      guardWindow: 36_000,
    });
  });

  it('that contradict each other are told, all at once', () => {
    expect(
      problemsOf({
        max: 2,
        minIdle: 3,
        maxLifetime: '1m',
        maxLifetimeJitter: '3m',
        backoffBase: 0,
        idelTimeout: '1m',
        rateLimiter: {},
      }),
    ).toEqual({
      minIdle: 'is 3, more than max, which is 2',
      maxLifetimeJitter: 'is 180000 ms, more than twice maxLifetime (60000 ms)',
      guardWindow: expect.stringContaining('as long as the shortest life'),
      backoffBase: expect.stringContaining('without a delay a failing dial is repeated in a loop'),
      rateLimiter: 'must be an object with take(), not an object',
      idelTimeout: 'is not an option; did you mean idleTimeout?',
    });
    expect(problemsOf({ maxLifetime: '1m', guardWindow: '1m' })).toHaveProperty('guardWindow');
    expect(problemsOf({ backoffBase: '1s', backoffCap: '500ms' })).toHaveProperty('backoffCap');
  });

  it.each([
    { max: 0 },
    { max: -1 },
    { max: '10' },
    { dialLimit: 0 },
    { maxUses: 0 },
    { idleOrder: 'random' },
  ])('%j makes no sense', (options) => {
    expect(Object.keys(problemsOf(options))).toEqual(Object.keys(options));
  });
});
