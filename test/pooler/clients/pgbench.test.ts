import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestPooler, type TestPooler } from '../../support/pooler.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { has, mostSessionsWhile, runWell, scratchFolder } from './programs.js';

const poolSize = 3;
let db: TestDatabase;
let pooler: TestPooler;
beforeAll(async () => {
  db = await withDatabase();
  pooler = await startTestPooler(db, { pooling: { poolSize } });
});
afterAll(async () => {
  await pooler.stop();
  await db.drop();
});

interface Load {
  readonly clients: number;
  /** Of each client. */
  readonly transactions: number;
  readonly more: readonly string[];
}

/** Runs pgbench to its end; every transaction must have been done, on no more servers than the pool has. */
async function bench({ clients, transactions, more }: Load): Promise<void> {
  const most = await mostSessionsWhile(db, async () => {
    const args = ['-n', '-c', String(clients), '-t', String(transactions), ...more];
    const printed = await runWell('pgbench', args, pooler);
    const all = clients * transactions;
    expect(printed).toContain(`number of transactions actually processed: ${all}/${all}`);
    expect(printed).toContain('number of failed transactions: 0 ');
  });
  expect(most).toBeLessThanOrEqual(poolSize);
}

/** Each payment is in all four tables, or in none of them. */
async function expectBooksToBalance(payments: number): Promise<void> {
  const client = await pooler.connect();
  const { rows } = await client.query(`
    select (select sum(abalance) from pgbench_accounts) as accounts, (select sum(bbalance) from pgbench_branches) as branches,
      (select sum(tbalance) from pgbench_tellers) as tellers, (select sum(delta) from pgbench_history) as history,
      (select count(*)::int from pgbench_history) as payments`);
  const { accounts, branches, tellers, history } = rows[0];
  expect([branches, tellers, history]).toEqual([accounts, accounts, accounts]);
  expect(rows[0].payments).toBe(payments);
}

describe.runIf(has('pgbench'))('pgbench', () => {
  beforeAll(async () => {
    await runWell('pgbench', ['-i', '-q', '-s', '1'], pooler);
  });

  test('pgbench pays in what it says, with 12 clients on 3 servers, in each protocol', async () => {
    // Before version 16, a thread of pgbench that prepares for one of its clients waits, whatever its others hold.
    const threads = { simple: '2', extended: '2', prepared: '12' };
    for (const [protocol, count] of Object.entries(threads))
      await bench({ clients: 12, transactions: 40, more: ['-M', protocol, '-j', count] });
    await expectBooksToBalance(3 * 12 * 40);
  });

  test.each(['simple', 'extended', 'prepared'])('pgbench reads in the protocol: %s', (protocol) =>
    bench({ clients: 12, transactions: 60, more: ['-S', '-j', '2', '-M', protocol] }),
  );

  test.each(['simple', 'extended', 'prepared'])(
    'pgbench connects anew for each transaction in the protocol: %s',
    (protocol) => bench({ clients: 8, transactions: 12, more: ['-S', '-C', '-j', '2', '-M', protocol] }),
  );

  const read = 'select abalance from pgbench_accounts where aid = :aid;\n';
  const pipelines: Readonly<Record<string, string>> = {
    'of reads': `\\startpipeline\n${read.repeat(8)}\\endpipeline\n`,
    'of transactions': `\\startpipeline\nbegin;\n${read}update pgbench_tellers set filler = 'x' where tid = 1 + :aid % 10;\n${read}commit;\n${read}\\endpipeline\n`,
    'inside a transaction': `begin;\n\\startpipeline\n${read.repeat(3)}\\endpipeline\n${read}commit;\n`,
  };
  test.each(Object.entries(pipelines))('runs pipelines %s', async (_name, script) => {
    const file = join(scratchFolder(), 'pipeline.sql');
    writeFileSync(file, `\\set aid random(1, 100000)\n${script}`);
    for (const protocol of ['extended', 'prepared'])
      await bench({ clients: 9, transactions: 25, more: ['-M', protocol, '-j', '9', '-f', file] });
  });

  test('pgbench aborts and repeats transactions that conflict', async () => {
    const file = join(scratchFolder(), 'conflict.sql');
    const text = 'update pgbench_branches set filler = :aid::text where bid = 1;';
    writeFileSync(file, `\\set aid random(1, 1000)\nbegin isolation level serializable;\n${text}\ncommit;\n`);
    for (const protocol of ['simple', 'extended']) {
      const more = ['-M', protocol, '-j', '2', '--max-tries=1000', '-f', file];
      await bench({ clients: 6, transactions: 20, more });
    }
  });
});
