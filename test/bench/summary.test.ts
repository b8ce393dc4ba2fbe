// The words and the picture of the burst: a missed target must be seen, and a picture must be one.
import { expect, test } from 'vitest';
import { drawTrials } from '../../bench/burst-expiry/picture.mjs';
import { formatTrials, formatVerdicts, summarize, type Trial } from '../../bench/burst-expiry/summary.mjs';

const callers = 1_000;
const gate = { accepted: 60, refused: 0, queued: 0, open: 50, peak: 50, oldestMs: 5_000 };

/** All are served in 0.1 ms, but for those named. */
function trial(slow: Record<number, number> = {}, change: Partial<Trial['outcome']> = {}): Trial {
  const each = Array.from({ length: callers }, (_, caller) => caller);
  return {
    title: 'a pool',
    manner: 'queue',
    hasTargets: true,
    gate,
    outcome: {
      askedMs: each.map((caller) => caller * 5),
      lateMs: each.map(() => 0),
      tookMs: each.map((caller) => slow[caller] ?? 0.1),
      waited: each.map(() => false),
      longestHoldMs: 150,
      refusedMs: [],
      unserved: 0,
      failedQueries: 0,
      failures: {},
      samples: { atMs: [0, 50, 100], ready: [50, 12, 20], total: [50, 42, 50] },
      stalls: { atMs: [], ms: [] },
      discards: {},
      ...change,
    },
  };
}

test('the targets are reached when all callers are served at once and none is refused', () => {
  const summary = summarize(trial());
  expect(summary.targets.map(({ ok }) => ok)).toEqual([true, true, true]);
  expect(summary).toMatchObject({ slow: 0, waited: 0, errors: 0, fewestReady: 12 });
});

test('the targets allow no single checkout over 5 ms', () => {
  const summary = summarize(trial({ 500: 5.1 }));
  expect(summary.targets.map(({ ok }) => ok)).toEqual([true, false, true]);
  expect(summary.slow).toBe(1);
});

test('the targets allow 1 ms at most for 99 in 100', () => {
  const slow = Object.fromEntries(Array.from({ length: 11 }, (_, caller) => [caller, 1.5]));
  expect(summarize(trial(slow)).targets.map(({ ok }) => ok)).toEqual([true, true, false]);
});

test.each([
  ['a refused caller', { refusedMs: [5] }],
  ['a caller without an answer', { unserved: 1 }],
  ['a failed query', { failedQueries: 1 }],
])('the targets count %s as an error', (_, change) => {
  expect(summarize(trial({}, change)).targets[0]).toEqual({ wanted: 'no error', reached: '1', ok: false });
});

test('a slow checkout that waited for no connection is told from one that did', () => {
  const waited = Array.from({ length: callers }, (_, caller) => caller === 1);
  const summary = summarize(trial({ 1: 30, 2: 20 }, { waited }));
  expect(summary).toMatchObject({ slow: 2, waited: 1, slowAtOnce: 1 });
  expect(formatVerdicts(summary)).toContain('1 checkouts had to wait. 1 of 2 slow ones did not');
});

test('the table has a row for each trial', () => {
  const lines = formatTrials([summarize(trial()), summarize({ ...trial(), title: 'another' })]).split('\n');
  expect(lines).toHaveLength(4);
  expect(lines[3]).toMatch(/^another +queue +0 +0\.10 +0\.10 +0\.10 /);
});

const svg = drawTrials([trial(), { ...trial({ 7: 250 }, { refusedMs: [35] }), title: 'a < b & c' }], 5);

test('the picture keeps everything inside its frame', () => {
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? [];
  const at = [...svg.matchAll(/[M>](\d[\d.]*) (\d[\d.]*)|<text x="([\d.-]+)" y="([\d.-]+)"/g)];
  expect(at.length).toBeGreaterThan(20);
  for (const [, pathX, pathY, textX, textY] of at) {
    const [x, y] = [Number(pathX ?? textX), Number(pathY ?? textY)];
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x).toBeLessThanOrEqual(Number(width));
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y).toBeLessThanOrEqual(Number(height));
  }
});

test('the picture names both pools, and no name can break it', () => {
  expect(svg).toContain('>a pool</text>');
  expect(svg).toContain('>a &lt; b &amp; c</text>');
});

test('the picture has no number that is none', () => {
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
});

test('the picture marks the time of an error', () => {
  expect(svg).toContain('crosses: errors');
  expect(drawTrials([trial(), trial()], 5)).not.toContain('crosses: errors');
});
