// @ts-check
// The time of one look at the shares of four stacked budgets, with 10,000 users.
import { layOut } from '../table.mjs';
import { CrowdedQueue, demandIn, layouts, userCount } from './crowded-queue.mjs';
import { atMost, count, inMs, median } from './figures.mjs';

const mostMs = 10;
const warmUps = 12;

/** @typedef {{ title: string, wanting: number, changing: number }} Demand */

/** @type {Demand[]} */
const demands = [
  { title: 'all want, none changes', wanting: userCount, changing: 0 },
  { title: 'all want, one changes', wanting: userCount, changing: 1 },
  { title: 'all want, all change', wanting: userCount, changing: userCount },
  { title: 'few want, all of them change', wanting: userCount / 100, changing: userCount / 100 },
];

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function rebalancing({ quick }) {
  const rounds = quick ? 21 : 51;
  const rows = layouts.flatMap((layout) =>
    demands.map((demand) => ({
      layout: layout.title,
      demand: demand.title,
      ...measure(new CrowdedQueue(layout, demand.wanting), demand, rounds),
    })),
  );
  const worst = Math.max(...rows.map(({ medianMs }) => medianMs));
  return {
    name: 'rebalancing',
    about: `one rebalance of four stacked budgets with ${count(userCount)} users; round: turns end and connections are recalled`,
    rows,
    targets: [atMost('slowest median', worst, mostMs, inMs)],
    output: layOut(
      ['budgets', 'demand', 'median', 'longest', 'round'],
      rows.map(({ layout, demand, medianMs, longestMs, roundMs }) => [
        layout,
        demand,
        inMs(medianMs),
        inMs(longestMs),
        inMs(roundMs),
      ]),
      [2, 3, 4],
    ),
  };
}

/**
 * @param {CrowdedQueue} queue
 * @param {Demand} demand
 * @param {number} rounds
 */
function measure(queue, { changing }, rounds) {
  /** @param {number} round */
  const change = (round) => {
    for (let n = 0; n < changing; n++) {
      // A single change is that of another user each time.
      const user = changing === 1 ? (round * 997) % userCount : n;
      const holder = queue.holders[user];
      if (holder !== undefined) holder.demand = demandIn(user, round);
    }
  };
  /**
   * The shorter of wall time and processor time: what waits for a core is not charged.
   * @param {() => void} act
   */
  const timed = (act) => {
    const usage = process.cpuUsage();
    const began = performance.now();
    act();
    const wallMs = performance.now() - began;
    const { user, system } = process.cpuUsage(usage);
    return Math.min(wallMs, (user + system) / 1_000);
  };
  const took = Array.from({ length: warmUps + rounds }, (_, round) => {
    change(round + 1);
    return timed(() => queue.rebalance());
  }).slice(warmUps);
  const ofRounds = Array.from({ length: 5 }, (_, round) => {
    change(round);
    return timed(() => queue.endInterval());
  });
  return { medianMs: median(took), longestMs: Math.max(...took), roundMs: median(ofRounds) };
}
