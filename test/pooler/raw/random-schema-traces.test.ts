// Random lives of three clients and an outsider with changes of tables, types and functions, one step after the other: through the
// pooler, clients are answered as by PostgreSQL. random-runs.ts says how a failure is played again.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { ask, type Batch, Occupants, type Place, perform } from './actors.js';
import { withoutLostType } from './allowed-differences.js';
import { checkRandomly } from './random-runs.js';
import { batchesOf, lives, setUp } from './random-schema-moves.js';

/** HEADGATE_COMPARE=postgres compares PostgreSQL with itself, to test the comparison: there is no difference then. */
const isSelfTest = process.env['HEADGATE_COMPARE'] === 'postgres';

let db: TestDatabase;
let outsider: RawSession;
beforeAll(async () => {
  db = await withDatabase();
  outsider = await RawSession.start(db, StartupCode.version30);
});
afterAll(async () => {
  outsider.socket.destroy();
  await db.drop();
});

async function performed(place: Place, batches: readonly Batch[]): Promise<string[]> {
  await ask(outsider, `drop schema if exists front, public cascade; create schema public; ${setUp}`);
  return (await perform(place, batches)).map(withoutLostType);
}

/** A pooler of its own for each life, so that a failure does not depend on the lives before it. */
async function throughPooler(
  batches: readonly Batch[],
  pooling: Readonly<Record<string, unknown>>,
  servers: number,
): Promise<string[]> {
  const pooler = await startTestPooler(db, { pooling: { poolSize: servers, ...pooling } });
  try {
    if (servers === 1) return await performed({ clients: pooler, outsider }, batches);
    const occupants = await Occupants.open(pooler, servers);
    return await performed({ clients: pooler, outsider, beforeBatch: () => occupants.shift() }, batches);
  } finally {
    await pooler.stop();
  }
}

test.each([
  ['one server connection for all clients', 1, {}, 50],
  ['another server connection for each batch', 3, {}, 50],
  ['hardly any prepared statement kept', 3, { maxPreparedStatements: 1 }, 30],
])(
  'Whatever changes under the statements of clients, they are answered as by PostgreSQL, with %s',
  async (_with, servers, pooling, runs) => {
    await checkRandomly(lives, runs, async (steps) => {
      const batches = batchesOf(steps, servers === 1 ? 'one' : 'several');
      const direct = { clients: db, outsider };
      const expected = await performed(direct, batches);
      const played = await (isSelfTest
        ? performed(direct, batches)
        : throughPooler(batches, pooling, servers));
      expect(played).toEqual(expected);
    });
  },
  120_000,
);
