/** Types of the console's columns, and their values as text and in binary. */
import type { Column } from '../../wire/rows.js';

export type ColumnType = 'text' | 'int4' | 'int8' | 'numeric' | 'decimal' | 'bytea';

export type Value = string | number | null;

export interface ResultColumn {
  readonly name: string;
  readonly type: ColumnType;
}

const types: Readonly<Record<ColumnType, Pick<Column, 'typeId' | 'typeSize'>>> = {
  bytea: { typeId: 17, typeSize: -1 },
  int8: { typeId: 20, typeSize: 8 },
  int4: { typeId: 23, typeSize: 4 },
  text: { typeId: 25, typeSize: -1 },
  numeric: { typeId: 1700, typeSize: -1 },
  /** With a fraction, which `numeric` as PgBouncer has it is cut off. */
  decimal: { typeId: 1700, typeSize: -1 },
};

const smallestInt4 = -0x8000_0000;
const largestInt4 = 0x7fff_ffff;

/** Format of a column, 0 for text or 1 for binary. `formats` has none for all text, one for all columns, or one for each. */
function formatOf(formats: readonly number[], index: number): number {
  return (formats.length === 1 ? formats[0] : formats[index]) ?? 0;
}

/** Columns for a RowDescription. */
export function describeColumns(
  columns: readonly ResultColumn[],
  formats: readonly number[],
): (Pick<Column, 'name'> & Partial<Column>)[] {
  return columns.map(({ name, type }, index) => ({
    name,
    ...types[type],
    format: formatOf(formats, index),
  }));
}

/** Values for a DataRow. */
export function encodeRow(
  columns: readonly ResultColumn[],
  row: readonly Value[],
  formats: readonly number[],
): (string | Buffer | null)[] {
  return columns.map(({ type }, index) => {
    const value = row[index] ?? null;
    if (value === null) return null;
    if (typeof value === 'string') return value;
    const shown = type === 'decimal' ? value : wholeNumber(value, type);
    return formatOf(formats, index) === 0 ? String(shown) : inBinary(shown, type);
  });
}

/** Limits a value to the range of its column. */
function wholeNumber(value: number, type: ColumnType): number {
  if (Number.isNaN(value)) return 0;
  const [smallest, largest] =
    type === 'int4' ? [smallestInt4, largestInt4] : [-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
  return Math.trunc(Math.min(largest, Math.max(smallest, value)));
}

function inBinary(value: number, type: ColumnType): string | Buffer {
  switch (type) {
    case 'int4': {
      const bytes = Buffer.alloc(4);
      bytes.writeInt32BE(value);
      return bytes;
    }
    case 'int8': {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64BE(BigInt(value));
      return bytes;
    }
    case 'numeric':
    case 'decimal':
      return binaryNumeric(value);
    default:
      return String(value);
  }
}

const numericBase = 10_000;
const negativeSign = 0x4000;

/** Base-10,000 digits with their count, the weight of the first, the sign, and the decimal places. */
function binaryNumeric(value: number): Buffer {
  const digits: number[] = [];
  const fraction = Math.min(numericBase - 1, Math.round((Math.abs(value) % 1) * numericBase));
  for (let rest = Math.floor(Math.abs(value)); rest > 0; rest = Math.floor(rest / numericBase))
    digits.unshift(rest % numericBase);
  const weight = Math.max(0, digits.length - 1);
  if (fraction > 0) digits.push(...(digits.length === 0 ? [0] : []), fraction);
  const places = fraction > 0 ? 4 : 0;
  const words = [digits.length, weight, value < 0 ? negativeSign : 0, places, ...digits];
  const bytes = Buffer.alloc(2 * words.length);
  words.forEach((word, index) => {
    bytes.writeUInt16BE(word, 2 * index);
  });
  return bytes;
}
