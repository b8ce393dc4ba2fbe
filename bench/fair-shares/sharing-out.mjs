// @ts-check
// The time to share a budget out anew among very many users, whose needs are others each time.
import { FairShareAllocator } from '../../dist/core/fair-share.js';
import { layOut } from '../table.mjs';
import { atMost, count, inMs, median } from './figures.mjs';

const userCount = 10_000;
const mostMs = 10;
const warmUps = 5;

/** `capacity`: for one connection each, for more than is needed, and for a fifth of the users. */
const trials = [
  { title: 'more than all need', capacity: 100 * userCount },
  { title: 'less than they need', capacity: 2 * userCount },
  { title: 'fewer than users', capacity: userCount / 5 },
];

/**
 * @param {import('./show.mjs').Stage} stage
 * @returns {Promise<import('./show.mjs').Finished>}
 */
export async function sharingOut({ quick }) {
  const rounds = quick ? 21 : 51;
  const rows = trials.map(({ title, capacity }) => {
    const allocator = new FairShareAllocator();
    for (let round = 0; round < warmUps; round++) allocator.allocate({ capacity, users: usersIn(round) });
    const took = Array.from({ length: rounds }, (_, round) => {
      const users = usersIn(warmUps + round);
      const began = performance.now();
      allocator.allocate({ capacity, users });
      return performance.now() - began;
    });
    return { title, capacity, medianMs: median(took), longestMs: Math.max(...took) };
  });
  return {
    name: 'sharing-out',
    about: `sharing connections out among ${count(userCount)} users with weights, minimums and maximums`,
    rows,
    targets: rows.map(({ title, medianMs }) => atMost(title, medianMs, mostMs, inMs)),
    output: layOut(
      ['', 'connections', 'median', 'longest'],
      rows.map(({ title, capacity, medianMs, longestMs }) => [
        title,
        count(capacity),
        inMs(medianMs),
        inMs(longestMs),
      ]),
      [1, 2, 3],
    ),
  };
}

/**
 * Nearly all need something else than in the round before.
 * @param {number} round
 */
function usersIn(round) {
  return Array.from({ length: userCount }, (_, index) => {
    const demand = (index * 7_919 + round * 31 * (index % 13)) % 97;
    return {
      key: `user_${index}`,
      demand,
      weight: 1 + (index % 5),
      minimum: index % 20 === 0 ? 1 : 0,
      maximum: index % 7 === 0 ? 50 : Number.POSITIVE_INFINITY,
      isActive: demand > 0,
    };
  });
}
