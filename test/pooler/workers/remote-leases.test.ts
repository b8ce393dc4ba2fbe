// What a worker tells the supervisor of a pool, and what it keeps to itself.
import { beforeEach, describe, expect, it } from 'vitest';
import type { PoolReport } from '../../../src/pooler/workers/messages.js';
import { RemoteLeases } from '../../../src/pooler/workers/remote-leases.js';
import { FiguredEngine } from './figured-engine.js';

describe('A pool of a worker tells the supervisor', () => {
  const clock = { time: 10_000, now: () => clock.time };
  let asked: PoolReport[];
  let leases: RemoteLeases;
  let engine: FiguredEngine;

  beforeEach(() => {
    asked = [];
    const pool = { user: 'app', database: 'app', server: 'db:5432' };
    const line = { clock, asked: (report: PoolReport) => asked.push(report), released() {}, left() {} };
    leases = new RemoteLeases(pool, 1, line);
    engine = new FiguredEngine(leases, 30);
    engine.ask();
    leases.granted();
    // It has one, and wants another.
    engine.ask();
  });

  /** As often as it takes until something is told, and what that is; undefined if it is nothing. */
  const nextNews = (looks: number): { after: number; report: PoolReport } | undefined => {
    for (let after = 1; after <= looks; after++) {
      const report = leases.news();
      if (report !== undefined) return { after, report };
    }
    return undefined;
  };

  it('what it needs, with each question', () => {
    expect(asked.map(({ demand, wanted, seen }) => ({ demand, wanted, seen }))).toEqual([
      { demand: 30, wanted: 1, seen: 0 },
      { demand: 30, wanted: 1, seen: 1 },
    ]);
  });

  it('nothing as long as nothing changes', () => {
    expect(nextNews(100)).toBeUndefined();
  });

  it('that its need is a little more or less only once in a while, and then the highest', () => {
    expect(nextNews(5)).toBeUndefined();
    engine.peak = 33;
    expect(nextNews(1)).toBeUndefined();
    engine.peak = 29;
    engine.demand = 12;
    const news = nextNews(20);
    expect(news?.after).toBe(5);
    expect(news?.report).toMatchObject({ demand: 12, peak: 33 });
    expect(nextNews(10)).toBeUndefined();
    expect(nextNews(1)?.report.peak).toBe(29);
    expect(nextNews(100)).toBeUndefined();
  });

  it.each([
    ['that its need is much more', { peak: 35 }],
    ['that its need is much less', { demand: 26 }],
    ['that it needs nothing', { demand: 0 }],
    ['that something is idle', { longestIdleSince: 9_000 }],
    ['that it may have more', { limit: 21 }],
  ])('%s, at the next look', (_, change) => {
    Object.assign(engine, change);
    expect(nextNews(1)).toBeDefined();
    expect(nextNews(1)).toBeUndefined();
  });

  it('once in a while that what was idle has been used', () => {
    engine.longestIdleSince = 5_000;
    expect(nextNews(1)?.report.idleForMs).toBe(5_000);
    clock.time += 25;
    expect(nextNews(20)).toBeUndefined();
    engine.longestIdleSince = 9_000;
    expect(nextNews(1)?.report.idleForMs).toBe(1_025);
  });
});
