import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeQuery } from '../../../src/wire/frontend-writers.js';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { play, playIn, type Send } from './trace.js';
import { traces } from './traces.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

test.each(traces)(
  'with transactions pooled on one server, the pooler answers as the server itself does $name',
  async ({ steps }) => {
    const pooler = await startTestPooler(db, { pooling: { poolSize: 1 } });
    const expected = await play(db, steps);
    expect(await play(pooler, steps)).toEqual(expected);
    // And nothing of it is left for the next.
    expect(await play(pooler, steps)).toEqual(expected);
  },
);

test.each(traces)(
  'with a session pooled, the pooler answers as the server itself does $name',
  async ({ steps }) => {
    const pooler = await startTestPooler(db, { pooling: { poolSize: 1, poolMode: 'session' } });
    const expected = await play(db, steps);
    expect(await play(pooler, steps)).toEqual(expected);
    expect(await play(pooler, steps)).toEqual(expected);
  },
);

describe('with another server for each transaction, the pooler answers as one server does', () => {
  let pooler: TestPooler;
  beforeAll(async () => {
    pooler = await startTestPooler(db, { pooling: { poolSize: 3, serverRoundRobin: true } });
    await openAll(pooler, 3);
  });
  afterAll(() => pooler.stop());

  test.each(traces)('$name', async ({ steps }) => {
    const expected = await play(db, steps);
    expect(await play(pooler, steps)).toEqual(expected);
    expect(await play(pooler, steps)).toEqual(expected);
  });
});

describe('byte by byte, the pooler understands a client as it does otherwise', () => {
  let pooler: TestPooler;
  beforeAll(async () => {
    pooler = await startTestPooler(db);
  });
  afterAll(() => pooler.stop());

  test.each(traces)('$name', async ({ steps }) => {
    expect(await play(pooler, steps, inPieces(pooler, 1))).toEqual(await play(db, steps));
  });
});

test('wherever the bytes of a pipeline are cut, its answers are the same', async () => {
  const pooler = await startTestPooler(db);
  const trace = traces.find(({ name }) => name === 'an error in a pipeline, and several Syncs');
  const steps = trace?.steps ?? [];
  const expected = await play(db, steps);
  const longest = Math.max(...steps.map(({ send }) => send.writer.length));
  const session = await RawSession.start(pooler, StartupCode.version30);
  for (let size = 2; size < longest; size++)
    expect(await playIn(session, steps, inPieces(pooler, size))).toEqual(expected);
  session.socket.destroy();
});

/** So that there are as many servers as the pool may have. */
async function openAll(pooler: TestPooler, count: number): Promise<void> {
  const sessions = await Promise.all(
    Array.from({ length: count }, () => RawSession.start(pooler, StartupCode.version30)),
  );
  for (const text of ['begin', 'select 1', 'commit']) {
    for (const session of sessions) await session.ask((writer) => writeQuery(writer, text));
  }
  for (const session of sessions) session.socket.destroy();
}

/** Each piece is sent when the pooler has read the one before. */
function inPieces({ pooler }: TestPooler, size: number): Send {
  const received = (): number => pooler.stats().pools.reduce((sum, { tally }) => sum + tally.received, 0);
  return async (session, bytes) => {
    for (let at = 0; at < bytes.length; at += size) {
      const piece = bytes.subarray(at, at + size);
      const wanted = received() + piece.length;
      session.socket.write(piece);
      while (received() < wanted) await new Promise((resolve) => setImmediate(resolve));
    }
  };
}
