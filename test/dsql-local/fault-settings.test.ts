// Faults without a stand-in: how they are read, and how they are drawn.
import { expect, test } from 'vitest';
import { Faults, readFaults } from '../../src/dsql-local/faults.js';
import { PoolOptionsError } from '../../src/index.js';

function problemsOf(settings: unknown): readonly string[] {
  try {
    readFaults(settings);
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
  return [];
}

test('faults that are off are left out of what was read', () => {
  expect(readFaults({})).toEqual({});
  expect(readFaults({ refuseConnections: false, latencyMs: 0, conflictShare: undefined })).toEqual({});
  const all = {
    refuseConnections: true,
    refuseShare: 0.5,
    wakingMs: 1_000,
    expireTokens: true,
    latencyMs: 5,
    conflictShare: 0.1,
    unavailableBeforeCommit: 0.2,
    unavailableAfterCommit: 0.7,
  };
  expect(readFaults(all)).toEqual(all);
});

test('all problems are told at once', () => {
  expect(
    problemsOf({
      latency: 5,
      latencyMs: -1,
      conflictShare: 1.5,
      wakingMs: 'soon',
      expireTokens: 1,
      refuseShare: Number.NaN,
    }),
  ).toEqual([
    'refuseShare: must be a number from 0 to 1, not NaN',
    "wakingMs: must be a whole number from 0 to 2147483647, not 'soon'",
    'expireTokens: must be true or false, not 1',
    'latencyMs: must be a whole number from 0 to 2147483647, not -1',
    'conflictShare: must be a number from 0 to 1, not 1.5',
    'latency: is not an option; did you mean latencyMs?',
  ]);
});

test('shares of COMMIT that add up to more than 1 are refused', () => {
  expect(problemsOf({ conflictShare: 0.5, unavailableAfterCommit: 0.6 })).toEqual([
    'conflictShare: must not add up with unavailableBeforeCommit and unavailableAfterCommit to more than 1; the sum is 1.1',
  ]);
});

test.each([null, [], 'all', 5, undefined])('%j instead of an object is refused', (settings) => {
  expect(problemsOf(settings)).toEqual(['faults: must be an object with the names of faults']);
});

test('settings that are refused leave the faults as they were', () => {
  const faults = new Faults(() => 0);
  faults.set({ latencyMs: 5 });
  expect(() => faults.set({ latencyMs: 'long' })).toThrow(PoolOptionsError);
  expect(faults.settings).toEqual({ latencyMs: 5 });
});

test('a commit meets each fault in its share', () => {
  let drawn = 0;
  const faults = new Faults(
    () => 0,
    () => drawn,
  );
  faults.set({ conflictShare: 0.25, unavailableBeforeCommit: 0.25, unavailableAfterCommit: 0.25 });
  const seen = new Map<unknown, number>();
  for (let step = 0; step < 1_000; step += 1) {
    drawn = step / 1_000;
    const fault = faults.commit();
    seen.set(fault, (seen.get(fault) ?? 0) + 1);
  }
  expect([...seen]).toEqual([
    ['conflict', 250],
    ['unavailable_before', 250],
    ['unavailable_after', 250],
    [undefined, 250],
  ]);
});

test('a share of connections is refused, and the cluster wakes up when its time has come', () => {
  let now = 0;
  let drawn = 0.3;
  const faults = new Faults(
    () => now,
    () => drawn,
  );
  faults.set({ refuseShare: 0.3, wakingMs: 100 });
  expect(faults.connection()?.message).toContain('waking up cluster');
  now = 100;
  expect(faults.connection()).toBeUndefined();
  drawn = 0.29;
  expect(faults.connection()?.code).toBe('53400');
});
