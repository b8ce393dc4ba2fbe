// The batches that scripts about prepared statements are made of, and values in binary form.
import { type Batch, batch, type Who } from './actors.js';

export type Value = string | Buffer | null;

/** A simple query. */
export function query(who: Who, text: string): Batch {
  return batch(who, text, (s) => s.query(text));
}

/** Parse alone: the client is never told the types. */
export function parse(who: Who, name: string, text: string, types: readonly number[] = []): Batch {
  return batch(who, `parse ${name}: ${text}`, (s) => s.parse(text, name, types).sync());
}

/** Parse and Describe of the statement. */
export function prepare(who: Who, name: string, text: string, types: readonly number[] = []): Batch {
  return batch(who, `prepare ${name}: ${text}`, (s) =>
    s.parse(text, name, types).describeStatement(name).sync(),
  );
}

export function describeStatement(who: Who, name: string): Batch {
  return batch(who, `describe ${name}`, (s) => s.describeStatement(name).sync());
}

/** Values that are Buffers are sent in binary, and then the results are wanted in binary, too. */
function formatsOf(values: readonly Value[], results?: 'text' | 'binary') {
  const isBinary = values.some((value) => Buffer.isBuffer(value));
  const wanted = results ?? (isBinary ? 'binary' : 'text');
  return {
    formats: isBinary ? values.map((value) => (Buffer.isBuffer(value) ? 1 : 0)) : [],
    resultFormats: wanted === 'binary' ? [1] : [],
  };
}

/** Bind, Describe of the portal and Execute. */
export function use(
  who: Who,
  name: string,
  values: readonly Value[] = [],
  results?: 'text' | 'binary',
): Batch {
  return batch(who, `use ${name} ${labelOf(values, results)}`, (s) =>
    s.bind(values, name, '', formatsOf(values, results)).describePortal().execute().sync(),
  );
}

/** Bind and Execute, as drivers do it that have described the statement. */
export function execute(
  who: Who,
  name: string,
  values: readonly Value[] = [],
  results?: 'text' | 'binary',
): Batch {
  return batch(who, `execute ${name} ${labelOf(values, results)}`, (s) =>
    s.bind(values, name, '', formatsOf(values, results)).execute().sync(),
  );
}

/** A statement without a name, from Parse to Sync. */
export function run(
  who: Who,
  text: string,
  values: readonly Value[] = [],
  { types = [], results }: { types?: readonly number[]; results?: 'text' | 'binary' } = {},
): Batch {
  return batch(who, `run ${text} ${labelOf(values, results)}`, (s) =>
    s
      .parse(text, '', types)
      .bind(values, '', '', formatsOf(values, results))
      .describePortal()
      .execute()
      .sync(),
  );
}

export function close(who: Who, name: string): Batch {
  return batch(who, `close ${name}`, (s) => s.closeStatement(name).sync());
}

function labelOf(values: readonly Value[], results?: string): string {
  const shown = values.map((value) => (Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : value));
  return `(${shown.join(', ')})${results === undefined ? '' : ` ${results}`}`;
}

/** OIDs of built-in types. */
export const typeId = { int4: 23, int8: 20, text: 25, timestamp: 1114, timestamptz: 1184 } as const;

export function int4(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export function int8(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

/** Microseconds since 2000, with or without a time zone. */
export function timestamp(iso: string): Buffer {
  return int8(BigInt(Date.parse(iso) - Date.UTC(2000, 0, 1)) * 1000n);
}

export function binaryText(value: string): Buffer {
  return Buffer.from(value);
}
