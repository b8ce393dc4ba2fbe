// Snowflake ids as a program uses them.
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { IdClockError, localNodeIds, NodeIdError, Snowflake } from '../../../src/dsql.js';

const epoch = Date.UTC(2024, 0, 1);

afterEach(() => {
  vi.useRealTimers();
});

test('Snowflake puts 41 bits of time, 10 of node and 12 of sequence into an id', () => {
  let now = epoch + 5;
  const ids = new Snowflake({ nodeId: 3, clock: () => now });
  expect(ids.next()).toBe((5n << 22n) | (3n << 12n));
  expect(ids.next()).toBe((5n << 22n) | (3n << 12n) | 1n);
  now = epoch + 2 ** 41 - 1;
  const last = new Snowflake({ nodeId: 1_023, clock: () => now }).next();
  expect(last).toBe(2n ** 63n - 1n - 4_095n);
});

test('Snowflake is read back as it was made, for any epoch, node and time', () => {
  const parts = fc.record({
    epochMs: fc.integer({ min: 0, max: epoch }),
    time: fc.integer({ min: 0, max: 2 ** 41 - 1 }),
    nodeId: fc.nat(1_023),
    sequence: fc.nat(4_095),
  });
  fc.assert(
    fc.property(parts, ({ epochMs, time, nodeId, sequence }) => {
      const now = epochMs + time;
      const ids = new Snowflake({ nodeId, epoch: new Date(epochMs), as: 'text', clock: () => now });
      for (let n = 0; n < sequence; n++) ids.next();
      expect(Snowflake.parse(ids.next(), { epoch: epochMs })).toEqual({
        time: new Date(now),
        nodeId,
        sequence,
      });
    }),
    { numRuns: 20 },
  );
});

test('Snowflake is a text for JSON where it is asked for', () => {
  const clock = (): number => epoch + 1;
  const id: string = new Snowflake({ nodeId: 0, as: 'text', clock }).next();
  expect(JSON.stringify({ id })).toBe('{"id":"4194304"}');
});

test('Snowflake makes more than 4,096 ids in a row, all different and growing, by the real clock', () => {
  const ids = new Snowflake({ nodeId: 1 });
  const made = Array.from({ length: 20_000 }, () => ids.next());
  expect(made.every((id, n) => n === 0 || id > (made[n - 1] as bigint))).toBe(true);
});

test('Snowflake says that the clock stands still, and makes no id', () => {
  const ids = new Snowflake({ nodeId: 1, clock: () => epoch });
  for (let n = 0; n < 4_096; n++) ids.next();
  expect(() => ids.next()).toThrow(expect.objectContaining({ reason: 'stood_still' }));
});

test('Snowflake waits with nextId() for a clock that went back, and refuses one that went back too far', async () => {
  let now = epoch + 1_000;
  const ids = new Snowflake({ nodeId: 1, maxClockBack: '100ms', clock: () => now });
  const before = Array.from({ length: 4_096 }, () => ids.next()).at(-1) as bigint;
  now -= 60;
  expect(() => ids.next()).toThrow(expect.objectContaining({ reason: 'went_back', behindMs: 60 }));
  const waiting = ids.nextId();
  now += 61;
  expect(await waiting).toBeGreaterThan(before);
  now -= 200;
  await expect(ids.nextId()).rejects.toBeInstanceOf(IdClockError);
  expect(() => ids.next()).toThrow(/200 ms behind the last id, more than maxClockBack \(100 ms\)/);
});

test('Snowflake gives up on a clock that does not come back within maxWait', async () => {
  let now = epoch + 1_000;
  const ids = new Snowflake({ nodeId: 1, maxWait: '20ms', clock: () => now });
  for (let n = 0; n < 4_096; n++) ids.next();
  now -= 500;
  await expect(ids.nextId()).rejects.toMatchObject({ reason: 'went_back', behindMs: 500 });
});

test('Snowflake has every mistake in its options told at once', () => {
  const options = { nodeId: 1_024, as: 'hex', epoch: -1, nods: 1 } as unknown as { nodeId: number };
  expect(() => new Snowflake(options)).toThrow(/4 problems with the generator's options/);
  expect(() => new Snowflake({})).toThrow(/nodes: or nodeId must be given/);
  expect(() => Snowflake.parse('12x')).toThrow(/id: must be a bigint/);
  expect(() => Snowflake.parse(-1n)).toThrow(/id: must be a bigint/);
  expect(() => Snowflake.parse(2n ** 63n)).toThrow(/id: must be a bigint/);
});

test('Snowflake makes none after end()', async () => {
  const ids = new Snowflake({ nodeId: 1 });
  ids.next();
  await ids.end();
  expect(() => ids.next()).toThrow(NodeIdError);
  await expect(ids.nextId()).rejects.toMatchObject({ code: 'HG_NODE_ID', reason: 'ended' });
});

test('node ids of one process are different for each generator, until there are none', async () => {
  const nodes = localNodeIds({ from: 4, to: 5 });
  const [one, two, three] = [new Snowflake({ nodes }), new Snowflake({ nodes }), new Snowflake({ nodes })];
  expect([one.nodeId, two.nodeId, three.nodeId]).toEqual([4, 5, undefined]);
  expect(() => three.next()).toThrow(/2 of 2 node ids are held/);
  await one.end();
  expect(three.nodeId).toBe(4);
});

test('node ids of one process are not given again in the millisecond of their last id', async () => {
  let now = epoch + 10;
  const clock = (): number => now;
  const nodes = localNodeIds({ from: 0, to: 0, clock });
  const first = new Snowflake({ nodes, clock });
  const id = first.next();
  await first.end();
  const second = new Snowflake({ nodes, clock });
  expect(() => second.next()).toThrow(expect.objectContaining({ reason: 'exhausted' }));
  now++;
  expect(second.next()).toBeGreaterThan(id);
});

test('node ids of one process never lead to the same id twice, however generators come and go and the clock moves', async () => {
  const step = fc.record({
    what: fc.constantFrom('make', 'make', 'make', 'start', 'end'),
    who: fc.nat(5),
    by: fc.integer({ min: -3, max: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      let now = epoch + 1_000;
      const clock = (): number => now;
      const nodes = localNodeIds({ from: 0, to: 2, clock });
      const generators: Snowflake[] = [];
      const seen = new Set<bigint>();
      for (const { what, who, by } of steps) {
        now += by;
        const ids = generators[who % Math.max(1, generators.length)];
        if (what === 'start') generators.push(new Snowflake({ nodes, clock }));
        if (what === 'end' && ids !== undefined) {
          await ids.end();
          generators.splice(generators.indexOf(ids), 1);
        }
        if (what !== 'make' || ids === undefined) continue;
        try {
          const id = ids.next();
          expect(seen.has(id)).toBe(false);
          seen.add(id);
        } catch (error) {
          if (!(error instanceof NodeIdError || error instanceof IdClockError)) throw error;
        }
      }
    }),
  );
});
