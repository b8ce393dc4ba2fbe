// Random sequences of messages, sent to the pooler and to PostgreSQL itself: both must answer the same.
// HEADGATE_SEQUENCES=<number> plays more of them.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Backend, StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { playIn, Script, type Step, untilType } from './trace.js';

const runs = Number(process.env['HEADGATE_SEQUENCES'] ?? 50);

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
  const session = await RawSession.start(db, StartupCode.version30);
  await playIn(session, [
    end(
      new Script().query('create table kept (n int); create schema other; create table other.kept (n int)'),
    ),
  ]);
  session.socket.destroy();
});
afterAll(() => db.drop());

/** An empty query is answered in every state, a failed transaction included, and comes nowhere else. */
function end(script: Script): Step {
  return { send: script.sync().query(''), until: untilType(Backend.emptyQuery) };
}

const texts = [
  'select 1',
  'select 2',
  'select $1::text',
  'select count(*) from kept',
  'insert into kept values (1)',
  'select nonsense',
  'set search_path = other',
  'reset search_path',
  "set timezone = 'Asia/Tokyo'",
  'reset timezone',
  'show search_path',
  'show timezone',
  'begin',
  'commit',
  'rollback',
  'deallocate all',
  '',
];
const queries = [
  ...texts.filter((text) => !text.includes('$')),
  'select 3; select 4',
  'insert into kept values (2); select nonsense',
  'savepoint a',
  'rollback to a',
  'begin; insert into kept values (3); commit',
  'deallocate a',
  'deallocate prepare b;',
  "set statement_timeout = '9s'",
  'reset all',
  "reset all; select 'x;'",
  'show statement_timeout',
];
const names = ['', 'a', 'b'];

/** Statements to prepare under a name, with their parameters. */
interface Repertoire {
  readonly names: readonly string[];
  readonly texts: readonly string[];
  readonly values: readonly (readonly string[])[];
  readonly isDescribed: boolean;
}

const everything: Repertoire = { names, texts, values: [[], [], ['x']], isDescribed: true };

/**
 * For a server that does not have the statement: in a failed transaction it can't be prepared there any more, and what is said is
 * that the transaction has failed. PostgreSQL, which has it, says first if the number of values is wrong, and describes what has
 * no rows.
 */
const movable: readonly Repertoire[] = [
  { names: [''], texts: texts.filter((text) => !text.includes('$')), values: [[]], isDescribed: false },
  {
    names: ['a'],
    texts: texts.filter((text) => /^(?:select|show)/.test(text) && !text.includes('$')),
    values: [[]],
    isDescribed: true,
  },
  { names: ['b'], texts: ['select $1::text', 'select $1::int'], values: [['x']], isDescribed: true },
];

type Extended =
  | { readonly do: 'parse'; readonly name: string; readonly text: string }
  | {
      readonly do: 'bind';
      readonly name: string;
      readonly portal: string;
      readonly values: readonly string[];
    }
  | { readonly do: 'execute'; readonly portal: string; readonly rows: number }
  | {
      readonly do: 'describeStatement' | 'describePortal' | 'closeStatement' | 'closePortal';
      readonly name: string;
    }
  | { readonly do: 'flush' };

/** One message of the extended protocol, as an instruction to write it. */
function extended(repertoires: readonly Repertoire[]): fc.Arbitrary<Extended> {
  const each = (make: (repertoire: Repertoire) => fc.Arbitrary<Extended>): fc.Arbitrary<Extended> =>
    fc.oneof(...repertoires.map(make));
  const portal = fc.constantFrom('', 'p');
  const described = repertoires.filter(({ isDescribed }) => isDescribed).flatMap((one) => one.names);
  const action = <Action extends string>(action: Action): fc.Arbitrary<Action> => fc.constant(action);
  return fc.oneof(
    {
      weight: 4,
      arbitrary: each((one) =>
        fc.record({
          do: action('parse'),
          name: fc.constantFrom(...one.names),
          text: fc.constantFrom(...one.texts),
        }),
      ),
    },
    {
      weight: 5,
      arbitrary: each((one) =>
        fc.record({
          do: action('bind'),
          name: fc.constantFrom(...one.names),
          portal,
          values: fc.constantFrom(...one.values),
        }),
      ),
    },
    { weight: 5, arbitrary: fc.record({ do: action('execute'), portal, rows: fc.constantFrom(0, 1) }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: action('describeStatement'), name: fc.constantFrom(...described) }),
    },
    { weight: 1, arbitrary: fc.record({ do: action('describePortal'), name: portal }) },
    { weight: 2, arbitrary: fc.record({ do: action('closeStatement'), name: fc.constantFrom(...names) }) },
    { weight: 1, arbitrary: fc.record({ do: action('closePortal'), name: portal }) },
    { weight: 1, arbitrary: fc.record({ do: action('flush') }) },
  );
}

type Part = { readonly query: string } | { readonly pipeline: readonly Extended[] };

/** Queries, and pipelines with a Sync at their end: between the two PostgreSQL does not close a transaction as it should. */
function lives(repertoires: readonly Repertoire[]): fc.Arbitrary<Part[][]> {
  const pipeline = fc.array(extended(repertoires), { minLength: 1, maxLength: 8 });
  const part = fc.oneof(fc.record({ query: fc.constantFrom(...queries) }), fc.record({ pipeline }));
  return fc.array(fc.array(part, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 });
}

function write(script: Script, message: Extended): void {
  switch (message.do) {
    case 'parse':
      script.parse(message.text, message.name);
      break;
    case 'bind':
      script.bind(message.values, message.name, message.portal);
      break;
    case 'execute':
      script.execute(message.portal, message.rows);
      break;
    case 'describeStatement':
      script.describeStatement(message.name);
      break;
    case 'describePortal':
      script.describePortal(message.name);
      break;
    case 'closeStatement':
      script.closeStatement(message.name);
      break;
    case 'closePortal':
      script.closePortal(message.name);
      break;
    case 'flush':
      script.flush();
  }
}

function stepOf(parts: readonly Part[]): Step {
  const script = new Script();
  for (const each of parts) {
    if ('query' in each) script.query(each.query);
    else {
      for (const message of withoutCrash(each.pipeline)) write(script, message);
      script.sync();
    }
  }
  return end(script);
}

/**
 * PostgreSQL (18) crashes when the unnamed portal of a Query that failed in a transaction is executed, so that it is executed
 * where it was bound in the same pipeline only.
 */
function withoutCrash(pipeline: readonly Extended[]): readonly Extended[] {
  let isBound = false;
  return pipeline.filter((message) => {
    if (message.do === 'bind') isBound ||= message.portal === '';
    return message.do !== 'execute' || message.portal !== '' || isBound;
  });
}

/** Startup parameters besides user and database. */
type FirstSettings = readonly (readonly [string, string])[];

/** Both begin with the same data, one after the other. */
async function compare(
  pooler: TestPooler,
  lives: readonly (readonly Part[])[],
  first: FirstSettings = [],
): Promise<void> {
  const steps = [
    end(new Script().query('truncate kept, other.kept')),
    ...lives.map(stepOf),
    end(new Script().query('rollback').query('discard all')),
  ];
  const played: string[][] = [];
  for (const place of [db, pooler]) {
    const session = await RawSession.start(place, StartupCode.version30, first);
    const lines = await playIn(session, steps).finally(() => session.socket.destroy());
    // A setting that returns to its startup value is reported when the server has got it, which is later.
    const compared = first.length === 0 ? lines : lines.filter((line) => !line.startsWith('S '));
    // The server knows statements by other names.
    played.push(compared.map((line) => line.replace(/prepared statement "[^"]*"/, 'prepared statement')));
  }
  expect(played[1]).toEqual(played[0]);
}

test.each([
  ['on one server', [everything], { poolSize: 1 }],
  ['in session mode', [everything], { poolSize: 2, poolMode: 'session' }],
  ['on a server that is another one each time', movable, { poolSize: 3, serverRoundRobin: true }],
  [
    'with hardly any prepared statement kept',
    movable,
    { poolSize: 2, serverRoundRobin: true, maxPreparedStatements: 1 },
  ],
])(
  'whatever a client sends, the pooler answers as the server itself does %s',
  async (_name, repertoires, pooling) => {
    const pooler = await startTestPooler(db, { pooling });
    const property = fc.asyncProperty(lives(repertoires), (life) => compare(pooler, life));
    await fc.assert(property, { numRuns: runs });
  },
  600_000,
);

test('whatever a client sends, the pooler answers as the server itself does among clients whose statements share its connections', async () => {
  const pooler = await startTestPooler(db, {
    pooling: { poolSize: 2, multiplexDepth: 4, multiplexLongest: '10s' },
  });
  const readers = await Promise.all(Array.from({ length: 8 }, () => pooler.connect()));
  let isOver = false;
  const reading = readers.map(async (reader, index) => {
    for (let time = 0; !isOver; time++) {
      const { rows } = await reader.query('select $1::text as tag, $2::int as time', [`${index}`, time]);
      expect(rows).toEqual([{ tag: `${index}`, time }]);
    }
  });
  const property = fc.asyncProperty(lives(movable), (life) => compare(pooler, life));
  try {
    await fc.assert(property, { numRuns: Math.ceil(runs / 4) });
  } finally {
    isOver = true;
    await Promise.all(reading);
  }
  expect(pooler.pooler.stats().pools[0]?.tally.multiplexed).toBeGreaterThan(0);
}, 600_000);

test('whatever a client sends, the pooler answers as the server itself does with settings in its first packet', async () => {
  const pooler = await startTestPooler(db, { pooling: { poolSize: 3, serverRoundRobin: true } });
  const options = '-c statement_timeout=11s -c timezone=Europe/Berlin -c search_path=other';
  // Before the Sync of a pipeline nothing can be brought back to the first packet.
  const repertoires = movable.map((one) => ({
    ...one,
    texts: one.texts.filter((text) => !text.startsWith('reset')),
  }));
  const property = fc.asyncProperty(lives(repertoires), (life) =>
    compare(pooler, life, [['options', options]]),
  );
  await fc.assert(property, { numRuns: runs });
}, 600_000);
