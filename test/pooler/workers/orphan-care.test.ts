// Slots of a dead worker: a slot is kept until its connection or its login is known to be over, and comes back in the end.
import { expect, test } from 'vitest';
import { quotasOf } from '../../../src/pooler/budgets/quotas.js';
import { ServerBudgets } from '../../../src/pooler/budgets/server-budgets.js';
import type { DialEnds, DialNote } from '../../../src/pooler/messages/messages.js';
import type { KnownServer } from '../../../src/pooler/supervisor/known-servers.js';
import {
  type CareTimes,
  OrphanCare,
  type OrphanCareParts,
} from '../../../src/pooler/supervisor/orphan-care.js';
import { SlotBroker, type WorkerSlots } from '../../../src/pooler/supervisor/slot-broker.js';
import { configWith } from '../config/config-files.js';

const never = 3_600_000;
/** Times that a test waits for are short; all others are longer than any test. */
const patient: CareTimes = {
  unknownMs: never,
  blindMs: never,
  longestMs: never,
  betweenLooksMs: 5,
  dials: { authenticationMs: never, graceMs: 0, longestMs: never, firstLookMs: 5, mostBetweenLooksMs: 5 },
};
const authenticationTimeoutMs = 100;

function endsOf(localPort: number): DialEnds {
  return { localAddress: '127.0.0.1', localPort, remoteAddress: '127.0.0.1', remotePort: 5_432 };
}

/** A worker that holds so many slots of one pool, and a care for what it leaves. */
function setting(held: number, times: Partial<CareTimes> = {}) {
  const broker = new SlotBroker(
    new ServerBudgets(quotasOf(configWith('limits: { maxServerConnections: 10 }\n'))),
  );
  const world = {
    known: undefined as KnownServer | undefined,
    /** By our port: the server's ends that the kernel lists. */
    listed: new Set<number>(),
    hasTable: true,
    /** Sessions that the server shows; undefined: the server can't be asked. */
    ports: undefined as Set<number> | undefined,
    processes: new Set<number>() as Set<number> | undefined,
    looks: 0,
    /** Questions of the care: several in each look. */
    asked: 0,
    log: [] as string[],
  };
  const parts: OrphanCareParts = {
    log: (_level, message, details) => world.log.push(`${message} ${JSON.stringify(details)}`),
    tlsFor: () => undefined,
    knownServer: () => {
      world.asked++;
      return world.known;
    },
    readSocketTable: async () => {
      world.looks++;
      world.asked++;
      return world.hasTable ? { hasServerEnd: ({ localPort }) => world.listed.has(localPort) } : undefined;
    },
    whichAreThere: async () => {
      world.asked++;
      return world.processes;
    },
    whichPortsAreThere: async () => {
      world.asked++;
      return world.ports;
    },
  };
  const slots = broker.slotsOf(1, () => {});
  hold(slots, held);
  const care = new OrphanCare(parts, { ...patient, ...times });
  const heldNow = (): number => broker.budgets.stats()[0]?.held ?? 0;
  const die = (): void => {
    void care.take(1, slots.close());
  };
  const dial = (server: number, more: Partial<DialNote> = {}): void => {
    slots.came({
      kind: 'dial',
      dial: { pool: 1, server, host: 'db', port: 5_432, ends: endsOf(server), ...more },
    });
  };
  return { broker, world, slots, care, heldNow, die, dial };
}

function hold(slots: WorkerSlots, count: number): void {
  slots.came({ kind: 'pool', pool: 1, user: 'app', database: 'app', server: 'db:5432', limit: 0 });
  const hasClients = true;
  const report = { pool: 1, demand: count, peak: count, hasClients, limit: 10, wanted: count, seen: 0 };
  slots.came({ kind: 'ask', report });
}

/** The care has looked several times from now on, and has acted on what it saw. */
async function severalLooks(world: { readonly asked: number }): Promise<void> {
  const { asked } = world;
  await expect.poll(() => world.asked, { timeout: 20_000 }).toBeGreaterThan(asked + 50);
}

const onThisMachine: KnownServer = { isOnThisMachine: true, authenticationMs: never };
const elsewhere: KnownServer = { isOnThisMachine: false, authenticationMs: never };

test('a slot is kept while the kernel lists the server end of its login, and is free when it does not', async () => {
  const { world, heldNow, die, dial, care } = setting(3);
  world.known = onThisMachine;
  for (const port of [1, 2, 3]) {
    dial(port);
    world.listed.add(port);
  }
  die();
  await expect.poll(() => world.looks).toBeGreaterThan(5);
  expect([heldNow(), care.waiting]).toEqual([3, 3]);
  world.listed.delete(2);
  await expect.poll(heldNow).toBe(2);
  world.listed.clear();
  await expect.poll(heldNow).toBe(0);
  expect(care.waiting).toBe(0);
  expect(world.log).toEqual([
    expect.stringMatching(/^server logins orphaned .*"worker":1,"logins":3,"visible":3,"most_ms":3600000/),
    expect.stringMatching(/^orphaned server logins ended .*"worker":1,"gone":3,"overdue":0/),
  ]);
});

test('a login that the kernel does not list is kept while the server shows its session', async () => {
  const { world, heldNow, die, dial } = setting(1);
  world.known = onThisMachine;
  world.ports = new Set([7]);
  dial(7);
  die();
  await expect.poll(() => world.looks).toBeGreaterThan(5);
  expect(heldNow()).toBe(1);
  world.ports = new Set();
  await expect.poll(heldNow).toBe(0);
});

test.each<[string, KnownServer | undefined, boolean]>([
  ['of a server that is elsewhere', elsewhere, true],
  ['of a server that nothing is known of', undefined, true],
  ['where the kernel has no list', onThisMachine, false],
])('a login %s is not taken for gone because nobody sees it', async (_, known, hasTable) => {
  const { world, heldNow, die, dial } = setting(1);
  Object.assign(world, { known, hasTable, ports: new Set() });
  dial(7);
  die();
  await severalLooks(world);
  expect(heldNow()).toBe(1);
});

test.each([
  ['as the server has said', { isOnThisMachine: false, authenticationMs: authenticationTimeoutMs }, never],
  ['as usual, where the server has said nothing', undefined, authenticationTimeoutMs],
])(
  'a login that can not be seen is over after authentication_timeout, %s',
  async (_, known, authenticationMs) => {
    const { world, heldNow, die, dial } = setting(2, { dials: { ...patient.dials, authenticationMs } });
    world.known = known;
    dial(7);
    dial(8);
    const began = performance.now();
    die();
    await expect.poll(heldNow).toBe(0);
    expect(performance.now() - began).toBeGreaterThanOrEqual(authenticationTimeoutMs);
    expect(world.log.at(-1)).toMatch(/"gone":0,"overdue":2,"still_there":0/);
  },
);

test('a session that is to be seen after authentication_timeout is waited for, and not for ever', async () => {
  const known = { isOnThisMachine: false, authenticationMs: 10 };
  const { world, heldNow, die, dial } = setting(2, { dials: { ...patient.dials, longestMs: 1_500 } });
  Object.assign(world, { known, ports: new Set([7, 8]) });
  dial(7);
  dial(8);
  die();
  await severalLooks(world);
  expect(heldNow()).toBe(2);
  world.ports = new Set([8]);
  await expect.poll(heldNow).toBe(1);
  await expect.poll(heldNow, { timeout: 20_000 }).toBe(0);
  expect(world.log.at(-1)).toMatch(/^orphaned server logins given up .*"worker":1,.*"still_there":1/);
});

test('a login that was over is looked for by its process', async () => {
  const { world, heldNow, die, dial } = setting(1);
  world.processes = new Set([77]);
  const key = { processId: 77, secretKey: Buffer.alloc(4) };
  dial(7);
  dial(7, { host: undefined, path: '/nowhere/at/all', key });
  die();
  await severalLooks(world);
  expect(heldNow()).toBe(1);
  world.processes = new Set();
  await expect.poll(heldNow).toBe(0);
});

test('a slot without a socket is free after a moment, and those with one are not', async () => {
  const { world, slots, heldNow, die, dial } = setting(5, { unknownMs: 20 });
  for (const port of [1, 2, 3]) dial(port);
  // This one has failed, and its slot is on its way back.
  slots.came({ kind: 'dialEnded', pool: 1, server: 3 });
  die();
  await expect.poll(heldNow).toBe(2);
  await severalLooks(world);
  expect(heldNow()).toBe(2);
});

test('connections, logins and slots without a socket come back each in its time', async () => {
  const { world, slots, heldNow, die, dial } = setting(3, { unknownMs: 20 });
  world.known = onThisMachine;
  world.processes = new Set([77]);
  world.listed.add(8);
  dial(7);
  dial(8);
  const note = { pool: 1, server: 7, path: '/nowhere/at/all', processId: 77, secretKey: Buffer.alloc(4) };
  slots.came({ kind: 'server', server: note });
  die();
  await expect.poll(heldNow).toBe(2);
  world.processes = new Set();
  await expect.poll(heldNow).toBe(1);
  world.listed.clear();
  await expect.poll(heldNow).toBe(0);
});

test('a connection without a key counts as a login until it is closed', async () => {
  const { world, slots, heldNow, die, dial } = setting(2, { unknownMs: 20 });
  dial(7);
  dial(8);
  slots.came({ kind: 'release', pool: 1, count: 1, servers: [7] });
  expect(heldNow()).toBe(1);
  die();
  await severalLooks(world);
  expect(heldNow()).toBe(1);
});
