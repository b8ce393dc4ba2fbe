// The sentence about the limit that binds: the numbers, the users concerned, and what to do.
import { expect, test } from 'vitest';
import type { Observation } from '../../src/dashboard/observation.js';
import { verdictOf } from '../../src/dashboard/verdict.js';
import { budget, observation, pool, share } from './observations.js';

const lately = { openFailures: 0, waitTimeouts: 0, foundEmpty: 0 };

function verdict(more: Partial<Observation>, of: Partial<typeof lately> = {}) {
  return verdictOf(observation(more), { ...lately, ...of });
}

const waiting = { active: 20, waiting: 14, idle: 0, loggingIn: 0, limit: 100, longestWaitMs: 1_234 };

test('the verdict says that nothing binds, with the connections in use', () => {
  const { level, sentence } = verdict({
    budgets: [budget()],
    pools: [pool('web')],
    connections: { opening: 0, idle: 3, active: 7, checking: 0, closing: 0 },
  });
  expect(level).toBe('good');
  expect(sentence).toBe('Nothing binds: 7 of 20 connections are in use and no caller waits.');
});

test('the verdict names the full budget, the waiting users, and which user gives back for which', () => {
  const { level, what, sentence } = verdict({
    callers: waiting,
    budgets: [
      budget({
        held: 20,
        waiting: 2,
        users: [share('web', { held: 14, share: 10 }), share('batch', { held: 2, share: 10, waitedMs: 900 })],
      }),
    ],
    pools: [pool('batch', { waiting: 10 }), pool('api', { waiting: 4 })],
  });
  expect({ level, what }).toEqual({ level: 'busy', what: 'budget' });
  expect(sentence).toBe(
    'Budget total binds: 20 of 20 connections are held, 14 callers of 2 users wait (the longest for 1.2s). ' +
      'batch has 2 of its share of 10; web is giving back 4.',
  );
});

test('the verdict names the pool whose size binds', () => {
  const { what, sentence } = verdict({
    callers: waiting,
    budgets: [budget({ held: 5 })],
    pools: [pool('web', { waiting: 14, active: 5, connections: 5, limit: 5 })],
  });
  expect(what).toBe('pool_size');
  expect(sentence).toBe(
    'The size of pool web@app binds: 5 of 5 connections are in use, 14 callers wait (the longest for 1.2s).',
  );
});

test('the verdict names the rate of opening connections when no permit is left', () => {
  const rates = [{ server: 'db:5432', rate: 5, fullRate: 10, tokens: 0.2, burst: 10, refused: 1 }];
  expect(verdict({ callers: waiting, rates }).what).toBe('rate');
  expect(verdict({ rates }).what).toBe('nothing');
});

test('the verdict repeats why the server can not be reached, as long as attempts fail', () => {
  const dialError = 'connect ECONNREFUSED 127.0.0.1:5432';
  const failing = verdict({ dialError, callers: waiting }, { openFailures: 3 });
  expect(failing.level).toBe('bad');
  expect(failing.sentence).toBe(
    "Connections to the server can't be opened: connect ECONNREFUSED 127.0.0.1:5432. 14 callers wait.",
  );
  expect(verdict({ dialError }).level).toBe('good');
});

test('the verdict is bad when it is paused, and when a paused database has waiting callers', () => {
  expect(verdict({ state: 'paused', callers: waiting })).toMatchObject({ level: 'bad', what: 'paused' });
  const one = verdict({
    pausedDatabases: ['app'],
    callers: waiting,
    pools: [pool('web', { isPaused: true, waiting: 14 })],
  });
  expect(one).toMatchObject({ level: 'bad', sentence: 'Database app is paused: 14 callers wait.' });
});

test('the verdict puts an exceeded budget before everything else', () => {
  const { level, what } = verdict({ state: 'paused', budgets: [budget({ exceeded: 1 })] });
  expect({ level, what }).toEqual({ level: 'bad', what: 'exceeded' });
});

test('the verdict tells of a low reservoir and of places for clients that run out', () => {
  const low = { pool: 'orders', ready: 3, target: 50, lowWatermark: 10, isFilled: true, foundEmpty: 0 };
  expect(verdict({ reservoirs: [low] })).toMatchObject({ level: 'busy', what: 'reservoir' });
  expect(verdict({ reservoirs: [low] }, { foundEmpty: 1 }).level).toBe('bad');
  const full = { ...waiting, waiting: 0, active: 5, idle: 90 };
  expect(verdict({ callers: full }).sentence).toBe('Places for clients run out: 95 of 100 are taken.');
});
