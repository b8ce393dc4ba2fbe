// Memory with views of its beginning, which writes are made from.
import { expect, test } from 'vitest';
import { ByteSpace } from '../../src/net/byte-space.js';

const space = new ByteSpace(Buffer.from(Array.from({ length: 4_096 }, (_, i) => i & 0xff)));

test('A view of a space shows the bytes from its start to its end, wherever those are', () => {
  for (const [start, end] of [
    [0, 0],
    [0, 1],
    [0, 80],
    [0, 1_024],
    [0, 1_025],
    [0, 4_096],
    [7, 80],
    [4_096, 4_096],
  ] as const) {
    for (const _ of ['made', 'used again'])
      expect(space.view(start, end)).toEqual(space.buffer.subarray(start, end));
  }
});

test('A view of a space follows what is written to the space later', () => {
  const view = space.view(0, 3);
  space.buffer.write('abc', 0);
  expect(space.view(0, 3).toString()).toBe('abc');
  expect(view.toString()).toBe('abc');
});
