// UUIDs: version 7 of RFC 9562, and the way between text and bytes.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { UuidV7Source } from '../../../src/dsql/ids/uuid-v7.js';
import { bytesToUuid, InvalidUuidError, uuidToBytes, uuidV7, uuidV7Time } from '../../../src/dsql.js';
import { SeededRandom } from '../../../src/kernel/random.js';

const form = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

test('a UUID of version 7 is the one in the test vector of RFC 9562, given its time and random bits', () => {
  // 0x017F22E279B0, rand_a 0xCC3, rand_b 0x18C4DC0C0C07398F; the first bit of rand_a is left free here.
  const words = [0x4c3, 0x18c4_dc0c << 2, 0x0c07_398f];
  const source = new UuidV7Source({
    clock: () => 0x017f_22e2_79b0,
    fill: (array) => array.set(words.map((word) => word >>> 0)),
  });
  expect(source.next()).toBe('017f22e2-79b0-74c3-98c4-dc0c0c07398f');
  expect(uuidV7Time('017F22E2-79B0-7CC3-98C4-DC0C0C07398F')).toEqual(new Date('2022-02-22T19:22:22.000Z'));
});

test('a UUID of version 7 is larger than the one before, by the real clock, and says when it was made', () => {
  const before = Date.now();
  const made = Array.from({ length: 20_000 }, () => uuidV7());
  expect(made.filter((uuid) => !form.test(uuid))).toEqual([]);
  expect(made.filter((uuid, n) => n > 0 && uuid <= (made[n - 1] as string))).toEqual([]);
  const time = uuidV7Time(made[0] as string).getTime();
  expect(time).toBeGreaterThanOrEqual(before);
  expect(time).toBeLessThanOrEqual(Date.now());
});

test('a UUID of version 7 grows within a millisecond and while the clock is a little behind, whatever the random bits are', () => {
  const words = fc.oneof(fc.constant(0), fc.constant(0xffff_ffff), fc.integer({ min: 0, max: 0xffff_ffff }));
  fc.assert(
    fc.property(
      fc.array(words, { minLength: 1, maxLength: 12 }),
      fc.array(fc.integer({ min: -50, max: 20 }), { minLength: 2, maxLength: 40 }),
      (bits, steps) => {
        let now = 1_000_000;
        let drawn = 0;
        const source = new UuidV7Source({
          clock: () => now,
          fill: (array) => {
            for (let n = 0; n < array.length; n++) array[n] = bits[drawn++ % bits.length] as number;
          },
        });
        let last = '';
        for (const by of steps) {
          now += by;
          const uuid = source.next();
          expect(uuid).toMatch(form);
          expect(uuid > last).toBe(true);
          last = uuid;
        }
      },
    ),
  );
});

test('a UUID of version 7 carries a step over into the bits above, up to the one that was left free', () => {
  let [now, word] = [1_000, 0xffff_ffff];
  const source = new UuidV7Source({ clock: () => now, fill: (array) => array.fill(word) });
  expect(source.next()).toBe('00000000-03e8-77ff-bfff-ffffffffffff');
  expect(source.next()).toBe('00000000-03e8-7800-8000-00007fffffff');
  [now, word] = [900, 0];
  expect(source.next()).toBe('00000000-03e8-7800-8000-0000ffffffff');
});

test('a UUID of version 7 follows a clock that was set back on purpose', () => {
  let now = 100_000;
  const random = new SeededRandom(1);
  const source = new UuidV7Source({
    clock: () => now,
    fill: (array) => array.set(Array.from(array, () => random.next() * 2 ** 32)),
  });
  source.next();
  now -= 10_000;
  expect(uuidV7Time(source.next()).getTime()).toBe(100_000);
  now -= 1;
  expect(uuidV7Time(source.next()).getTime()).toBe(89_999);
});

test('a UUID of version 7 can not be asked for the time of another version', () => {
  expect(() => uuidV7Time('919108f7-52d1-4320-9bac-f847db4148a8')).toThrow(
    /version 7 is needed, not one of version 4/,
  );
});

test('the bytes of a UUID lead back to the same text in lower case, for any UUID', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.boolean(), (uuid, isUpper) => {
      const bytes = uuidToBytes(isUpper ? uuid.toUpperCase() : uuid);
      expect(bytes).toHaveLength(16);
      expect(bytesToUuid(bytes)).toBe(uuid.toLowerCase());
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
      expect(uuidToBytes(bytesToUuid(bytes))).toEqual(bytes);
      // A view in the middle of a larger buffer, as node-postgres gives them.
      const padded = Buffer.concat([Buffer.from([1, 2, 3]), bytes, Buffer.from([4])]);
      expect(bytesToUuid(padded.subarray(3, 19))).toBe(bytesToUuid(bytes));
    }),
  );
});

test.each([
  '',
  '017f22e279b07cc398c4dc0c0c07398f',
  '{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}',
  ' 017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
  '017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n',
  '017f22e2-79b0-7cc3-98c4-dc0c0c07398',
  '017f22e2-79b0-7cc3-98c4-dc0c0c07398g',
  '017f22e27-9b0-7cc3-98c4-dc0c0c07398f',
  'urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
  42,
  undefined,
  null,
])('the bytes of a UUID are refused for %j, which is no UUID in the usual form', (text) => {
  expect(() => uuidToBytes(text as string)).toThrow(InvalidUuidError);
});

test.each([[[]], [new Uint8Array(15)], [new Uint8Array(17)], ['x'.repeat(16)], [new Array(16).fill(0)]])(
  'the bytes of a UUID must be 16 in a Buffer or Uint8Array, not %j',
  (bytes) => {
    expect(() => bytesToUuid(bytes as Uint8Array)).toThrow(InvalidUuidError);
  },
);
