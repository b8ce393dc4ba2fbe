// A statement without a name that is run at once, and used again later without another Parse: nobody knows what it meant, unless it was
// described. The first time in a pool it may be refused, and is counted; it is never taken for something else.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { scrape } from '../metrics/scrape.js';
import { perform, type Turn } from '../raw/actors.js';
import { query, run, use } from '../raw/turns.js';

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

const text = 'select $1::text';
const displaced: readonly Turn[] = [run('B', 'select 1'), query('B', 'select 2')];

test.each([false, true])(
  'Without a description it is refused once in a pool, and kept from then on (prepareUnnamed: %s)',
  async (prepareUnnamed) => {
    const pooler = await startTestPooler(db, {
      pooling: { poolSize: 1, prepareUnnamed },
      observability: { metricsListen: '127.0.0.1:0' },
    });
    const place = { clients: pooler, outsider };
    const known = Array.from({ length: 6 }, () => run('A', text, ['a']));
    const script = [...known, ...displaced, use('A', '', ['b'])];

    const refused = (await perform(place, [...known, ...script])).join('\n');
    const kept = (await perform(place, script)).join('\n');
    const expected = (await perform({ clients: db, outsider }, script)).join('\n');

    expect(refused).toMatch(/ 26000 unnamed prepared statement does not exist/u);
    expect(kept).toBe(expected);
    const { value } = await scrape(pooler.pooler.metricsPort as number);
    expect(value('headgate_pooler_own_errors_total', { class: '26', reason: 'forgotten_statement' })).toBe(1);
  },
);
