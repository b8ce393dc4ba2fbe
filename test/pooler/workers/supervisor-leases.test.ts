// Messages of a worker to its supervisor about a pool, and what the worker decides alone.
import { beforeEach, describe, expect, test } from 'vitest';
import { usualPolicy } from '../../../src/coordination/fair/fair-policy.js';
import type { PoolReport } from '../../../src/pooler/messages/messages.js';
import { SupervisorLeases } from '../../../src/pooler/worker/supervisor-leases.js';
import { FiguredEngine } from './figured-engine.js';

describe('A pool of a worker tells the supervisor', () => {
  const lookMs = 25;
  const clock = { time: 10_000, now: () => clock.time };
  let asked: PoolReport[];
  let leases: SupervisorLeases;
  let engine: FiguredEngine;

  beforeEach(() => {
    asked = [];
    const pool = { user: 'app', database: 'app', server: 'db:5432' };
    const line = {
      clock,
      asked: (report: PoolReport) => asked.push(report),
      released() {},
      keeping() {},
      left() {},
    };
    leases = new SupervisorLeases(pool, 1, line);
    engine = new FiguredEngine(leases, 30);
    engine.ask();
    leases.granted();
    // The pool has one lease, and wants another.
    engine.ask();
  });

  /** Looks as often as it is usual until something is told: after how long, and what; undefined if it is nothing. */
  const nextNews = (ms: number): { afterMs: number; report: PoolReport } | undefined => {
    for (let afterMs = lookMs; afterMs <= ms; afterMs += lookMs) {
      clock.time += lookMs;
      const report = leases.news();
      if (report !== undefined) return { afterMs, report };
    }
    return undefined;
  };

  test('a pool of a worker tells the supervisor its needs with each question', () => {
    expect(asked.map(({ demand, wanted, seen }) => ({ demand, wanted, seen }))).toEqual([
      { demand: 30, wanted: 1, seen: 0 },
      { demand: 30, wanted: 1, seen: 1 },
    ]);
  });

  test('a pool of a worker tells the supervisor nothing as long as nothing changes', () => {
    expect(nextNews(2_500)).toBeUndefined();
  });

  test('a pool of a worker tells the supervisor small changes of its need only once in a while, and then the highest', () => {
    expect(nextNews(100)).toBeUndefined();
    engine.peak = 33;
    expect(nextNews(lookMs)).toBeUndefined();
    engine.peak = 29;
    engine.demand = 12;
    const news = nextNews(1_000);
    expect(news?.afterMs).toBe(125);
    expect(news?.report).toMatchObject({ demand: 12, peak: 33 });
    expect(nextNews(225)).toBeUndefined();
    expect(nextNews(lookMs)?.report.peak).toBe(29);
    expect(nextNews(2_500)).toBeUndefined();
  });

  test.each([
    ['that its need is much more', { peak: 35 }],
    ['that its need is much less', { demand: 26 }],
    ['that it needs nothing', { demand: 0 }],
    ['that something is idle', { longestIdleSince: 9_000 }],
    ['that it may have more', { limit: 21 }],
  ])('%s, at the next look', (_, change) => {
    Object.assign(engine, { peak: 0 }, change);
    expect(nextNews(lookMs)).toBeDefined();
    expect(nextNews(lookMs)).toBeUndefined();
  });

  test('a pool of a worker tells the supervisor once that a connection is idle, while it stays unused', () => {
    engine.longestIdleSince = clock.time - 5_000;
    expect(nextNews(lookMs)?.report.idleForMs).toBe(5_000 + lookMs);
    expect(nextNews(2_500)).toBeUndefined();
  });

  test.each([25, 100])(
    'what is used again and again, before it is taken for idle: looked at each %i ms',
    (everyMs) => {
      let believed: number | undefined;
      let [most, messages] = [0, 0];
      for (let ms = 0; ms < 10_000; ms += everyMs) {
        clock.time += everyMs;
        // Idle whenever it is looked at, and used a moment before.
        engine.longestIdleSince = clock.time - 3;
        const report = leases.news();
        if (report?.idleForMs !== undefined) {
          believed = clock.time - report.idleForMs;
          messages++;
        }
        most = Math.max(most, clock.time - (believed ?? clock.time));
      }
      expect(most + everyMs).toBeLessThan(usualPolicy.idleGrace);
      expect(messages).toBeLessThanOrEqual(1 + 10_000 / 75);
    },
  );
});
