// Headgate beside a PgBouncer that is installed here: the columns that tools read, and what the doctor says.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../../src/cli/commands.js';
import { startTestPooler } from '../../support/pooler.js';
import { startPostgres, type TestDatabase } from '../../support/postgres.js';
import { besideEachOther, hasPgBouncer, Side } from './differences/side-by-side.js';

let db: TestDatabase;
let server: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  server = await startPostgres();
  db = { ...server, drop: async () => {} };
});
afterAll(() => server.stop());

const shows = [
  'version',
  'stats',
  'stats_totals',
  'stats_averages',
  'totals',
  'pools',
  'databases',
  'users',
  'lists',
  'clients',
  'servers',
  'sockets',
  'config',
  'mem',
  'dns_hosts',
  'dns_zones',
];

/** Written otherwise since the version that may be installed. */
const renamed: Readonly<Record<string, string>> = {
  'databases.reserve_pool': 'reserve_pool_size',
};

test.skipIf(!hasPgBouncer())(
  'every column of the installed PgBouncer is there, with its type and in its order',
  async () => {
    const { PgBouncer: expected, Headgate: found } = await besideEachOther(db, {}, async (side) => {
      await (await side.connect()).query('select 1');
      const all = shows.map(async (show) => ({
        show,
        fields: (await side.command(`show ${show}`)).fields.map(({ name, dataTypeID }) => ({
          name: renamed[`${show}.${name}`] ?? name,
          type: dataTypeID,
        })),
      }));
      return Promise.all(all);
    });
    for (const [at, { show, fields }] of expected.entries()) {
      const names = new Set(fields.map(({ name }) => name));
      const ours = found[at]?.fields.filter(({ name }) => names.has(name));
      expect({ show, fields: ours }).toEqual({ show, fields });
    }
  },
);

test.skipIf(!hasPgBouncer())(
  'the console is a row of SHOW POOLS, DATABASES, STATS and USERS, and counted by SHOW LISTS, as in the installed PgBouncer',
  async () => {
    const { PgBouncer: expected, Headgate: found } = await besideEachOther(db, {}, async (side) => {
      await (await side.connect()).query('select 1');
      const [pool] = (await side.ask('SHOW POOLS')).filter(({ database }) => database === 'pgbouncer');
      const names = await Promise.all(
        ['databases', 'users'].map(async (show) => (await side.ask(`SHOW ${show}`)).map(({ name }) => name)),
      );
      const stats = (await side.ask('SHOW STATS')).map(({ database }) => database);
      const lists = Object.fromEntries(
        (await side.ask('SHOW LISTS')).map(({ list, items }) => [list, items]),
      );
      const { databases, users, pools } = lists;
      const [ofDatabases = [], ofUsers = []] = names;
      return {
        pool,
        names: { databases: ofDatabases.sort(), users: ofUsers.sort() },
        stats: stats.sort(),
        counts: { databases, users, pools },
      };
    });
    expect(found).toMatchObject(expected);
  },
);

/** What pgbouncer_exporter reads: labels, and columns that are to be numbers. */
const exported: Readonly<Record<string, { readonly labels: string; readonly numbers: string }>> = {
  databases: {
    labels: 'name host database force_user pool_mode',
    numbers: 'port pool_size max_connections current_connections paused disabled',
  },
  stats_totals: {
    labels: 'database',
    numbers:
      'query_count query_time bytes_received bytes_sent wait_time xact_count xact_time client_parse_count server_parse_count bind_count',
  },
  pools: {
    labels: 'database user',
    numbers:
      'cl_active cl_active_cancel_req cl_waiting cl_waiting_cancel_req sv_active sv_active_cancel sv_being_canceled sv_idle sv_used sv_tested sv_login maxwait',
  },
};

test('pgbouncer_exporter finds its labels and numbers, its lists and its settings', async () => {
  const ours = await startTestPooler(db, {
    admin: { compatibility: 'pgbouncer', adminUsers: [db.user] },
    pooling: { poolMode: 'transaction' },
  });
  await (await ours.connect()).query('select 1');
  const console = await ours.connect({ database: 'pgbouncer' });
  expect((await console.query('SHOW VERSION;')).rows[0].version).toMatch(/^PgBouncer \d/);
  for (const [show, { labels, numbers }] of Object.entries(exported)) {
    const { rows } = await console.query(`SHOW ${show};`);
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) {
      for (const label of labels.split(' ')) expect(row).toHaveProperty(label);
      for (const number of numbers.split(' '))
        expect(Number(row[number] ?? Number.NaN), number).not.toBeNaN();
    }
  }
  const lists = (await console.query({ text: 'SHOW LISTS;', rowMode: 'array' })).rows;
  const names =
    'databases users pools free_clients used_clients login_clients free_servers used_servers dns_names dns_zones dns_queries';
  for (const name of names.split(' ')) expect(lists).toContainEqual([name, expect.any(Number)]);
  const settings = (await console.query({ text: 'SHOW CONFIG;', rowMode: 'array' })).rows;
  for (const name of ['max_client_conn', 'max_user_connections'])
    expect(settings).toContainEqual([name, expect.stringMatching(/^\d+$/), expect.any(String), 'yes']);
});

test.skipIf(!hasPgBouncer())('headgate doctor names what a PgBouncer can not show it', async () => {
  const { port } = await Side.start('PgBouncer', db);
  const said = { out: '', err: '' };
  const terminal = {
    out: (text: string) => {
      said.out += text;
    },
    err: (text: string) => {
      said.err += text;
    },
    hasColours: false,
    showsProgress: false,
  };
  const url = `postgres://${db.user}@127.0.0.1:${port}/pgbouncer`;
  expect(await runCommand(['doctor', '--url', url], terminal)).toBe(0);
  expect(said.err).toMatch(/^headgate: this pooler has no SHOW .*: what they would show was not checked\n$/);
  for (const view of ['PINS', 'ACTIVE_QUERIES', 'QUERY_STATS']) expect(said.err).toContain(`SHOW ${view}`);
});
