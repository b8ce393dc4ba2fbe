// @ts-check
// What leases in DynamoDB cost: writes for each connection that is opened, in a fleet that replaces its connections as they grow
// old, and what an acquire takes when a slot is in hand. In virtual time, on the product's own protocol.
//
//     node bench/dynamodb/cost.mjs [instances] [connections each] [lifetime in minutes]
import { leaseKeys } from '../../dist/coordination/dynamodb/lease-items.js';
import { TableLeases } from '../../dist/coordination/dynamodb/table-leases.js';
import { SeededRandom } from '../../dist/kernel/random.js';
import { MemoryTable } from '../../dist/simulator/dynamodb/memory-table.js';
import { noTableFaults, RemoteTable } from '../../dist/simulator/dynamodb/remote-table.js';
import { ServiceAlarm, ServiceClock } from '../../dist/simulator/service-clock.js';
import { Timeline } from '../../dist/simulator/timeline.js';

const [instances = 40, connections = 100, lifeMinutes = 11] = process.argv.slice(2).map(Number);
const minute = 60_000;
const dialMs = 100;
const timeline = new Timeline();
const table = new MemoryTable();
const random = new SeededRandom(1);
let opened = 0;

for (let n = 0; n < instances; n++) startInstance(`i${n}`);

timeline.runUntil(2 * lifeMinutes * minute);
const before = { writes: table.writes, opened };
timeline.runUntil(timeline.now + 60 * minute);
const writes = table.writes - before.writes;
const replaced = opened - before.opened;
console.log(
  `${instances} instances with ${connections} connections that live ${lifeMinutes} minutes, for an hour:`,
);
console.log(
  `  ${replaced} connections opened, ${writes} items written: ${(writes / replaced).toFixed(3)} for each`,
);
console.log(`  a lease for each connection, as the seed has it: 4 for each, ${4 * replaced}`);
console.log(`  an acquire with a slot in hand: ${acquireNs().toFixed(0)} ns, and no call`);

/** @param {string} name */
function leasesOf(name) {
  const clock = new ServiceClock(timeline, 0, 0);
  /** @type {import('../../dist/kernel/clock.js').AlarmFactory} */
  const alarm = (ring) => new ServiceAlarm(timeline, clock, ring, (action) => action());
  const remote = new RemoteTable(table, {
    now: () => timeline.now,
    later: (delayMs, run) => void timeline.plan(timeline.now + delayMs, run),
    halfWayMs: () => 4 * (0.5 + random.next()),
    isCutOff: () => false,
    faults: () => noTableFaults,
    random,
  });
  const settings = {
    ...{ keys: leaseKeys('bench'), leaseId: name, instance: name, service: 'bench', limit: 10_000 },
    ...{ leaseMs: 180_000, renewMs: 60_000, graceMs: 30_000, lookMs: 5_000, block: 20, localShare: 0 },
    onCoordinatorLoss: /** @type {const} */ ('hold'),
  };
  return new TableLeases(remote, settings, { clock, alarm, random, timeoutMs: 5_000 });
}

/** @param {string} name */
function startInstance(name) {
  const leases = leasesOf(name);
  let wanted = connections;
  const holder = { name, leasesAvailable: grow, leasesRefused: () => {}, leasesLost: () => {} };
  timeline.plan(random.next() * 5_000, grow);

  function grow() {
    while (wanted > 0 && leases.acquire(1, holder) === 'granted') {
      wanted--;
      opened++;
      const life = lifeMinutes * minute + (random.next() - 0.5) * 2 * minute;
      timeline.plan(timeline.now + dialMs + life, () => {
        leases.release(1, holder);
        wanted++;
        grow();
      });
    }
  }
}

function acquireNs() {
  const leases = leasesOf('timed');
  const holder = { name: 'timed', leasesAvailable: () => {}, leasesRefused: () => {}, leasesLost: () => {} };
  leases.acquire(1, holder);
  timeline.runUntil(timeline.now + 1_000);
  const rounds = 200_000;
  const began = performance.now();
  for (let n = 0; n < rounds; n++) {
    if (leases.acquire(1, holder) !== 'granted') throw new Error('no slot was in hand');
    leases.release(1, holder);
  }
  return ((performance.now() - began) * 1e6) / rounds;
}
