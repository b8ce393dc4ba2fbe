// Random lives of clients that send one batch at a time, alone and whole, as most clients do: both the pooler and PostgreSQL itself
// must answer the same. The pooler passes most of these on without a closer look. HEADGATE_SEQUENCES=<number> plays more of them.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { playIn, type Step, step } from './trace.js';

/** However slow the machine is. */
const sharing = { multiplexDepth: 4, multiplexLongest: '10s' } as const;
const runs = Number(process.env['HEADGATE_SEQUENCES'] ?? 40);

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
  const session = await RawSession.start(db, StartupCode.version30);
  await playIn(session, [
    step((s) =>
      s.query(`create table kept (n int); create schema other; create table other.kept (n text);
        create function warned() returns int language plpgsql as $$begin raise notice 'careful'; return 1; end$$;
        create function moved() returns text language sql as $$select set_config('timezone', 'Asia/Tokyo', false)$$`),
    ),
  ]);
  session.socket.destroy();
});
afterAll(() => db.drop());

/** Without parameters, so that each can come in both protocols. */
const texts = [
  'select 1 as one',
  'select 1 as one',
  "select current_setting('timezone'), current_setting('search_path')",
  'select pg_typeof(n) from kept limit 0',
  'select * from kept limit 0',
  'insert into kept values (1)',
  'update kept set n = n where false',
  'delete from kept where false',
  "select '1/2/2026'::date, null",
  'select generate_series(1, 3)',
  "select repeat('x', 100000)",
  'select 1 / 0',
  'select nonsense',
  'select warned()',
  'select moved()',
  'set search_path = other',
  "set timezone = 'Asia/Kolkata'; ",
  "set datestyle = 'SQL, DMY'",
  'reset all',
  'begin',
  'commit',
  'rollback',
  'show search_path',
  'discard all',
  '',
];

interface Batch {
  readonly how:
    | 'query'
    | 'unnamed'
    | 'unnamedRows'
    | 'bindOnly'
    | 'named'
    | 'namedAgain'
    | 'other'
    | 'otherAgain'
    | 'undescribed';
  readonly text: string;
}

function stepOf({ how, text }: Batch): Step {
  return step((s) => {
    switch (how) {
      case 'query':
        return s.query(text);
      case 'unnamed':
        return s.parse(text).bind().describePortal().execute().sync();
      case 'unnamedRows':
        return s.parse(text).bind().describePortal().execute('', 2).sync();
      case 'undescribed':
        return s.parse(text).bind().execute().sync();
      case 'named':
        return s.closeStatement('a').parse(text, 'a').bind([], 'a').describePortal().execute().sync();
      case 'namedAgain':
        return s.bind([], 'a').describePortal().execute().sync();
      case 'other':
        return s.closeStatement('b').parse(text, 'b').bind([], 'b').describePortal().execute().sync();
      case 'otherAgain':
        return s.bind([], 'b').describePortal().execute().sync();
      default:
        // Whatever the last one was.
        return s.bind().describePortal().execute().sync();
    }
  });
}

const batch: fc.Arbitrary<Batch> = fc.record({
  how: fc.constantFrom(
    ...(['query', 'unnamed', 'unnamed', 'unnamedRows', 'bindOnly', 'named'] as const),
    ...(['namedAgain', 'namedAgain', 'other', 'otherAgain', 'otherAgain', 'undescribed'] as const),
  ),
  text: fc.constantFrom(...texts),
});
/** Most clients say the same again and again. */
const life = fc
  .array(fc.tuple(batch, fc.integer({ min: 1, max: 3 })), { minLength: 1, maxLength: 10 })
  .map((batches) => batches.flatMap(([one, times]) => Array.from({ length: times }, () => one)));

const leave = step((s) => s.query('rollback'));

async function playAt(place: TestDatabase | TestPooler, batches: readonly Batch[]): Promise<string[]> {
  const session = await RawSession.start(place, StartupCode.version30);
  try {
    return await playIn(session, [...batches.map(stepOf), leave]);
  } finally {
    session.socket.destroy();
  }
}

/**
 * In a failed transaction, a server that does not have the statement says that the transaction has failed; PostgreSQL itself, which
 * has it, may describe it first. And where a statement means another table since the settings have changed, PostgreSQL refuses it; so
 * does a server that has it, but not one where it has to be prepared first.
 */
function isComparable(batches: readonly Batch[]): boolean {
  const again = new Set(['bindOnly', 'namedAgain', 'otherAgain']);
  const isBoundAgain = batches.some(({ how }) => again.has(how));
  const isMoved = batches.some(({ text }) => text.includes('search_path = other'));
  return !isBoundAgain || !(isMoved || batches.some(({ text }) => text === 'begin'));
}

function comparable(lines: readonly string[]): string[] {
  // The server knows statements by other names.
  return lines.map((line) => line.replace(/prepared statement "[^"]*"/, 'prepared statement'));
}

describe.each([
  ['one server', { poolSize: 1 }, 1],
  ['another server for each batch', { poolSize: 3, serverRoundRobin: true }, 1],
  ['fewer servers than clients, so that most batches wait', { poolSize: 2 }, 5],
  ['one server, which is asked what came before by a name', { poolSize: 1, prepareUnnamed: true }, 1],
  [
    'fewer servers than clients, asked what came before by a name',
    { poolSize: 2, serverRoundRobin: true, prepareUnnamed: true },
    5,
  ],
  ['one server, on which statements are sent behind each other', { poolSize: 1, ...sharing }, 5],
  [
    'fewer servers than clients, with statements behind each other that are asked by a name',
    { poolSize: 2, prepareUnnamed: true, ...sharing },
    6,
  ],
] as const)(
  'a client that sends one batch at a time is answered as by PostgreSQL, with %s',
  (_with, pooling, clients) => {
    let pooler: TestPooler;
    beforeAll(async () => {
      pooler = await startTestPooler(db, { pooling });
      // All at once, so that each needs a server of its own.
      const slow: Batch = { how: 'query', text: 'select pg_sleep(0.3)' };
      await Promise.all(Array.from({ length: pooling.poolSize }, () => playAt(pooler, [slow])));
      expect(pooler.pooler.stats().pools[0]?.live).toBe(pooling.poolSize);
    });
    afterAll(() => pooler.stop());

    test('a statement that a client prepared under other settings is not shared with other clients', async () => {
      const text = 'select * from kept limit 0';
      const again: Batch = { how: 'namedAgain', text: '' };
      const changed: Batch = { how: 'query', text: 'set search_path = other' };
      const first: Batch = { how: 'named', text };
      await playAt(pooler, [first, changed, again, again, again, again]);
      const expected = comparable(await playAt(db, [first, again]));
      for (let other = 0; other < 5; other++)
        expect(comparable(await playAt(pooler, [first, again]))).toEqual(expected);
    });

    test('a statement that it has for itself under other settings can be given up', async () => {
      const batches: Batch[] = [
        { how: 'named', text: 'select 1 as one' },
        { how: 'query', text: "set timezone = 'Asia/Kolkata'" },
        { how: 'unnamed', text: 'deallocate a' },
        { how: 'namedAgain', text: '' },
      ];
      expect(comparable(await playAt(pooler, batches))).toEqual(comparable(await playAt(db, batches)));
    });

    test('the answers to random batches are those of PostgreSQL', async () => {
      await fc.assert(
        fc.asyncProperty(life.filter(isComparable), async (batches) => {
          const expected = comparable(await playAt(db, batches));
          const played = await Promise.all(Array.from({ length: clients }, () => playAt(pooler, batches)));
          for (const lines of played) expect(comparable(lines)).toEqual(expected);
        }),
        { numRuns: runs },
      );
      if (!('multiplexDepth' in pooling)) return;
      // Statements do share connections: of the random lives, only some can.
      const plain: Batch[] = Array.from({ length: 5 }, () => ({ how: 'query', text: 'select 1 as one' }));
      const share = async (): Promise<number> => {
        await Promise.all(Array.from({ length: clients }, () => playAt(pooler, plain)));
        return pooler.pooler.stats().pools[0]?.tally.multiplexed ?? 0;
      };
      await expect.poll(share, { timeout: 20_000 }).toBeGreaterThan(0);
    }, 120_000);
  },
);
