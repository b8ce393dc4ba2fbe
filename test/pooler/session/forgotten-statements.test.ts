// A statement without a name that is run at once, and used again later without another Parse: nobody knows what it meant, unless it was
// described. Where its text means something else by now it is refused, once in a pool, and that is counted.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StartupCode } from '../../../src/wire/message-types.js';
import { startTestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { RawSession } from '../../wire/server/raw-session.js';
import { scrape } from '../metrics/scrape.js';
import { ask, type Batch, perform } from '../raw/actors.js';
import { query, run, use } from '../raw/batches.js';

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

const text = 'select * from thing';
const displaced: readonly Batch[] = [run('B', 'select 1'), query('B', 'select 2')];
const known = Array.from({ length: 6 }, () => run('A', text));
const script = [...known, ...displaced, use('A', '')];

test.each([false, true])(
  'It is what the text meant to another client, or refused once in a pool, and kept from then on (prepareUnnamed: %s)',
  async (prepareUnnamed) => {
    const place = async () => ({
      clients: await startTestPooler(db, {
        pooling: { poolSize: 1, prepareUnnamed },
        observability: { metricsListen: '127.0.0.1:0' },
      }),
      outsider,
    });
    await ask(outsider, 'drop table if exists thing; create table thing (a int)');
    const [calm, changed] = [await place(), await place()];
    const played = await perform(calm, [...known, ...script]);
    await perform(changed, known);
    await ask(outsider, 'alter table thing add b text');
    // With a name of the pooler's on the server, what it means is renewed after a minute, or when it fails.
    const refused = (await perform(changed, [...known, ...script])).join('\n');
    const kept = await perform(changed, script);

    expect(refused).toMatch(/ 26000 unnamed prepared statement does not exist/u);
    expect(kept).toEqual(await perform({ clients: db, outsider }, script));
    await ask(outsider, 'alter table thing drop b');
    expect(played).toEqual(await perform({ clients: db, outsider }, [...known, ...script]));
    const { value } = await scrape(changed.clients.pooler.metricsPort as number);
    expect(value('headgate_pooler_own_errors_total', { class: '26', reason: 'forgotten_statement' })).toBe(1);
  },
);
