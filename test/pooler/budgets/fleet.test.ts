// Several poolers, each a process with a configuration file, on one budget in DynamoDB: what PostgreSQL sees of them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasJava, startDynamo } from '../../../scripts/lib/dynamodb-local.mjs';
import { rejectionOf } from '../../support/outcomes.js';
import { type TestDatabase, withDatabase } from '../../support/postgres.js';
import { SessionWatch } from '../../support/session-watch.js';
import { FleetStage, holdAtOnce, load, scrape, showFleet } from './fleet-stage.js';

const limit = 6;

describe.runIf(hasJava)('poolers that share a budget', { timeout: 60_000 }, () => {
  let db: TestDatabase;
  let dynamo: Awaited<ReturnType<typeof startDynamo>>;

  beforeAll(async () => {
    process.env['AWS_ACCESS_KEY_ID'] = 'test';
    process.env['AWS_SECRET_ACCESS_KEY'] = 'test';
    [db, dynamo] = await Promise.all([withDatabase(), startDynamo()]);
  });
  afterAll(async () => {
    await dynamo?.stop();
    await db.drop();
  });

  async function stage(settings: Readonly<Record<string, unknown>>): Promise<FleetStage> {
    const fleet = new FleetStage(db, dynamo, settings);
    await fleet.prepare();
    return fleet;
  }

  test('poolers of a fleet never have more connections together than the limit, and those of a killed one come to the others', async () => {
    const fleet = await stage({ limit, leaseFor: '2s', grace: '1s', block: 2 });
    const [one, other] = await Promise.all([
      fleet.start('one', { listen: { workers: 2 } }),
      fleet.start('other'),
    ]);
    const watch = await SessionWatch.start(db);
    await Promise.all([load(one, 8, 20), load(other, 8, 20)]);

    const rows = [...(await showFleet(one)), ...(await showFleet(other))];
    expect(rows).toEqual([
      expect.objectContaining({ instance: 'one', endpoint: 'db.example', limit, state: 'ok' }),
      expect.objectContaining({ instance: 'other', endpoint: 'db.example', limit, state: 'ok' }),
    ]);
    for (const { owned, held, server } of rows) {
      expect(owned).toBeGreaterThan(0);
      expect(held).toBeLessThanOrEqual(owned);
      expect(server).toBe(`${db.host}:${db.port}`);
    }
    for (const served of [one, other]) {
      const text = await scrape(served);
      const labels = `{service="headgate",server="${db.host}:${db.port}"}`;
      expect(text).toContain(`\ndsql_distributed_conn_lease_limit${labels} ${limit}\n`);
      expect(text).toMatch(/\nheadgate_coordinator_state\{[^}]*state="ok"\} 1\n/);
      expect(text.match(/^# TYPE headgate_lease_owned /gm)).toHaveLength(1);
    }

    one.child.kill('SIGKILL');
    const all = await holdAtOnce(other, limit);
    expect((await showFleet(other))[0]).toMatchObject({ owned: limit, held: limit });
    expect(Number((await showFleet(other))[0]?.reclaimed)).toBeGreaterThan(0);
    await Promise.all(all.map((client) => client.query('commit')));
    await watch.stop();
    watch.expectAtMost(limit);
    // The watch has seen connections.
    expect(watch.most).toBe(limit);
    expect(watch.looks).toBeGreaterThan(20);
  });

  test('poolers of a fleet have what one that is stopped had at once, and not when its lease would have ended', async () => {
    const fleet = await stage({ limit, leaseFor: '1h' });
    const [one, other] = await Promise.all([
      fleet.start('one', { listen: { workers: 2 } }),
      fleet.start('other'),
    ]);
    const busy = await holdAtOnce(one, limit);
    const waiting = holdAtOnce(other, limit);
    one.child.kill('SIGTERM');
    await one.says('shutdown started');
    await Promise.all(busy.map((client) => client.query('commit')));
    expect(await one.ended()).toBe(0);
    await waiting;
    expect(await showFleet(other)).toEqual([
      expect.objectContaining({ owned: limit, held: limit, active: limit, reclaimed: '0' }),
    ]);
  });

  test('share what there is when both want all of it, although one had it first', async () => {
    const fleet = await stage({ limit, leaseFor: '10m', grace: '2s' });
    const [one, other] = await Promise.all([fleet.start('one'), fleet.start('other')]);
    await load(one, 8, 5);
    const working = new AbortController();
    const busy = (async () => {
      while (!working.signal.aborted) await load(one, 8, 20);
    })();
    // Half of it, although the first one goes on asking for more.
    await holdAtOnce(other, limit / 2);
    working.abort();
    await busy;
    const [row] = await showFleet(one);
    expect(row?.held).toBeLessThanOrEqual(limit / 2);
  });

  test('poolers of a fleet leave to others what they want and may not have', async () => {
    // Demand is reported with each renewal, if not before.
    const fleet = await stage({ limit, leaseFor: '6s', grace: '2s' });
    const [small, other] = await Promise.all([
      fleet.startHere('small', { limits: { maxServerConnections: 2 } }),
      fleet.startHere('other'),
    ]);
    const working = new AbortController();
    const busy = Promise.all(
      Array.from({ length: 8 }, async () => {
        const client = await small.connect();
        while (!working.signal.aborted) await client.query('select pg_sleep(0.005)');
      }),
    );
    await Promise.all(
      Array.from({ length: limit - 2 }, async () => (await other.connect()).query('begin; select 1')),
    );
    // Its eight clients would take more, and that is nobody else's business.
    await expect.poll(() => fleet.wantedBy('small'), { timeout: 20_000 }).toBe(2);
    working.abort();
    await busy;
    expect(small.pooler.view.fleet()[0]?.leases?.held).toBe(2);
  });

  test('poolers of a fleet have a local share while the table does not answer, and who gets nothing is told why', async () => {
    // Nobody has made its table.
    const meanwhile = { onCoordinatorLoss: 'localShare', localShare: 1, localRate: 50 };
    const fleet = new FleetStage(db, dynamo, { limit, rate: 50, ...meanwhile });
    const pooler = await fleet.start('one', { timeouts: { queryWaitTimeout: '2s' } });
    const [holder] = await holdAtOnce(pooler, 1);
    const refused = await rejectionOf(holdAtOnce(pooler, 1));
    expect(refused).toMatchObject({
      detail:
        `1 of 1 connections (server ${db.host}:${db.port}) are held, 1 of them here; ` +
        'the table of the leases does not answer (misconfigured).',
    });
    await holder?.query('commit');
    expect(await showFleet(pooler)).toEqual([
      expect.objectContaining({ state: 'lost', rate_state: 'failing', owned: 0, held: 1, limit }),
    ]);
    expect(await scrape(pooler)).toMatch(/\nheadgate_rate_state\{.*state="failing"\} 1\n/);
    await pooler.says('there is no valid lease, and the table does not answer: localShare');
  });

  test('poolers of a fleet open connections no faster together than the rate says', async () => {
    const [rate, burst, dials] = [10, 12, 28];
    const fleet = await stage({ rate, burst });
    // Every statement needs a new connection.
    const tree = { pooling: { serverMaxUses: 1 }, fairShares: { capacity: 'none' } };
    const poolers = await Promise.all([
      fleet.start('one', { ...tree, listen: { workers: 2 } }),
      fleet.start('other', tree),
    ]);
    const began = performance.now();
    await Promise.all(poolers.map((served) => load(served, 2, dials / 4)));
    const tookMs = performance.now() - began;
    // May take longer on a busy machine, and never less.
    expect(tookMs).toBeGreaterThanOrEqual(((dials - burst) / rate) * 1_000);
    const rows = (await Promise.all(poolers.map(showFleet))).flat();
    expect(rows.map(({ rate_state }) => rate_state)).toEqual(['ok', 'ok']);
    expect(rows.reduce((sum, { permits }) => sum + Number(permits), 0)).toBeGreaterThanOrEqual(dials);
    for (const served of poolers)
      expect(await scrape(served)).toMatch(/\nheadgate_rate_permits_total\{.*\} \d+\n/);
  });
});
