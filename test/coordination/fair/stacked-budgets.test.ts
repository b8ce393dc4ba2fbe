// Several limits on the same connections, as they are configured every day. Each alone is fair; together they have to be, too.
import { describe, expect, test } from 'vitest';
import { Laws } from './laws.js';
import { Town } from './town.js';

const load = { clients: 4, queryMs: 10 };

/** How it is with one budget: 40 users on 20 connections. */
function oneBudget(): Town {
  const town = new Town({ capacity: 20 });
  for (let n = 0; n < 40; n++) town.arrive(`user ${n}`, load);
  town.run(8_000);
  return town;
}

describe('limits on top of each other', () => {
  const { longestWait } = oneBudget();

  test.each([
    ['the same for the database as for all', { capacity: 20, ofDatabase: 20 }],
    ['less for the database than for all', { capacity: 30, ofDatabase: 20 }],
    ['less for all than for the database', { capacity: 20, ofDatabase: 30 }],
    ['a limit for each user, too', { capacity: 20, ofDatabase: 20, ofUser: 3 }],
  ])('%s: all users are served as with one budget', (_, limits) => {
    const town = new Town(limits);
    const laws = new Laws(town);
    for (let n = 0; n < 40; n++) town.arrive(`user ${n}`, load);
    town.run(8_000);
    expect(town.jain).toBeGreaterThan(0.98);
    expect(town.longestWait).toBeLessThan(1.1 * longestWait);
    expect(town.answers * load.queryMs).toBeGreaterThan(0.9 * 20 * 8_000);
    laws.end();
  });

  test('databases whose limits add up to the limit for all', () => {
    const town = new Town({ capacity: 20, ofDatabase: 10 });
    const laws = new Laws(town);
    for (let n = 0; n < 40; n++) town.arrive(`user ${n}`, load, `db ${n % 2}`);
    town.run(8_000);
    expect(town.jain).toBeGreaterThan(0.98);
    expect(town.longestWait).toBeLessThan(1.1 * longestWait);
    laws.end();
  });

  test('users in several databases, each with a limit that is less than there are', () => {
    const town = new Town({ capacity: 20, ofUser: 2 });
    const laws = new Laws(town);
    for (let n = 0; n < 10; n++)
      for (const database of ['a', 'b', 'c', 'd']) town.arrive(`user ${n}`, load, database);
    town.run(8_000);
    expect(town.jain).toBeGreaterThan(0.98);
    expect(town.longestWait).toBeLessThan(1.3 * longestWait);
    laws.end();
  });

  test('two users and one connection, twice', () => {
    const town = new Town({ capacity: 1, ofDatabase: 1 });
    const laws = new Laws(town);
    for (const user of ['a', 'b']) town.arrive(user, load);
    town.run(8_000);
    expect(town.jain).toBeGreaterThan(0.98);
    expect(town.longestWait).toBeLessThan(1_000);
    laws.end();
  });
});

test.each([30, 60, 200])('a promise is kept beside %i users', (users) => {
  const town = new Town({ capacity: 20 });
  town.setTerms('promised', { minimum: 8 });
  for (let n = 0; n < users; n++) town.arrive(`user ${n}`, load);
  town.run(5_000);
  const promised = town.arrive('promised', { clients: 12, queryMs: 10 });
  town.run(1_000);
  let least = Number.POSITIVE_INFINITY;
  town.onEvent = () => {
    least = Math.min(least, promised.connections);
  };
  town.run(20_000);
  expect(least).toBeGreaterThanOrEqual(8);
  for (const { answers } of town.houses) expect(answers).toBeGreaterThan(0);
});

test('a promise of everything leaves one that goes round', () => {
  const town = new Town({ capacity: 10 });
  town.setTerms('promised', { minimum: 10 });
  town.arrive('promised', { clients: 20, queryMs: 10 });
  for (let n = 0; n < 4; n++) town.arrive(`user ${n}`, load);
  town.run(20_000);
  for (const { answers } of town.houses) expect(answers).toBeGreaterThan(0);
  expect(town.longestWait).toBeLessThan(5_000);
});

test('users that have left keep nothing from users that work: fifty a second come with one query each', () => {
  const alone = new Town({ capacity: 10 });
  const undisturbed = alone.arrive('busy', { clients: 8, queryMs: 10 });
  alone.run(20_000);

  const town = new Town({ capacity: 10 });
  const busy = town.arrive('busy', { clients: 8, queryMs: 10 });
  const passing = Array.from({ length: 1_000 }, (_, n) => {
    town.run(20);
    const house = town.arrive(`passing ${n}`, { clients: 1, queryMs: 1 });
    house.leave();
    return house;
  });
  expect(busy.answers).toBeGreaterThan(0.9 * undisturbed.answers);
  expect(Math.max(...passing.map(({ longestWait }) => longestWait))).toBeLessThan(250);
});

test.each([5, 40])(
  'a server that accepts connections and does not answer takes nothing from others, though %i users try',
  (users) => {
    const alone = new Town({ capacity: 20 });
    const undisturbed = alone.arrive('healthy', { clients: 10, queryMs: 10 });
    alone.run(12_000);

    const town = new Town({ capacity: 20 });
    const laws = new Laws(town);
    town.silent.add('dead');
    town.hasBeenSilent = true;
    for (let n = 0; n < users; n++) town.arrive(`lost ${n}`, { ...load, pauseMs: 50 }, 'dead');
    const healthy = town.arrive('healthy', { clients: 10, queryMs: 10 });
    town.run(12_000);
    expect(healthy.answers).toBeGreaterThan(0.8 * undisturbed.answers);
    town.silent.clear();
    town.run(20_000);
    for (const { answers } of town.houses) expect(answers).toBeGreaterThan(0);
    laws.end();
  },
);
