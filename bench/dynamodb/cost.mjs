// @ts-check
// The cost of leases in DynamoDB: writes for each connection that is opened, in fleets whose connections are replaced as they grow
// old, and in fleets whose demand goes up and down; and what an acquire takes when a slot is in hand. In virtual time, on the
// product's own protocol. Ends with 1 when the steady fleets write more than a fifth of an item for each connection.
//
//     node bench/dynamodb/cost.mjs [instances] [connections each] [lifetime in minutes]
import { leaseKeys } from '../../dist/coordination/dynamodb/lease-items.js';
import { rateKey } from '../../dist/coordination/dynamodb/rate-items.js';
import { TableLeases } from '../../dist/coordination/dynamodb/table-leases.js';
import { TableRateLimiter } from '../../dist/coordination/dynamodb/table-rate-limiter.js';
import { SeededRandom } from '../../dist/kernel/random.js';
import { MemoryTable } from '../../dist/simulator/leases/dynamodb/memory-table.js';
import { noTableFaults, RemoteTable } from '../../dist/simulator/leases/dynamodb/remote-table.js';
import { ServiceAlarm, ServiceClock } from '../../dist/simulator/time/service-clock.js';
import { Timeline } from '../../dist/simulator/time/timeline.js';

/** @typedef {import('../../dist/coordination/dynamodb/table.js').Table} Table */

const minute = 60_000;
const dialMs = 100;
const target = 0.2;
/** An item of a lease is about so large; DynamoDB bills consistent reads by 4 KB, of a scan all together. */
const itemBytes = 350;

/** Writes that DynamoDB would bill, whether or not the change was made: one whose condition fails costs as much. */
class Bill {
  writeRequests = 0;
  items = 0;
  writeUnits = 0;
  readRequests = 0;
  readUnits = 0;

  /** @param {Bill} before */
  since(before) {
    const bill = new Bill();
    for (const name of /** @type {(keyof Bill)[]} */ (Object.keys(bill)))
      if (name !== 'since') bill[name] = this[name] - before[name];
    return bill;
  }
}

class World {
  timeline = new Timeline();
  table = new MemoryTable();
  random = new SeededRandom(1);
  bill = new Bill();
  opened = 0;
  /** Acquires that were answered at once, and that had to wait for the table. */
  atOnce = 0;
  asked = 0;

  /** @returns {Table} */
  billedTable() {
    const { timeline, random, bill } = this;
    const remote = new RemoteTable(this.table, {
      now: () => timeline.now,
      later: (delayMs, run) => void timeline.plan(timeline.now + delayMs, run),
      halfWayMs: () => 4 * (0.5 + random.next()),
      isCutOff: () => false,
      faults: () => noTableFaults,
      random,
    });
    /** @param {number} items @param {number} units */
    const wrote = (items, units) => {
      bill.writeRequests++;
      bill.items += items;
      bill.writeUnits += units;
    };
    return {
      read: (key, answer) => {
        bill.readRequests++;
        bill.readUnits++;
        return remote.read(key, answer);
      },
      list: (prefix, answer) =>
        remote.list(prefix, (reply) => {
          bill.readRequests++;
          if (reply.kind === 'done')
            bill.readUnits += Math.max(1, Math.ceil((reply.value.length * itemBytes) / 4096));
          answer(reply);
        }),
      write: (change, answer) => {
        wrote(1, 1);
        return remote.write(change, answer);
      },
      writeAll: (changes, token, answer) => {
        wrote(changes.length, 2 * changes.length);
        return remote.writeAll(changes, token, answer);
      },
    };
  }

  callWorld() {
    const { timeline, random } = this;
    const clock = new ServiceClock(timeline, 0, 0);
    /** @type {import('../../dist/kernel/clock.js').AlarmFactory} */
    const alarm = (ring) => new ServiceAlarm(timeline, clock, ring, (action) => action());
    return { clock, alarm, random, timeoutMs: 5_000 };
  }

  /** @param {string} name */
  leases(name) {
    const settings = {
      ...{ keys: leaseKeys('bench'), leaseId: name, instance: name, service: 'bench', limit: 10_000 },
      ...{ leaseMs: 180_000, renewMs: 90_000, graceMs: 30_000, lookMs: 5_000, block: 20, localShare: 0 },
      onCoordinatorLoss: /** @type {const} */ ('hold'),
    };
    return new TableLeases(this.billedTable(), settings, this.callWorld());
  }

  limiter() {
    const settings = { key: rateKey('bench'), rate: 100, burst: 1_000, batch: 10, maxWaitMs: 30_000 };
    return new TableRateLimiter(this.billedTable(), { ...settings, localShare: undefined }, this.callWorld());
  }
}

/**
 * A pool: opens what it wants, replaces what is old, and closes what nobody uses.
 *
 * @param {World} world
 * @param {string} name
 * @param {{ lifeMinutes: number, wants: (atMs: number) => number, hasRate: boolean }} load
 */
function startInstance(world, name, { lifeMinutes, wants, hasRate }) {
  const { timeline, random } = world;
  const leases = world.leases(name);
  const limiter = hasRate ? world.limiter() : undefined;
  let size = 0;
  let isWaiting = false;
  const holder = { name, leasesAvailable, leasesGranted, leasesRefused: () => {}, leasesLost: () => {} };
  const offset = random.next() * 5_000;
  timeline.plan(offset, tick);

  function tick() {
    grow();
    timeline.plan(timeline.now + 5_000, tick);
  }

  function leasesAvailable() {
    isWaiting = false;
    grow();
  }

  /** @param {number} count */
  function leasesGranted(count) {
    isWaiting = false;
    const taken = size < Math.round(wants(timeline.now)) ? count : 0;
    size += taken;
    if (taken > 0) permitted(open);
    grow();
    return taken;
  }

  function grow() {
    while (!isWaiting && size < Math.round(wants(timeline.now))) {
      const isGranted = leases.acquire(1, holder) === 'granted';
      if (isGranted) world.atOnce++;
      else world.asked++;
      isWaiting = !isGranted;
      if (!isGranted) break;
      size++;
      permitted(open);
    }
  }

  /** @param {() => void} then */
  function permitted(then) {
    const waitMs = limiter?.take(0) ?? 0;
    if (waitMs === 0) then();
    else timeline.plan(timeline.now + Math.ceil(waitMs), () => permitted(then));
  }

  function open() {
    world.opened++;
    const life = lifeMinutes * minute + (random.next() - 0.5) * 2 * minute;
    const endsAt = timeline.now + dialMs + life;
    // A connection that is not wanted any more is closed as soon as that is seen, the rest at its age.
    const look = () => {
      if (timeline.now < endsAt && size <= Math.round(wants(timeline.now)))
        timeline.plan(Math.min(endsAt, timeline.now + 10_000), look);
      else {
        size--;
        leases.release(1, holder);
        grow();
      }
    };
    timeline.plan(timeline.now + 10_000 * random.next(), look);
  }
}

/**
 * @param {string} title
 * @param {number} instances
 * @param {{ lifeMinutes: number, wants: (atMs: number) => number, hasRate: boolean }} load
 */
function measure(title, instances, load) {
  const world = new World();
  const { timeline } = world;
  for (let n = 0; n < instances; n++) startInstance(world, `i${n}`, load);
  timeline.runUntil(2 * load.lifeMinutes * minute);
  const { opened: openedBefore, atOnce, asked: askedBefore } = world;
  const before = world.bill.since(new Bill());
  timeline.runUntil(timeline.now + 60 * minute);
  const opened = world.opened - openedBefore;
  const bill = world.bill.since(before);
  /** @param {number} count */
  const each = (count) => (count / opened).toFixed(3);
  console.log(`${title}, for an hour:`);
  console.log(`  ${opened} connections opened`);
  console.log(
    `  ${bill.writeRequests} requests to write (${each(bill.writeRequests)} for each connection), ` +
      `${bill.items} items (${each(bill.items)}), ${bill.writeUnits} write units (${each(bill.writeUnits)})`,
  );
  console.log(
    `  ${bill.readRequests} requests to read, ${bill.readUnits} read units (${each(bill.readUnits)})`,
  );
  const asked = world.asked - askedBefore;
  const all = asked + world.atOnce - atOnce;
  console.log(`  ${all - asked} of ${all} acquires were answered at once, from slots in hand`);
  return bill.items / opened;
}

function acquireNs() {
  const world = new World();
  const leases = world.leases('timed');
  const holder = {
    name: 'timed',
    leasesAvailable: () => {},
    leasesGranted: () => 0,
    leasesRefused: () => {},
    leasesLost: () => {},
  };
  leases.acquire(1, holder);
  world.timeline.runUntil(1_000);
  const { writeRequests, readRequests } = world.bill;
  const rounds = 200_000;
  const began = performance.now();
  for (let n = 0; n < rounds; n++) {
    if (leases.acquire(1, holder) !== 'granted') throw new Error('no slot was in hand');
    leases.release(1, holder);
  }
  const ns = ((performance.now() - began) * 1e6) / rounds;
  const calls = world.bill.writeRequests + world.bill.readRequests - writeRequests - readRequests;
  console.log(
    `an acquire with a slot in hand, and its release: ${ns.toFixed(0)} ns, and ${calls} calls in ${rounds}`,
  );
  return calls;
}

const [instances = 40, connections, lifeMinutes = 11] = process.argv.slice(2).map(Number);
console.log(
  'Counted are requests that write, items in them, and units as DynamoDB bills them: 1 for an item of up to 1 KB, 2 within a transaction,',
);
console.log('also for those that were refused. A lease for each connection would be 4 items and 8 units.');
console.log();
const steady = (connections === undefined ? [50, 100] : [connections]).map((each) =>
  measure(`${instances} instances with ${each} connections that live ${lifeMinutes} minutes`, instances, {
    ...{ lifeMinutes, wants: () => each, hasRate: false },
  }),
);
measure(`${instances} instances with 25 to 75 connections, more and fewer every half hour`, instances, {
  lifeMinutes,
  wants: (at) => 50 + 25 * Math.sin((at / (30 * minute)) * 2 * Math.PI),
  hasRate: false,
});
measure(`${instances} instances with 50 connections, and with a rate limit in the table`, instances, {
  ...{ lifeMinutes, wants: () => 50, hasRate: true },
});
const calls = acquireNs();
const worst = Math.max(...steady);
const isGood = worst < target && calls === 0;
console.log(
  `${isGood ? 'PASSED' : 'FAILED'}: ${worst.toFixed(3)} items written for each connection, in a steady fleet; less than ${target} is the aim`,
);
if (!isGood) process.exitCode = 1;
