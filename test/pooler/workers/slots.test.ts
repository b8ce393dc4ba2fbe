// Slots between workers and the supervisor: the real books of both sides, with messages that take a moment.
import { expect, test } from 'vitest';
import type { FairHolder } from '../../../src/coordination/fair/fair-holder.js';
import type { Leases } from '../../../src/core/leases.js';
import { quotasOf } from '../../../src/pooler/budgets/quotas.js';
import { ServerBudgets } from '../../../src/pooler/budgets/server-budgets.js';
import { readFromSupervisor, readFromWorker } from '../../../src/pooler/messages/messages.js';
import { SlotBroker } from '../../../src/pooler/supervisor/slot-broker.js';
import { SupervisorBudgets } from '../../../src/pooler/worker/supervisor-budgets.js';
import type { SupervisorLeases } from '../../../src/pooler/worker/supervisor-leases.js';
import { configWith } from '../config/config-files.js';

/** A pool of a worker that opens as many connections as it is told to, and closes what it is asked back. */
class Engine implements FairHolder {
  readonly name = 'engine';
  readonly limit: number;
  readonly #leases: Leases;
  demand = 0;
  held = 0;
  /** Does not close what it is asked back for as long as this holds. */
  isBusy = false;
  recalled = 0;

  constructor(leases: Leases, limit: number) {
    this.#leases = leases;
    this.limit = limit;
  }

  want(count: number): void {
    this.demand = count;
    this.#open();
  }

  #open(): void {
    while (this.held < this.demand && this.#leases.acquire(1, this) === 'granted') this.held++;
  }

  close(count = 1): void {
    this.held -= count;
    this.recalled = Math.max(0, this.recalled - count);
    this.#leases.release(count, this);
    if (!this.isBusy) this.#open();
  }

  /** Whatever it has too much of has been idle for long. */
  get longestIdleSince(): number | undefined {
    return this.held > this.demand ? 0 : undefined;
  }

  takeDemandPeak(): number {
    return this.demand;
  }

  leasesAvailable(): void {
    this.#open();
  }

  leasesGranted(count: number): number {
    const taken = Math.min(count, Math.max(0, this.demand - this.held));
    this.held += taken;
    this.recalled = Math.max(0, this.recalled - taken);
    this.#open();
    return taken;
  }

  leasesRefused(): void {}
  leasesLost(): void {}

  leasesRecalled(count: number): void {
    this.recalled = count;
    if (!this.isBusy && count > 0) queueMicrotask(() => this.close(Math.min(this.recalled, this.held)));
  }
}

/** A worker and its slots; what they say arrives later, in order, and is checked. */
function worker(broker: SlotBroker, number: number) {
  const budgets: SupervisorBudgets = new SupervisorBudgets((raw) => {
    const message = readFromWorker(structuredClone(raw));
    setImmediate(() => slots.came(message as NonNullable<typeof message>));
  });
  const slots = broker.slotsOf(number, (raw) => {
    const message = readFromSupervisor(structuredClone(raw));
    setImmediate(() => {
      if (message?.kind === 'granted') budgets.granted(message.pool);
      if (message?.kind === 'recalled') budgets.recalled(message.pool, message.count, message.hanging);
      if (message?.kind === 'keep') budgets.toKeep(message.pool, message.count);
    });
  });
  const leasesOf = (user: string): SupervisorLeases =>
    budgets.leasesFor({ user, database: 'app', server: 'db:5432' });
  return { slots, leasesOf, engine: (user: string, limit: number) => new Engine(leasesOf(user), limit) };
}

function broker(yaml = ''): SlotBroker {
  return new SlotBroker(new ServerBudgets(quotasOf(configWith(yaml))));
}

test('Slots of several workers are no more than the size of the pool, and both get their part of it', async () => {
  const slots = broker();
  const one = worker(slots, 1).engine('app', 5);
  const other = worker(slots, 2).engine('app', 5);
  one.want(5);
  await expect.poll(() => one.held).toBe(5);
  other.want(5);
  await expect.poll(() => [one.held, other.held].sort()).toEqual([2, 3]);
  expect(slots.peaks()).toEqual([{ database: 'app', user: 'app', peak: 5 }]);
});

test('Slots of several workers go to the one that needs them', async () => {
  const slots = broker();
  const one = worker(slots, 1).engine('app', 4);
  const other = worker(slots, 2).engine('app', 4);
  one.want(4);
  await expect.poll(() => one.held).toBe(4);
  one.demand = 1;
  other.want(3);
  await expect.poll(() => [one.held, other.held], { timeout: 5_000 }).toEqual([1, 3]);
});

test('Slots of several workers move when the connection is gone, and not before', async () => {
  const slots = broker();
  const one = worker(slots, 1).engine('app', 2);
  const other = worker(slots, 2).engine('app', 2);
  one.isBusy = true;
  one.want(2);
  await expect.poll(() => one.held).toBe(2);
  other.want(1);
  await expect.poll(() => one.recalled).toBeGreaterThan(0);
  expect(other.held).toBe(0);
  one.close();
  await expect.poll(() => other.held).toBe(1);
});

test('Slots of several workers are within every budget above the pools', async () => {
  const slots = broker('limits: { maxServerConnections: 3 }\n');
  const workers = [worker(slots, 1), worker(slots, 2)];
  const engines = workers.flatMap((of) => ['a', 'b'].map((user) => of.engine(user, 10)));
  let most = 0;
  for (const engine of engines) engine.want(5);
  await expect
    .poll(() => {
      const held = engines.reduce((sum, engine) => sum + engine.held, 0);
      most = Math.max(most, held);
      return held;
    })
    .toBe(3);
  const [stats] = slots.budgets.stats();
  expect(stats).toMatchObject({ budget: 'total', capacity: 3, held: 3 });
  expect(most).toBe(3);
});

test('Slots of several workers that are not taken when they come go back at once', async () => {
  const slots = broker('limits: { maxServerConnections: 1 }\n');
  const one = worker(slots, 1).engine('app', 1);
  const other = worker(slots, 2).engine('app', 1);
  one.want(1);
  one.demand = 0;
  await expect.poll(() => slots.budgets.stats()[0]?.held).toBe(0);
  other.want(1);
  await expect.poll(() => other.held).toBe(1);
});

test('Slots of several workers are for connections that are being opened, until the worker tells that they are there', async () => {
  const dead = worker(broker(), 1);
  const one = dead.engine('app', 3);
  one.want(3);
  await expect.poll(() => one.held).toBe(3);
  dead.slots.came({
    kind: 'server',
    server: { pool: 1, server: 7, processId: 1, secretKey: Buffer.alloc(4) },
  });
  const [left] = dead.slots.close();
  expect(left).toMatchObject({ held: 3, pending: 2 });
});

test('Slots of several workers of a worker that is no more are free when they are given back for it', async () => {
  const slots = broker();
  const dead = worker(slots, 1);
  const one = dead.engine('app', 2);
  const other = worker(slots, 2).engine('app', 2);
  one.want(2);
  await expect.poll(() => one.held).toBe(2);
  const [left] = dead.slots.close();
  other.want(2);
  expect(left?.held).toBe(2);
  left?.released(1);
  await expect.poll(() => other.held).toBe(1);
  left?.released(1);
  await expect.poll(() => other.held).toBe(2);
});

/** Slots that each worker keeps when it is asked for its part, after all messages have come and were answered. */
async function parts(workers: readonly SupervisorLeases[], size: number): Promise<number[]> {
  for (const leases of workers) leases.partToKeep(size);
  for (let hops = 0; hops < 3; hops++) await new Promise(setImmediate);
  return workers.map((leases) => leases.partToKeep(size));
}

test('The connections that a pool is kept at are none until it is known who else keeps some', () => {
  expect(worker(broker(), 1).leasesOf('app').partToKeep(3)).toBe(0);
});

test.each([
  [7, [3, 2, 2]],
  [6, [2, 2, 2]],
  [2, [1, 1, 0]],
  [0, [0, 0, 0]],
])('The connections that a pool is kept at %d of them are the parts %j', async (size, expected) => {
  const slots = broker();
  const workers = [1, 2, 3].map((number) => worker(slots, number).leasesOf('app'));
  expect(await parts(workers, size)).toEqual(expected);
});

test('The connections that a pool is kept at are shared out again when a worker keeps none any more, when its pool is gone, and when it has died', async () => {
  const slots = broker();
  const workers = [1, 2, 3, 4].map((number) => worker(slots, number));
  const [one, two, three, four] = workers.map(({ leasesOf }) => leasesOf('app')) as [
    SupervisorLeases,
    SupervisorLeases,
    SupervisorLeases,
    SupervisorLeases,
  ];
  expect(await parts([one, two, three, four], 5)).toEqual([2, 1, 1, 1]);
  expect(one.partToKeep(0)).toBe(0);
  expect(await parts([two, three, four], 5)).toEqual([2, 2, 1]);
  two.leave();
  expect(await parts([three, four], 5)).toEqual([3, 2]);
  workers[2]?.slots.close();
  expect(await parts([four], 5)).toEqual([5]);
  expect(await parts([four], 4)).toEqual([4]);
});

test('The connections that a pool is kept at of one user are not those of another', async () => {
  const slots = broker();
  expect(await parts([worker(slots, 1).leasesOf('a'), worker(slots, 2).leasesOf('b')], 3)).toEqual([3, 3]);
});
