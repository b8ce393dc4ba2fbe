// Times and numbers of ids, in virtual time.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IdSequence } from '../../../src/dsql/ids/id-sequence.js';

const forever = {
  nodeId: 1,
  holding: 1,
  afterMs: Number.NEGATIVE_INFINITY,
  untilMs: Number.POSITIVE_INFINITY,
};
const settings = { epochMs: 0, maxClockBackMs: 50 };

test('the sequence of ids has 4,096 ids for a millisecond, and then waits for the next one', () => {
  const sequence = new IdSequence(settings);
  const waits = Array.from({ length: 4_097 }, () => sequence.advance(1_000, forever));
  expect(waits.slice(0, 4_096).every((waitMs) => waitMs === 0)).toBe(true);
  expect(waits[4_096]).toBe(1);
  expect(sequence.advance(1_001, forever)).toBe(0);
  expect([sequence.timeMs, sequence.number]).toEqual([1_001, 0]);
});

test('the sequence of ids goes on in the last millisecond while the clock is behind, then says how long to wait', () => {
  const sequence = new IdSequence(settings);
  sequence.advance(1_000, forever);
  for (let n = 1; n < 4_096; n++) expect(sequence.advance(980, forever)).toBe(0);
  expect([sequence.timeMs, sequence.number]).toEqual([1_000, 4_095]);
  expect(sequence.advance(980, forever)).toBe(21);
});

test('the sequence of ids refuses a clock that is too far behind, and goes on when it has caught up', () => {
  const sequence = new IdSequence(settings);
  sequence.advance(1_000, forever);
  expect(() => sequence.advance(949, forever)).toThrow(
    expect.objectContaining({ code: 'HG_ID_CLOCK', reason: 'went_back', behindMs: 51 }),
  );
  expect(sequence.advance(950, forever)).toBe(0);
});

test('the sequence of ids refuses times before the epoch and past 41 bits', () => {
  const sequence = new IdSequence({ epochMs: 1_000, maxClockBackMs: 0 });
  const refused = expect.objectContaining({ reason: 'out_of_range' });
  expect(() => sequence.advance(999, forever)).toThrow(refused);
  expect(sequence.advance(1_000 + 2 ** 41 - 1, forever)).toBe(0);
  expect(() =>
    new IdSequence({ epochMs: 1_000, maxClockBackMs: 0 }).advance(1_000 + 2 ** 41, forever),
  ).toThrow(refused);
});

test('the sequence of ids never leaves the times of its grants, and never decreases, whatever the clock does', () => {
  const tick = fc.record({
    by: fc.oneof(fc.constant(0), fc.integer({ min: -40, max: 40 })),
    count: fc.oneof(fc.nat(5), fc.constant(5_000)),
    grant: fc.option(fc.record({ after: fc.integer({ min: -30, max: 200 }), long: fc.nat(300) }), {
      nil: undefined,
      freq: 4,
    }),
  });
  fc.assert(
    fc.property(fc.array(tick, { maxLength: 30 }), (ticks) => {
      const sequence = new IdSequence(settings);
      let now = 1_000;
      let grant = { ...forever };
      let last: readonly [number, number] = [Number.NEGATIVE_INFINITY, 0];
      for (const { by, count, grant: other } of ticks) {
        now += by;
        if (other !== undefined) {
          const afterMs = now - 1 - other.after;
          grant = { nodeId: 2, holding: grant.holding + 1, afterMs, untilMs: afterMs + other.long };
        }
        for (let n = 0; n < count; n++) {
          let waitMs: number;
          try {
            waitMs = sequence.advance(now, grant);
          } catch {
            break;
          }
          if (waitMs !== 0) break;
          const { timeMs, number } = sequence;
          const grows = timeMs > last[0] || (timeMs === last[0] && number === last[1] + 1);
          const isGranted = timeMs > grant.afterMs && timeMs <= grant.untilMs;
          // One by one, `expect` would take most of the time.
          if (!grows || !isGranted || number > 4_095) expect([last, timeMs, number, grant]).toBe('in order');
          last = [timeMs, number];
        }
      }
    }),
  );
});
