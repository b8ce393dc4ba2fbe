// Values are the same in text and in binary, and a driver reads back what was written.
import fc from 'fast-check';
import pg from 'pg';
import { expect, test } from 'vitest';
import { type ColumnType, describeColumns, encodeRow } from '../../../src/pooler/console/result-values.js';

const typeIds: Readonly<Record<string, number>> = { int4: 23, int8: 20, numeric: 1700, text: 25 };

function encoded(type: ColumnType, value: number | string, format: number): string | Buffer | null {
  return encodeRow([{ name: 'x', type }], [value], [format])[0] ?? null;
}

/** As node-postgres reads it. */
function decoded(type: ColumnType, bytes: Buffer): unknown {
  return pg.types.getTypeParser(typeIds[type] as number, 'binary')(bytes as unknown as string);
}

test.each([
  ['int4', fc.integer()],
  ['int8', fc.maxSafeInteger()],
  ['numeric', fc.maxSafeInteger()],
] as const)('A value of type %s is the same number in text and in binary', (type, numbers) => {
  fc.assert(
    fc.property(numbers, (number) => {
      expect(encoded(type, number, 0)).toBe(String(number));
      expect(Number(decoded(type, encoded(type, number, 1) as Buffer))).toBe(number);
    }),
  );
});

test('A value that its column can not hold is the nearest that it can', () => {
  const shown = (type: ColumnType, value: number) => encoded(type, value, 0);
  expect(shown('int4', 9_000_000_512)).toBe('2147483647');
  expect(shown('int4', -1e12)).toBe('-2147483648');
  expect(shown('int4', 1.9)).toBe('1');
  expect(shown('numeric', Number.POSITIVE_INFINITY)).toBe('9007199254740991');
  expect(shown('int8', Number.NaN)).toBe('0');
  expect((encoded('int4', 9_000_000_512, 1) as Buffer).toString('hex')).toBe('7fffffff');
});

test('A value is null in both formats, and a text is its bytes in both', () => {
  const columns = [
    { name: 'a', type: 'int4' },
    { name: 'b', type: 'text' },
    { name: 'c', type: 'text' },
  ] as const;
  expect(encodeRow(columns, [null, 'é', ''], [])).toEqual([null, 'é', '']);
  expect(encodeRow(columns, [null, 'é', ''], [1])).toEqual([null, 'é', '']);
});

test('A value has the format of its column: one for each, one for all, or none for text', () => {
  const columns = [
    { name: 'a', type: 'int4' },
    { name: 'b', type: 'int8' },
  ] as const;
  const formats = (given: number[]) => describeColumns(columns, given).map(({ format }) => format);
  expect([formats([]), formats([1]), formats([0, 1])]).toEqual([
    [0, 0],
    [1, 1],
    [0, 1],
  ]);
  expect(encodeRow(columns, [1, 2], [0, 1])).toEqual(['1', Buffer.from('0000000000000002', 'hex')]);
});

test('A value is of a type that PostgreSQL has under the same number', () => {
  const types = (['bytea', 'int8', 'int4', 'text', 'numeric'] as const).map((type) => ({
    name: type,
    type,
  }));
  expect(describeColumns(types, []).map(({ name, typeId, typeSize }) => [name, typeId, typeSize])).toEqual([
    ['bytea', 17, -1],
    ['int8', 20, 8],
    ['int4', 23, 4],
    ['text', 25, -1],
    ['numeric', 1_700, -1],
  ]);
});
