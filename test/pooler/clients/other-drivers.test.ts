/** The messages of drivers that Node has not got, written by hand; the answers must be those of the server itself. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { playIn, step } from '../raw/trace.js';

let db: TestDatabase;
let pooler: TestPooler;
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(db, {
    pooling: { poolSize: 2, maxPreparedStatements: 3, prepareUnnamed: true, serverRoundRobin: true },
  });
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});

async function connect(place: TestDatabase): Promise<RawSession> {
  const session = await RawSession.start(place, StartupCode.version30);
  onTestFinished(() => {
    session.socket.destroy();
  });
  return session;
}

/**
 * tokio-postgres, which is below Prisma's engine in Rust and many other programs: each connection names its statements s0, s1
 * and so on, and prepares, describes and binds them in turns of their own. What it is answered depends on nothing but who it is.
 */
function stepsOf(mine: number) {
  const steps = [];
  for (let n = 0; n < 6; n++) {
    const name = `s${n}`;
    const text = `select $1::int * ${n} + ${mine} as value`;
    steps.push(step((script) => script.parse(text, name).describeStatement(name).sync()));
  }
  for (let round = 0; round < 12; round++) {
    const name = `s${round % 6}`;
    const use = step((script) =>
      script
        .bind([String(round)], name)
        .execute()
        .sync(),
    );
    steps.push(use);
    if (round % 3 === 0) {
      steps.push(
        step((script) => script.query('BEGIN')),
        use,
      );
      if (round % 2 === 0) steps.push(step((script) => script.bind(['no number'], name).execute().sync()));
      steps.push(
        step((script) => script.query(round % 2 === 0 ? 'ROLLBACK' : 'COMMIT')),
        use,
      );
    }
    // An old one leaves its cache, and the next one gets a name of its own.
    if (round % 4 === 3) {
      const next = `s${10 + round}`;
      steps.push(
        step((script) => script.closeStatement(next).sync()),
        step((script) =>
          script.parse(`select ${round} + ${mine} as value`, next).describeStatement(next).sync(),
        ),
        step((script) => script.bind([], next).execute().sync()),
        step((script) => script.closeStatement(next).sync()),
        step((script) => script.bind([], next).execute().sync()),
      );
    }
  }
  return steps;
}

test('connections that all name their statements s0, s1 and so on get the answers that they get without the pooler', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 6 }, async (_, mine) => {
      const steps = stepsOf(mine);
      const [direct, through] = await Promise.all([connect(db), connect(pooler)]);
      return Promise.all([playIn(direct, steps), playIn(through, steps)]);
    }),
  );
  for (const [direct, through] of outcomes) expect(through).toEqual(direct);
});

test('DEALLOCATE by the extended protocol gives up the statement of this client alone, as psycopg does it', async () => {
  const give = (name: string) =>
    step((script) => script.parse(`DEALLOCATE ${name}`).bind().describePortal().execute().sync());
  const prepare = (name: string, text: string) => step((script) => script.parse(text, name).sync());
  const use = (name: string) => step((script) => script.bind(['1'], name).execute().sync());
  const steps = [
    prepare('a', 'select $1::int + 1'),
    prepare('b', 'select $1::int + 2'),
    ...[use('a'), use('b'), give('a'), use('a'), use('b')],
    ...[prepare('a', 'select $1::int + 3'), use('a'), use('b'), use('b')],
    step((script) => script.query('begin')),
    ...[give('b'), use('a')],
    // In a transaction that has failed it is not given up.
    ...[use('nothing'), give('a')],
    step((script) => script.query('rollback')),
    ...[use('a'), use('a'), give('a'), give('a')],
    // All in one pipeline.
    prepare('c', 'select $1::int + 4'),
    step(
      (script) =>
        script
          .bind(['1'], 'c')
          .execute()
          .parse('DEALLOCATE c')
          .bind()
          .execute()
          .sync()
          .bind(['2'], 'c')
          .execute()
          .sync(),
      2,
    ),
  ];
  const other = await connect(pooler);
  const shared = [prepare('a', 'select $1::int + 1'), prepare('b', 'select $1::int + 2')];
  await playIn(other, shared);
  const [direct, through] = await Promise.all([connect(db), connect(pooler)]);
  expect(await playIn(through, steps)).toEqual(await playIn(direct, steps));
  expect(await playIn(other, [use('a'), use('b'), use('a')])).toContain('D 3');
});
