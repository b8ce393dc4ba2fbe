// Which worker gets a client, decided from what the supervisor knows.
import { expect, test } from 'vitest';
import {
  ClientPlacement,
  type ClientPool,
  type Newcomer,
} from '../../../src/pooler/supervisor/client-placement.js';

interface FakeWorker {
  readonly number: number;
}

const plenty = (): number => Number.POSITIVE_INFINITY;

function pool(user: string): ClientPool {
  return { key: user, user, database: 'app', server: 'db:5432', size: 20 };
}

/** Workers, and clients that come to them one after the other. */
class World {
  readonly workers: FakeWorker[];
  readonly placement: ClientPlacement<FakeWorker>;
  now = 0;
  #lastTicket = 0;

  constructor(workers: number, widthOf: (pool: ClientPool, newcomers: readonly Newcomer[]) => number) {
    this.workers = Array.from({ length: workers }, (_, index) => ({ number: index + 1 }));
    this.placement = new ClientPlacement(widthOf, () => this.now);
  }

  /** The number of the worker, and the client's ticket. */
  come(user: string | undefined, among = this.workers): { worker: number; ticket: number } {
    const of = user === undefined ? undefined : pool(user);
    const worker = this.placement.choose(of, among) as FakeWorker;
    const ticket = ++this.#lastTicket;
    this.placement.placed(ticket, worker, of);
    return { worker: worker.number, ticket };
  }

  /** Where so many clients of a user go. */
  comeAll(user: string | undefined, count: number): number[] {
    return Array.from({ length: count }, () => this.come(user).worker);
  }

  get loads(): number[] {
    return this.workers.map((worker) => this.placement.loadOf(worker));
  }
}

function counts(workers: readonly number[]): number[] {
  const found = new Map<number, number>();
  for (const worker of workers) found.set(worker, (found.get(worker) ?? 0) + 1);
  return [...found.values()].sort((one, other) => one - other);
}

test('ClientPlacement gives clients whose pool is not known to the worker with the fewest, by turns', () => {
  expect(new World(3, plenty).comeAll(undefined, 6)).toEqual([1, 2, 3, 1, 2, 3]);
});

test('ClientPlacement keeps the clients of a pool on one worker while they are few, and the pools apart', () => {
  const world = new World(2, plenty);
  for (let user = 0; user < 10; user++) expect(new Set(world.comeAll(`user ${user}`, 4)).size).toBe(1);
  expect(world.loads).toEqual([20, 20]);
});

test('ClientPlacement does the same when clients of all pools come in turns', () => {
  const world = new World(4, plenty);
  const workers = new Map<string, Set<number>>();
  for (let client = 0; client < 4; client++)
    for (let user = 0; user < 40; user++) {
      const name = `user ${user}`;
      workers.set(name, (workers.get(name) ?? new Set()).add(world.come(name).worker));
    }
  expect([...workers.values()].every(({ size }) => size === 1)).toBe(true);
  expect(world.loads).toEqual([40, 40, 40, 40]);
});

test.each([
  [5, [1, 4]],
  [8, [4, 4]],
  [9, [1, 4, 4]],
  [64, [16, 16, 16, 16]],
])(
  'ClientPlacement gives a pool with %d clients and enough connections the workers %j',
  (clients, expected) => {
    expect(counts(new World(4, plenty).comeAll('busy', clients))).toEqual(expected);
  },
);

test('ClientPlacement gives a pool no more workers than it has connections for', () => {
  expect(counts(new World(4, () => 1).comeAll('busy', 100))).toEqual([100]);
  expect(counts(new World(4, () => 2).comeAll('busy', 100))).toEqual([50, 50]);
});

test('ClientPlacement brings a pool back to the worker with most of its clients when connections become scarce', () => {
  let width = 2;
  const world = new World(2, () => width);
  const first = world.comeAll('busy', 5);
  expect(counts(first)).toEqual([1, 4]);
  width = 1;
  expect(new Set(world.comeAll('busy', 10))).toEqual(new Set([first[0]]));
});

test('ClientPlacement tells newcomers, with their clients, for a second after the first of them', () => {
  const seen: string[][] = [];
  const world = new World(2, (_, newcomers) => {
    seen.push(newcomers.map(({ pool: { user }, clients }) => `${user} ${clients}`));
    return 1;
  });
  world.comeAll('first', 3);
  world.now = 600;
  world.comeAll('second', 5);
  world.now = 1_000;
  world.comeAll('second', 1);
  expect(seen).toEqual([['first 3', 'second 4'], ['second 5']]);
});

test('ClientPlacement forgets a pool without clients, and counts no client twice', () => {
  const world = new World(2, plenty);
  const { ticket } = world.come('app');
  world.placement.gone(ticket);
  world.placement.gone(ticket);
  expect([world.loads, world.placement.pools]).toEqual([[0, 0], 0]);
});

test('ClientPlacement sends the clients of a worker that has ended to the others, all to the same one', () => {
  const world = new World(3, plenty);
  const { worker } = world.come('app');
  world.comeAll('app', 3);
  world.placement.left(world.workers[worker - 1] as FakeWorker);
  expect(world.placement.pools).toBe(0);
  const others = world.workers.filter(({ number }) => number !== worker);
  const found = Array.from({ length: 4 }, () => world.come('app', others).worker);
  expect(new Set(found).size).toBe(1);
  expect(found).not.toContain(worker);
});

test('ClientPlacement goes elsewhere while the home of a pool does not take clients, and returns to where most are', () => {
  const world = new World(2, () => 1);
  const home = world.comeAll('app', 3)[0] as number;
  const other = world.workers.filter(({ number }) => number !== home);
  expect(world.come('app', other).worker).toBe(other[0]?.number);
  expect(world.come('app').worker).toBe(home);
});

test('ClientPlacement chooses no worker where there is none', () => {
  expect(new World(0, plenty).placement.choose(pool('app'), [])).toBeUndefined();
});
