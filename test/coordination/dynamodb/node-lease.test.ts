// Node ids in a table: held by one generator at a time, and never used for the same id twice.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { giveNodeBack, nodeOf, takeNode } from '../../../src/coordination/dynamodb/node-items.js';
import { MemoryTable } from '../../../src/simulator/leases/dynamodb/memory-table.js';
import { epochMs } from '../../../src/simulator/leases/dynamodb/remote-table.js';
import { type Holder, keys, NodeFleet } from './node-fleet.js';

const runs = Number(process.env['HEADGATE_RUNS'] ?? 40);

test('node ids in a table are leased with two calls, and renewed without a pause', () => {
  const fleet = new NodeFleet({ seed: 1 });
  const one = fleet.start();
  fleet.run(100);
  expect(one.lease.grant()?.nodeId).toBeTypeOf('number');
  expect(fleet.table.writes).toBe(1);
  for (let second = 0; second < 300; second++) {
    fleet.run(1_000);
    one.make(1);
  }
  expect(fleet.made).toBe(300);
  expect(fleet.table.writes).toBeLessThan(40);
});

test('node ids in a table differ between holders, and the last one that comes is told that all are held', () => {
  const fleet = new NodeFleet({ seed: 2 });
  const holders = Array.from({ length: 5 }, () => fleet.start());
  fleet.run(5_000);
  const nodes = holders.map(({ lease }) => lease.grant()?.nodeId).sort();
  expect(nodes).toEqual([0, 1, 2, 3, undefined]);
  const without = holders.find(({ lease }) => lease.grant() === undefined) as Holder;
  expect(without.lease.error()).toMatchObject({ code: 'HG_NODE_ID', reason: 'exhausted' });
  // One that is given back is found.
  holders.find((holder) => holder !== without)?.end();
  fleet.run(30_000);
  expect(without.lease.grant()).toBeDefined();
});

test('node ids in a table stop by the holder that is cut off, before another can have them', () => {
  const fleet = new NodeFleet({ seed: 3, settings: { from: 7, to: 7 } });
  const one = fleet.start();
  fleet.run(1_000);
  one.isCutOff = true;
  const other = fleet.start();
  let ended: number | undefined;
  let taken: number | undefined;
  for (let n = 0; n < 600 && taken === undefined; n++) {
    fleet.run(100);
    if (one.lease.grant() === undefined) ended ??= fleet.timeline.now;
    if (other.lease.grant() !== undefined) taken = fleet.timeline.now;
  }
  expect(one.lease.error()).toMatchObject({ reason: 'expired' });
  // The grace lies between the two.
  expect((taken as number) - (ended as number)).toBeGreaterThan(9_000);
  one.isCutOff = false;
  fleet.run(20_000);
  expect(one.lost).toEqual([7]);
  expect(one.lease.grant()).toBeUndefined();
});

test('node ids in a table are leased from when the call was sent, however long the answer takes', () => {
  const fleet = new NodeFleet({ seed: 7, halfWayMs: 900 });
  const one = fleet.start();
  fleet.run(5_000);
  one.isCutOff = true;
  for (let n = 0; n < 800; n++) {
    fleet.run(50);
    one.make(1);
  }
  expect(fleet.made).toBeGreaterThan(400);
  expect(fleet.problems).toEqual([]);
});

test('node ids in a table return to their holder if no other holder has taken its place', () => {
  const fleet = new NodeFleet({ seed: 4 });
  const one = fleet.start();
  fleet.run(1_000);
  const before = one.lease.grant()?.nodeId;
  one.isCutOff = true;
  fleet.run(60_000);
  expect(one.lease.grant()).toBeUndefined();
  one.isCutOff = false;
  fleet.run(10_000);
  expect(one.lease.grant()?.nodeId).toBe(before);
  expect(one.lost).toEqual([]);
});

test('node ids in a table that were given back are taken again only when the time of their last id is past', () => {
  const fleet = new NodeFleet({ seed: 5, settings: { from: 0, to: 0 } });
  const one = fleet.start();
  fleet.run(1_000);
  // Its clock is ahead, and the clock of the next one is right.
  one.setClock(20_000);
  one.make(1);
  one.end();
  fleet.run(100);
  expect(nodeOf(fleet.table.get(`${keys}0`))).toMatchObject({ owner: '', idsUntilMs: one.sequence.timeMs });
  const other = fleet.start();
  fleet.run(19_000);
  expect(other.lease.grant()).toBeUndefined();
  fleet.run(15_000);
  expect(other.lease.grant()?.afterMs).toBe(one.sequence.timeMs);
  other.make(1);
  expect(fleet.made).toBe(2);
  expect(fleet.problems).toEqual([]);
});

test('node ids in a table allow for no id after the time that was written down, though the clock jumps ahead', () => {
  const fleet = new NodeFleet({ seed: 6 });
  const one = fleet.start();
  fleet.run(1_000);
  one.setClock(3_600_000);
  one.make(1);
  expect(fleet.made).toBe(0);
  fleet.run(100);
  one.make(1);
  expect(fleet.made).toBe(1);
  const { nodeId } = one.lease.grant() as { nodeId: number };
  const { idsUntilMs } = nodeOf(fleet.table.get(keys + nodeId));
  expect(idsUntilMs).toBeGreaterThanOrEqual(one.sequence.timeMs);
  expect(idsUntilMs).toBeGreaterThan(epochMs + 3_600_000);
});

test('node ids in a table are not taken by one that has seen them before another took them and gave them back', () => {
  const table = new MemoryTable();
  const claim = (owner: string, seq: number, idsUntilMs: number) => ({
    ...{ key: `${keys}1`, nodeId: 1, owner, instance: owner, service: 'test', seq },
    ...{ nowMs: 1_000, expiresMs: 2_000, idsUntilMs },
  });
  table.apply([takeNode(claim('a', 1, 100), undefined)]);
  table.apply([giveNodeBack(claim('a', 2, 50))]);
  const seen = nodeOf(table.get(`${keys}1`));
  table.apply([takeNode(claim('b', 3, 200), seen)]);
  table.apply([giveNodeBack(claim('b', 4, 150))]);
  expect(table.apply([takeNode(claim('c', 3, 300), seen)])).toMatchObject([{ isRefused: true }]);
  expect(nodeOf(table.get(`${keys}1`))).toMatchObject({ owner: '', idsUntilMs: 150 });
});

const action = fc.oneof(
  { weight: 6, arbitrary: fc.constant('make' as const) },
  fc.constantFrom(
    'start',
    'kill',
    'pause',
    'freeze',
    'resume',
    'cut',
    'join',
    'clock',
    'end',
    'storm',
    'calm',
  ),
);
const step = fc.record({
  action,
  who: fc.nat(9),
  ms: fc.oneof(fc.nat(500), fc.nat(60_000)),
  by: fc.oneof(fc.integer({ min: -9_000, max: 9_000 }), fc.integer({ min: -1e8, max: 1e8 })),
});

test('node ids in a table never make the same id twice, whatever happens to holders, clocks and calls', () => {
  fc.assert(
    fc.property(fc.nat(), fc.array(step, { minLength: 20, maxLength: 120 }), (seed, steps) => {
      const fleet = new NodeFleet({ seed, skewMs: 120_000, late: 0.05, twice: 0.1 });
      for (let n = 0; n < 3; n++) fleet.start();
      for (const { action: what, who, ms, by } of steps) {
        fleet.run(ms);
        const holder = fleet.holders[who % fleet.holders.length] as Holder;
        if (what === 'make') for (const each of fleet.holders) each.make(3);
        if (what === 'start' && fleet.holders.length < 10) fleet.start();
        if (what === 'kill') holder.kill();
        if (what === 'pause') holder.pause();
        if (what === 'freeze') holder.freeze();
        if (what === 'resume') holder.resume();
        if (what === 'cut') holder.isCutOff = true;
        if (what === 'join') holder.isCutOff = false;
        if (what === 'clock') holder.setClock(by);
        if (what === 'end') holder.end();
        if (what === 'storm')
          fleet.faults = { lostRequests: 0.2, lostReplies: 0.3, conflicts: 0, throttles: 0.2 };
        if (what === 'calm') fleet.faults = { lostRequests: 0, lostReplies: 0, conflicts: 0, throttles: 0 };
        for (const each of fleet.holders) each.make(1);
      }
      expect(fleet.problems).toEqual([]);
    }),
    { numRuns: runs },
  );
});
