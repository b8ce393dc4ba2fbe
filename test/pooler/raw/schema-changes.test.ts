// Whatever is answered to Parse, Describe, Bind and Execute is what PostgreSQL would have answered this client, also when tables and
// types change: by the client itself, by another client, or past the pooler. Each script is played on PostgreSQL and through the pooler.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { ask, type Batch, Occupants, type Place, perform, type Who } from './actors.js';
import { withoutLostType } from './allowed-differences.js';
import { type Case, cases } from './schema-cases.js';
import { type Change, changes, script } from './schema-changes.js';
import { sessionCases, transactionCases } from './transaction-cases.js';
import { unnamedCases } from './unnamed-cases.js';

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

/** HEADGATE_COMPARE=postgres compares PostgreSQL with itself, to test the scripts: there is no difference then. */
const isSelfTest = process.env['HEADGATE_COMPARE'] === 'postgres';

const places = {
  'one server connection for all clients': oneForAll,
  'another server connection for each batch': anotherEachTime,
};

function oneForAll(): Promise<Place> {
  return pooled({ poolSize: 1 });
}

async function pooled(pooling: { readonly poolSize: number; readonly poolMode?: string }): Promise<Place> {
  if (isSelfTest) return { clients: db, outsider };
  return { clients: await startTestPooler(db, { pooling }), outsider };
}

async function anotherEachTime(): Promise<Place> {
  if (isSelfTest) return { clients: db, outsider };
  const pooler = await startTestPooler(db, { pooling: { poolSize: 3 } });
  const occupants = await Occupants.open(pooler, 3);
  onTestFinished(() => occupants.close());
  return { clients: pooler, outsider, beforeBatch: () => occupants.shift() };
}

/** What PostgreSQL itself answers: the same for all places that a script is played at. */
const expectations = new Map<string, string[]>();

async function compare(
  open: () => Promise<Place>,
  { name, setUp, batches, losesType = false }: Case,
): Promise<void> {
  const expected = expectations.get(name) ?? (await performedOn({ clients: db, outsider }, setUp, batches));
  expectations.set(name, expected);
  const played = await performedOn(await open(), setUp, batches);
  const comparable = (lines: readonly string[]) => (losesType ? lines.map(withoutLostType) : lines);
  expect(comparable(played)).toEqual(comparable(expected));
}

async function performedOn(place: Place, setUp: string, batches: readonly Batch[]): Promise<string[]> {
  await ask(
    outsider,
    `drop schema if exists front, postgres, public cascade; create schema public; ${setUp}`,
  );
  return perform(place, batches);
}

describe.each(Object.entries(places))('A client is answered as by PostgreSQL, with %s', (_with, open) => {
  test.each(changesOf(open))('%s, changed by %s', async (name, changer, change) => {
    const batches = script(change, changer);
    await compare(open, {
      name: `${name}, ${changer}`,
      setUp: change.before,
      batches,
      losesType: change.losesType ?? false,
    });
  });

  test.each(casesOf(open))('%s', async (_name, one) => {
    await compare(open, one);
  });
});

/** Each change is made past the pooler, and by one of the clients. */
function changesOf(open: () => Promise<Place>): [string, Who, Change][] {
  const changers: Who[] = open === oneForAll ? ['A'] : ['outsider', 'B'];
  return changes.flatMap((change) =>
    changers.map((who): [string, Who, Change] => [change.name, who, change]),
  );
}

function casesOf(open: () => Promise<Place>): [string, Case][] {
  return [...cases, ...unnamedCases, ...transactionCases]
    .filter(({ pins }) => pins !== true || open !== oneForAll)
    .map((one) => [one.name, one]);
}

test.each(sessionCases.map((one) => [one.name, one] as const))(
  'A client in session mode is answered as by PostgreSQL %s',
  async (_name, one) => {
    await compare(() => pooled({ poolSize: 4, poolMode: 'session' }), one);
  },
);
