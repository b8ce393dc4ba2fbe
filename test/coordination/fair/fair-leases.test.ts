import { expect, test } from 'vitest';
import { usualPolicy } from '../../../src/coordination/fair/fair-policy.js';
import { Town } from './town.js';

test('a budget that is shared fairly gives everything to a user that is alone', () => {
  const town = new Town({ capacity: 20 });
  const house = town.arrive('a', { clients: 50, queryMs: 10 });
  town.run(1_000);
  expect(house.connections).toBe(20);
  expect(town.mostConnections).toBe(20);
});

test('a budget that is shared fairly is seldom recalculated while no waiting user is below its share', () => {
  const town = new Town({ capacity: 20 });
  town.arrive('a', { clients: 40, queryMs: 10 });
  town.arrive('b', { clients: 40, queryMs: 10 });
  town.run(10_000);
  expect(town.houses.map(({ connections }) => connections)).toEqual([10, 10]);
  const before = town.looks;
  town.run(10_000);
  expect(town.looks - before).toBeLessThan(250);
});

test('a budget that is shared fairly a newcomer has its first answer soon, although another has everything and wants more', () => {
  const town = new Town({ capacity: 20 });
  town.arrive('noisy', { clients: 200, queryMs: 10 });
  town.run(5_000);
  const first: number[] = [];
  for (let n = 0; n < 200; n++) {
    const house = town.arrive(`newcomer ${n}`, { clients: 1, queryMs: 1 });
    town.run(100);
    house.leave();
    first.push(house.firstAnswerAt - house.arrivedAt);
  }
  expect(Math.max(...first.map((ms) => (Number.isNaN(ms) ? Number.POSITIVE_INFINITY : ms)))).toBeLessThan(
    100,
  );
  expect(town.mostConnections).toBe(20);
});

test('a budget that is shared fairly leaves a quiet user what it needs beside a noisy one', () => {
  const town = new Town({ capacity: 20 });
  town.arrive('noisy', { clients: 200, queryMs: 10 });
  town.run(2_000);
  const quiet = town.arrive('quiet', { clients: 4, queryMs: 0.2 });
  town.run(2_000);
  quiet.waits.length = 0;
  town.run(20_000);
  expect(quiet.connections).toBe(4);
  expect(quiet.waits.filter((ms) => ms >= 1)).toEqual([]);
  expect(town.mostConnections).toBe(20);
});

test('a budget that is shared fairly moves unused leases to the users that need them', () => {
  const town = new Town({ capacity: 20 });
  const first = town.arrive('first', { clients: 10, queryMs: 10 });
  const second = town.arrive('second', { clients: 50, queryMs: 10 });
  town.run(3_000);
  expect([first.connections, second.connections]).toEqual([10, 10]);
  first.leave();
  town.run(3_000);
  expect(second.connections).toBe(20);
});

test.each([
  ['short queries', { clients: 4, queryMs: 0.2 }],
  ['longer ones', { clients: 4, queryMs: 10 }],
])('a budget that is shared fairly 50 users on 20 connections take turns: %s', (_, load) => {
  const town = new Town({ capacity: 20 });
  for (let n = 0; n < 50; n++) town.arrive(`user ${n}`, load);
  town.run(10_000);
  expect(town.jain).toBeGreaterThan(0.95);
  expect(town.longestWait).toBeLessThan(2_000);
  expect(town.mostConnections).toBe(20);
  // A turn is long enough to be worth its connection.
  expect(town.answers * load.queryMs).toBeGreaterThan(0.9 * 20 * 10_000);
});

test('a budget that is shared fairly shortens the slot turns of others for a user that comes when all connections are taken, until it has had a turn', () => {
  const { shortestTurn, turn } = usualPolicy;
  const town = new Town({ capacity: 20 });
  for (let n = 0; n < 50; n++) town.arrive(`user ${n}`, { clients: 4, queryMs: 10 });
  town.run(10_000);
  // Twenty come at once, twenty after the first turn, ten after the second; and turns end one after the other.
  for (const house of town.houses)
    expect(house.firstAnswerAt - house.arrivedAt).toBeLessThan(2 * shortestTurn + turn / 2);
  const opened = town.opened;
  town.run(10_000);
  // By then all have had a turn, and turns are as long as usual.
  expect(town.opened - opened).toBeLessThan(1.05 * 20 * (10_000 / turn));
  const late = town.arrive('late', { clients: 4, queryMs: 10 });
  town.run(3_000);
  // Users that have waited longer come first.
  expect(late.firstAnswerAt - late.arrivedAt).toBeLessThan(2 * turn);
});

test('a budget that is shared fairly turns that are to be long are, and fewer connections are opened for them', () => {
  const turn = 2_000;
  const town = new Town({ capacity: 20, policy: { turn } });
  for (let n = 0; n < 50; n++) town.arrive(`user ${n}`, { clients: 4, queryMs: 10 });
  town.run(20_000);
  const { opened } = town;
  town.run(20_000);
  expect(town.opened - opened).toBeLessThan(1.05 * 20 * (20_000 / turn));
  expect(town.longestWait).toBeLessThan(2.5 * turn);
  expect(town.jain).toBeGreaterThan(0.95);
});

test('a budget that is shared fairly 200 users on 20 connections all get on', () => {
  const town = new Town({ capacity: 20 });
  for (let n = 0; n < 200; n++) town.arrive(`user ${n}`, { clients: 2, queryMs: 5 });
  town.run(20_000);
  expect(town.jain).toBeGreaterThan(0.95);
  expect(Math.min(...town.houses.map(({ answers }) => answers))).toBeGreaterThan(0);
  expect(town.mostConnections).toBe(20);
});

test('a budget that is shared fairly no connection is closed for a pool whose callers were served meanwhile, or have left', () => {
  const town = new Town({ capacity: 2 });
  for (const user of ['a', 'b']) town.arrive(user, { clients: 3, queryMs: 500 });
  town.run(100);
  // Both still wait for a second connection when the last caller has its answer.
  for (const house of town.houses) house.leave();
  const { recalls } = town.budget;
  town.run(10_000);
  expect(town.houses.map(({ answers, connections }) => [answers, connections])).toEqual([
    [3, 1],
    [3, 1],
  ]);
  expect(town.budget.recalls).toBe(recalls);
});

test('a connection that is idle for long is closed for a pool that keeps connections ready, though no caller waits there', () => {
  const town = new Town({ capacity: 4 });
  const resting = town.arrive('resting', { clients: 4, queryMs: 100, pauseMs: 3_600_000 });
  town.run(10_000);
  expect(resting.pool.idle).toBe(4);
  const ready = town.arrive('ready', { clients: 0, queryMs: 100, minIdle: 1 });
  town.run(60_000);
  expect([resting.connections, ready.connections]).toEqual([3, 1]);
});
