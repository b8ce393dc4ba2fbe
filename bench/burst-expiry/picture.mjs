// @ts-check
// The picture of the burst: how many connections were ready, and how long checkouts took, over time, for two pools.
import { slowestCheckoutMs } from './summary.mjs';
import { drawPlot } from './svg-plot.mjs';

/** @typedef {import('./summary.mjs').Trial} Trial */

/** A bar shows the slowest checkout of so long a time. */
const barMs = 100;

const waits = {
  queue: 'The gate makes those above the rate wait.',
  refuse: 'The gate refuses those above the rate.',
};

/**
 * @param {Trial[]} trials of the two pools behind the same kind of gate
 * @param {number} seconds
 */
export function drawTrials(trials, seconds) {
  const names = trials.map(({ title }) => title);
  const manner = trials[0]?.manner ?? 'queue';
  const most = Math.max(50, ...trials.flatMap(({ outcome }) => outcome.samples.ready));
  return drawPlot({
    title: `Connections that expire together. ${waits[manner]}`,
    description: `Ready connections and checkout time over ${seconds} seconds, of ${names.join(' and ')}.`,
    xLabel: 'seconds',
    xTo: seconds,
    xStep: 5,
    legend: names,
    panels: [
      {
        title: 'ready connections',
        height: 150,
        scale: {
          kind: 'linear',
          from: 0,
          to: most,
          ticks: [0, 10, 20, 30, 40, 50].map((at) => ({ at, label: String(at) })),
        },
        series: trials.map(({ outcome }, index) => ({
          look: lookOf(index),
          kind: 'steps',
          points: outcome.samples.atMs.map((ms, at) => ({
            x: ms / 1_000,
            y: outcome.samples.ready[at] ?? 0,
          })),
        })),
      },
      {
        title: `slowest checkout in each ${barMs} ms${hasErrors(trials) ? ' (crosses: errors)' : ''}`,
        height: 190,
        scale: {
          kind: 'log',
          from: 0.01,
          to: 10_000,
          ticks: [
            { at: 0.01, label: '10 us' },
            { at: 0.1, label: '100 us' },
            { at: 1, label: '1 ms' },
            { at: 10, label: '10 ms' },
            { at: 100, label: '100 ms' },
            { at: 1_000, label: '1 s' },
            { at: 10_000, label: '10 s' },
          ],
        },
        rules: [{ at: slowestCheckoutMs, label: `${slowestCheckoutMs} ms` }],
        series: trials.map((trial, index) => ({
          look: lookOf(index),
          kind: 'bars',
          points: slowest(trial, index),
        })),
        crosses: trials.flatMap((trial, index) => errors(trial).map((x) => ({ look: lookOf(index), x }))),
      },
    ],
  });
}

/** @param {number} index */
function lookOf(index) {
  return index === 0 ? 0 : 1;
}

/**
 * The slowest checkout of each bar's time. The bars of the two pools stand beside each other.
 * @param {Trial} trial
 * @param {number} index
 */
function slowest({ outcome }, index) {
  /** @type {number[]} */
  const bars = [];
  for (const [caller, at] of outcome.askedMs.entries()) {
    const bar = Math.floor(at / barMs);
    bars[bar] = Math.max(bars[bar] ?? 0, outcome.tookMs[caller] ?? 0);
  }
  return bars.flatMap((y, bar) =>
    y === undefined ? [] : [{ x: ((bar + 0.3 + 0.4 * index) * barMs) / 1_000, y }],
  );
}

/**
 * When callers asked who were refused, one for each bar's time at most.
 * @param {Trial} trial
 */
function errors({ outcome }) {
  const bars = new Set(outcome.refusedMs.map((at) => Math.floor(at / barMs)));
  return Array.from(bars, (bar) => ((bar + 0.5) * barMs) / 1_000);
}

/** @param {Trial[]} trials */
function hasErrors(trials) {
  return trials.some(({ outcome }) => outcome.refusedMs.length > 0);
}
