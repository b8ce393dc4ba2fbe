// Prepared statements that a server connection keeps: the bound in bytes is met, and what was closed is prepared again.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sync } from '../../../src/wire/fixed-messages.js';
import { writeBind, writeDescribe, writeExecute, writeParse } from '../../../src/wire/frontend-writers.js';
import { StartupCode, Target } from '../../../src/wire/message-types.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession, typesOf } from '../../wire/server/raw-session.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await withDatabase();
});
afterAll(() => db.drop());

const textOf = (n: number): string => `select ${n} as one, '${'x'.repeat(8_000)}' as two`;

async function prepare(session: RawSession, name: string, text: string): Promise<void> {
  const answers = await session.ask((writer) => {
    writeParse(writer, { name, text });
    writeDescribe(writer, Target.statement, Buffer.from(name));
    writer.append(sync);
  });
  expect(typesOf(answers)).toBe('1tTZ');
}

async function run(session: RawSession, statement: string): Promise<void> {
  const answers = await session.ask((writer) => {
    writeBind(writer, { statement });
    writeExecute(writer);
    writer.append(sync);
  });
  expect(typesOf(answers)).toBe('2DCZ');
}

test.each([
  [undefined, 30],
  ['64KB', 7],
])(
  'a server connection with max_server_statements_size %s keeps no more of 30 long statements than fit, and all of them can be run',
  async (maxServerStatementsSize, most) => {
    const limits = maxServerStatementsSize === undefined ? {} : { maxServerStatementsSize };
    const pooler = await startTestPooler(db, { limits, pooling: { poolSize: 1 } });
    const session = await RawSession.start(pooler, StartupCode.version30);
    for (let n = 0; n < 30; n++) {
      await prepare(session, `s${n}`, textOf(n));
      await run(session, `s${n}`);
    }
    const other = await pooler.connect();
    const asked = `select count(*)::int as kept from pg_prepared_statements where statement like '%xxx%'`;
    const { kept } = (await other.query(`${asked} and statement not like '%kept%'`)).rows[0];
    expect(kept).toBeGreaterThan(most / 2);
    expect(kept).toBeLessThanOrEqual(most);
    for (let n = 0; n < 30; n++) await run(session, `s${n}`);
  },
);
