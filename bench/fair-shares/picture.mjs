// @ts-check
// The picture of changing demand: of each user the share and what it held, over time, beside the share that it would have had
// once and for all.
import { drawPlot } from '../burst-expiry/svg-plot.mjs';

/**
 * @typedef {object} ShareSample
 * @property {number} atMs
 * @property {{ user: string, share: number, held: number }[]} users
 */

/**
 * @param {ShareSample[]} samples
 * @param {string[]} users
 * @param {{ seconds: number, capacity: number, staticSize: number }} sizes
 */
export function drawShares(samples, users, { seconds, capacity, staticSize }) {
  const step = capacity / 4;
  return drawPlot({
    title: `Shares of ${capacity} connections while demand changes`,
    description: `The share of each of ${users.join(', ')} and the connections it held, over ${seconds} seconds.`,
    xLabel: 'seconds',
    xTo: seconds,
    xStep: seconds > 15 ? 5 : 2,
    legend: ['share', 'connections held'],
    panels: users.map((user) => ({
      title: user,
      height: 90,
      scale: {
        kind: 'linear',
        from: 0,
        to: capacity,
        ticks: [0, 1, 2, 3, 4].map((n) => ({ at: n * step, label: String(n * step) })),
      },
      rules: [{ at: staticSize, label: 'static' }],
      series: [
        { look: 0, kind: 'steps', points: pointsOf(samples, user, 'share') },
        { look: 1, kind: 'steps', points: pointsOf(samples, user, 'held') },
      ],
    })),
  });
}

/**
 * @param {ShareSample[]} samples
 * @param {string} user
 * @param {'share' | 'held'} what
 */
function pointsOf(samples, user, what) {
  return samples.map(({ atMs, users }) => ({
    x: atMs / 1_000,
    y: users.find((one) => one.user === user)?.[what] ?? 0,
  }));
}
