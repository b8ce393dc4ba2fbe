// Differences in what clients have in common, and in how they end.
import { once } from 'node:events';
import pg from 'pg';
import { expect, onTestFinished, vi } from 'vitest';
import { startPostgres } from '../../../support/postgres.js';
import { type Difference, endOf, outcomeOf, pairOf } from './difference.js';
import { besideEachOther, Side } from './side-by-side.js';

const soon = { timeout: 30_000, interval: 20 };

/** A temporary table of one client, asked for by another one. */
const foundByAnother = async (side: Side): Promise<string> => {
  const [one, other] = await pairOf(side);
  await one.query('create temporary table mine (n int)');
  return outcomeOf(() => other.query('select * from mine'));
};

export const sessionDifferences: readonly Difference[] = [
  {
    row: 'what a client leaves in its session',
    title: 'what a client leaves in its session reaches the next one in PgBouncer, and not here',
    versions: {},
    async show(db) {
      const seen = await besideEachOther(db, {}, async (side) => {
        const [one, other] = await pairOf(side);
        await one.query("set work_mem = '1234kB'");
        const left = (await other.query('show work_mem')).rows[0].work_mem;
        return [left, (await one.query('show work_mem')).rows[0].work_mem];
      });
      expect(seen).toEqual({ PgBouncer: ['1234kB', '1234kB'], Headgate: ['4MB', '1234kB'] });
    },
  },
  ...['transaction', 'statement'].map((mode) => ({
    row: 'pins',
    title: `a temporary table stays with its client here with pool_mode = ${mode}, and with the server connection in PgBouncer`,
    versions: {},
    async show(db: Parameters<Difference['show']>[0]) {
      const settings = { pool_mode: mode, default_pool_size: 2 };
      const seen = await besideEachOther(db, { settings }, foundByAnother);
      expect(seen).toEqual({ PgBouncer: 'served', Headgate: 'relation "mine" does not exist' });
    },
  })),
  {
    row: '`client_idle_timeout`',
    title: 'client_idle_timeout ends a client with a server connection here, and not in PgBouncer',
    versions: {},
    async show(db) {
      const settings = { pool_mode: 'session', default_pool_size: 2, client_idle_timeout: 1 };
      const seen = await besideEachOther(db, { settings }, async (side) => {
        const [holder, other] = await pairOf(side);
        await holder.query('select 1');
        // Idle for less long than the holder, so that both have been judged by then.
        await endOf(other);
        return outcomeOf(() => holder.query('select 1'));
      });
      expect(seen).toEqual({ PgBouncer: 'served', Headgate: expect.stringMatching(/timeout|connection/i) });
    },
  },
  {
    row: '`client_idle_timeout`',
    title: 'a longer client_idle_timeout of its user keeps a client with a server connection here',
    async show(db) {
      const settings = { pool_mode: 'session', default_pool_size: 2, client_idle_timeout: 1 };
      const more = '[users]\nlasting = client_idle_timeout=600';
      const side = await Side.start('Headgate', db, { settings, more });
      const [holder, other] = [await side.connect({ user: 'lasting' }), await side.connect()];
      await holder.query('select 1');
      await endOf(other);
      expect(await outcomeOf(() => holder.query('select 1'))).toBe('served');
    },
  },
  {
    row: 'replication: `query_timeout`, `transaction_timeout` and idle timeouts',
    title:
      'a replication client outlasts query_timeout, and KILL_CLIENT ends it (PgBouncer has replication since 1.23)',
    async show() {
      const server = await startPostgres({ settings: { wal_level: 'replica', max_wal_senders: 2 } });
      const db = { ...server, drop: async () => {} };
      const side = await Side.start('Headgate', db, { settings: { query_timeout: 1, default_pool_size: 3 } });
      const replication: pg.ClientConfig & { replication: string } = { replication: 'true' };
      const receiver = await side.connect(replication);
      const { rows } = await receiver.query('IDENTIFY_SYSTEM');
      const ended = endOf(receiver);
      receiver.query(`START_REPLICATION ${rows[0].xlogpos}`).catch(() => {});
      const direct = new pg.Client({ connectionString: db.url });
      await direct.connect();
      onTestFinished(() => direct.end());
      const streaming = async () => (await direct.query('select pid from pg_stat_replication')).rows.length;
      await vi.waitFor(async () => expect(await streaming()).toBe(1), soon);
      const ordinary = await side.connect();
      expect(await outcomeOf(() => ordinary.query('select pg_sleep(60)'))).toMatch(/query.timeout/);
      expect(await streaming()).toBe(1);
      const shown = await side.ask('SHOW CLIENTS');
      const { id } = shown.find(({ replication: kind }) => kind !== 'none') ?? {};
      await side.ask(`KILL_CLIENT ${id}`);
      await ended;
      await vi.waitFor(async () => expect(await streaming()).toBe(0), soon);
    },
  },
  {
    row: '`max_prepared_statements`, switched from or to 0',
    title:
      'a name that was given before max_prepared_statements becomes 0 fails with 26000 (in PgBouncer since 1.21)',
    async show(db) {
      const side = await Side.start('Headgate', db, { settings: { max_prepared_statements: 10 } });
      const client = await side.connect();
      const named = { name: 'mine', text: 'select 1' };
      await client.query(named);
      await client.query(named);
      await side.ask('SET max_prepared_statements = 0');
      await expect(client.query(named)).rejects.toMatchObject({ code: '26000' });
      const later = await side.connect();
      expect(await outcomeOf(() => later.query({ ...named, name: 'later' }))).toBe('served');
    },
  },
  {
    row: '`total_server_parse_count`',
    title:
      'each Parse of a client goes to its server, so both counts are equal (PgBouncer counts them since 1.24)',
    async show(db) {
      const side = await Side.start('Headgate', db, { settings: { max_prepared_statements: 10 } });
      for (let n = 0; n < 3; n++) await (await side.connect()).query({ name: 'mine', text: 'select 1' });
      const stats = await side.ask('SHOW STATS');
      const { total_client_parse_count: asked, total_server_parse_count: sent } =
        stats.find(({ database }) => database === db.database) ?? {};
      expect([asked, sent]).toEqual(['3', '3']);
    },
  },
  {
    row: '`-R`, handing over sockets',
    title: 'a PgBouncer with -R takes over the clients of the old one, and Headgate refuses -R',
    versions: { until: '1.25' },
    async show(db) {
      const seen = await besideEachOther(db, { settings: { unix_socket_dir: 'FOLDER' } }, async (side) => {
        const client = await side.connect();
        await client.query('select 1');
        const gone = once(side.child, 'exit');
        if (side.name === 'PgBouncer') {
          side.spawn(['-R']);
          await gone;
        } else
          expect(await side.run(['-R'])).toMatchObject({
            code: 2,
            stderr: expect.stringContaining('-R (online restart) is not supported'),
          });
        await client.query('select 1');
        return side.child.exitCode === null ? 'the same process' : 'another process';
      });
      expect(seen).toEqual({ PgBouncer: 'another process', Headgate: 'the same process' });
    },
  },
  {
    row: '`-R`, handing over sockets',
    title:
      'with so_reuseport a new process serves new clients, and the old one waits for its clients after SIGTERM',
    isPossible: process.platform === 'linux',
    async show(db) {
      const side = await Side.start('Headgate', db, { settings: { so_reuseport: 1 } });
      const client = await side.connect();
      const gone = once(side.child, 'exit');
      side.spawn();
      await side.isUp(2);
      side.child.kill('SIGTERM');
      await vi.waitFor(() => expect(side.log()).toContain('waiting for all clients disconnect'), soon);
      const fresh = await side.connect();
      await fresh.query('select 1');
      await client.query('select 1');
      await client.end();
      expect(await gone).toEqual([0, null]);
      await fresh.query('select 1');
    },
  },
];
