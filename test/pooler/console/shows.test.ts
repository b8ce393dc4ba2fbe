// Every SHOW has the columns that tools for PgBouncer expect, and values written as PgBouncer writes them.
import { expect, test } from 'vitest';
import { type ShowName, showNames } from '../../../src/pooler/console/command.js';
import { shows } from '../../../src/pooler/console/shows.js';
import { columnList, documentedColumns } from './documented-columns.js';
import { clientRecord, countersOf, FakePooler, poolRecord, serverRecord } from './fake-pooler.js';
import { listOf } from './rows.js';

type WithRows = Exclude<ShowName, 'help'>;

const namesWithRows = showNames.filter((name): name is WithRows => name !== 'help');

/** The rows, by the names of the columns. */
function rowsOf(name: WithRows, pooler: FakePooler): Record<string, unknown>[] {
  const { columns, rows } = shows[name];
  return listOf(rows(pooler)).map((row) => {
    expect(row).toHaveLength(columns.length);
    return Object.fromEntries(columns.map((column, index) => [column.name, row[index]]));
  });
}

/** A pooler that has something to show in every row. */
function busyPooler(): FakePooler {
  const pooler = new FakePooler(
    'users: { alice: { poolSize: 5, poolMode: session, maxUserConnections: 9 } }\nlimits: { maxUserClientConnections: 70 }\n',
  );
  pooler.listeningRecords = [{ address: '127.0.0.1', port: 6_432 }];
  pooler.userRecords = [
    { name: 'alice', servers: 1, clients: 2 },
    { name: 'bob', servers: 0, clients: 1 },
  ];
  pooler.poolRecords = [poolRecord({ discarded: { idle_timeout: 3, broken: 0, max_lifetime: 1 } })];
  pooler.clientRecords = [
    clientRecord({ state: 'active', serverId: 7, applicationName: 'psql', preparedStatements: 4 }),
    clientRecord({ id: 13, state: 'waiting', waitedMs: 2_500.125, heldBytes: 80 }),
    clientRecord({ id: 14, state: 'login', user: undefined, database: undefined }),
    clientRecord({ id: 15 }),
  ];
  pooler.serverRecords = [serverRecord({ state: 'active', clientId: 12, isCloseNeeded: true })];
  pooler.statsRecord = {
    windowMs: 10_000,
    databases: [{ database: 'app', total: countersOf({ queries: 100 }), before: countersOf({}) }],
  };
  pooler.memoryUsage = {
    rss: 9_000_000_000,
    heapTotal: 4_096,
    heapUsed: 1_025,
    external: 0,
    arrayBuffers: 1,
  };
  return pooler;
}

test.each(namesWithRows)(
  'The columns of SHOW %s are those of the documentation, in order and of the same types',
  (name) => {
    const columns = shows[name].columns.map((column) => `${column.name} ${column.type}`);
    expect(columns).toEqual(columnList(documentedColumns[name]));
  },
);

test.each(namesWithRows)(
  'The columns of SHOW %s hold texts and whole numbers as they say, and nothing else',
  (name) => {
    const { columns, rows } = shows[name];
    for (const row of listOf(rows(busyPooler()))) {
      row.forEach((value, index) => {
        const isText = columns[index]?.type === 'text';
        if (value !== null) expect(typeof value).toBe(isText ? 'string' : 'number');
      });
    }
  },
);

test('An idle pooler shows the columns, and no rows', () => {
  const idle = new FakePooler();
  for (const name of ['clients', 'servers', 'pools', 'stats', 'sockets', 'fds', 'pins', 'waiting'] as const)
    expect(rowsOf(name, idle)).toEqual([]);
  expect(rowsOf('peers', busyPooler())).toEqual([]);
  expect(rowsOf('peer_pools', busyPooler())).toEqual([]);
  expect(rowsOf('dns_hosts', busyPooler())).toEqual([]);
  expect(rowsOf('dns_zones', busyPooler())).toEqual([]);
});

test('SHOW CLIENTS has the connected clients, from where, since when, and the server that each uses', () => {
  expect(rowsOf('clients', busyPooler())[0]).toEqual({
    type: 'C',
    user: 'alice',
    database: 'app',
    replication: 'none',
    state: 'active',
    addr: '192.0.2.7',
    port: 50_123,
    local_addr: '192.0.2.1',
    local_port: 6_432,
    connect_time: '2026-03-04 05:06:07 UTC',
    request_time: '2026-03-04 15:16:17 UTC',
    wait: 0,
    wait_us: 0,
    close_needed: 0,
    ptr: '0xc0000000c',
    link: '0x500000007',
    remote_pid: 0,
    tls: '',
    application_name: 'psql',
    prepared_statements: 4,
    id: 12,
  });
});

test('SHOW CLIENTS has the time that a client waits in seconds and microseconds, and leaves out those that are logging in', () => {
  const [, waiting, ...others] = rowsOf('clients', busyPooler());
  expect(waiting).toMatchObject({ id: 13, state: 'waiting', wait: 2, wait_us: 500_125, link: '' });
  expect(others.map(({ id, state }) => [id, state])).toEqual([[15, 'idle']]);
});

test('SHOW CLIENTS never says that a second has a million microseconds', () => {
  const pooler = new FakePooler();
  pooler.clientRecords = [1_999.9999, 999.9996, 0.0004].map((waitedMs) => clientRecord({ waitedMs }));
  expect(rowsOf('clients', pooler).map(({ wait, wait_us }) => [wait, wait_us])).toEqual([
    [2, 0],
    [1, 0],
    [0, 0],
  ]);
});

test('SHOW CLIENTS has the version and the cipher of TLS', () => {
  const pooler = new FakePooler();
  const { ends } = clientRecord();
  const tls = { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' };
  pooler.clientRecords = [clientRecord({ ends: { ...ends, tls } })];
  expect(rowsOf('clients', pooler)[0]).toMatchObject({ tls: 'TLSv1.3/TLS_AES_256_GCM_SHA384' });
});

test('SHOW SERVERS has the state, the process and the client of each server, by the same pointers', () => {
  const pooler = busyPooler();
  const [server] = rowsOf('servers', pooler);
  const [client] = rowsOf('clients', pooler);
  expect(server).toMatchObject({
    type: 'S',
    user: 'app_rw',
    state: 'active',
    addr: '198.51.100.3',
    port: 5_432,
    close_needed: 1,
    remote_pid: 4_242,
    id: 7,
    wait: 0,
  });
  expect([server?.link, server?.ptr]).toEqual([client?.ptr, client?.link]);
});

test('SHOW SOCKETS has clients and servers with the names of their lists, and what is in their buffers', () => {
  const pooler = busyPooler();
  const { ends } = serverRecord();
  pooler.serverRecords = [
    ...(['active', 'idle', 'used', 'tested', 'new', 'active_cancel', 'being_canceled'] as const).map(
      (state, id) => serverRecord({ id: 20 + id, state }),
    ),
    serverRecord({ id: 30, ends: { ...ends, unsent: 9 } }),
  ];
  const rows = rowsOf('sockets', pooler);
  expect(rows.map(({ id, state }) => `${id} ${state}`)).toEqual([
    '12 cl_active',
    '13 cl_waiting',
    '14 cl_login',
    '15 cl_active',
    '20 sv_active',
    '21 sv_idle',
    '22 sv_used',
    '23 sv_tested',
    '24 sv_login',
    '30 sv_idle',
  ]);
  expect(rows[2]).toMatchObject({ user: '(nouser)', database: '(nodb)' });
  expect(rowsOf('active_sockets', pooler).map((row) => [row.id, row.pkt_avail, row.send_avail])).toEqual([
    [13, 80, 0],
    [30, 0, 9],
  ]);
});

test('SHOW FDS has every socket, and neither keys nor passwords', () => {
  const rows = rowsOf('fds', busyPooler());
  expect(rows.map(({ task, addr, port }) => `${task} ${addr} ${port}`)).toEqual([
    'pooler 127.0.0.1 6432',
    'client 192.0.2.7 50123',
    'client 192.0.2.7 50123',
    'client 192.0.2.7 50123',
    'client 192.0.2.7 50123',
    'server 198.51.100.3 5432',
  ]);
  for (const { cancel, password, scram_client_key, scram_server_key } of rows)
    expect([cancel, password, scram_client_key, scram_server_key]).toEqual([null, null, null, null]);
});

test('SHOW POOLS counts clients and servers by state; clients that want nothing are among the active ones', () => {
  const pooler = new FakePooler();
  pooler.poolRecords = [
    poolRecord({
      mode: 'session',
      clients: { idle: 5, active: 3, waiting: 2, active_cancel_req: 1, waiting_cancel_req: 4 },
      servers: { active: 3, idle: 6, used: 7, tested: 8, new: 9, active_cancel: 10, being_canceled: 11 },
      longestWaitMs: 61_002.003,
      waitCause: 'permit',
      dialFailure: { cause: 'connection_open', code: '28P01', message: 'no' },
    }),
    poolRecord({ user: 'bob', hosts: 2 }),
  ];
  expect(rowsOf('pools', pooler)).toEqual([
    {
      database: 'app',
      user: 'alice',
      cl_active: 8,
      cl_waiting: 2,
      cl_active_cancel_req: 1,
      cl_waiting_cancel_req: 4,
      sv_active: 3,
      sv_active_cancel: 10,
      sv_being_canceled: 11,
      sv_idle: 6,
      sv_used: 7,
      sv_tested: 8,
      sv_login: 9,
      maxwait: 61,
      maxwait_us: 2_003,
      pool_mode: 'session',
      load_balance_hosts: null,
      target_session_attrs: 'any',
      waits_for: null,
      wait_cause: 'permit',
      open_failure: 'connection_open',
      open_error_code: '28P01',
      open_error: 'no',
    },
    expect.objectContaining({ user: 'bob', cl_active: 0, maxwait: 0, load_balance_hosts: 'round-robin' }),
  ]);
});

test('SHOW DATABASES has what holds for each database, from its own settings or from those for all', () => {
  const pooler = new FakePooler(
    'pooling: { poolSize: 30, serverLifetime: 30m, minPoolSize: 2 }\nlimits: { maxDbConnections: 50 }\n',
  );
  pooler.paused.add('app');
  pooler.clientRecords = [clientRecord(), clientRecord({ id: 13 })];
  pooler.serverRecords = [serverRecord()];
  expect(rowsOf('databases', pooler)).toEqual([
    {
      name: 'app',
      host: 'db.example',
      port: 5_432,
      database: 'app',
      force_user: null,
      pool_size: 30,
      min_pool_size: 2,
      reserve_pool_size: 0,
      server_lifetime: 1_800,
      pool_mode: null,
      load_balance_hosts: null,
      target_session_attrs: 'any',
      max_connections: 50,
      current_connections: 1,
      max_client_connections: 0,
      current_client_connections: 2,
      paused: 1,
      disabled: 0,
    },
  ]);
});

test("SHOW DATABASES has the database's own pool mode, user and hosts where it has such", () => {
  const pooler = new FakePooler();
  const [record] = pooler.databases();
  const settings = {
    ...(record?.settings as NonNullable<typeof record>['settings']),
    host: ['one', 'other'],
    dbname: 'application',
    user: 'app_rw',
    poolMode: 'session' as const,
    poolSize: 3,
  };
  pooler.databases = () => [{ settings, isPaused: false, isDisabled: true, servers: 0, clients: 0 }];
  expect(rowsOf('databases', pooler)[0]).toMatchObject({
    host: 'one,other',
    database: 'application',
    force_user: 'app_rw',
    pool_size: 3,
    pool_mode: 'session',
    load_balance_hosts: 'round-robin',
    paused: 0,
    disabled: 1,
  });
});

test("SHOW USERS has a user's own settings, and limits from those for all where it has none", () => {
  expect(rowsOf('users', busyPooler())).toEqual([
    {
      name: 'alice',
      pool_size: '        5',
      reserve_pool_size: '',
      pool_mode: 'session',
      max_user_connections: 9,
      current_connections: 1,
      max_user_client_connections: 70,
      current_client_connections: 2,
    },
    {
      name: 'bob',
      pool_size: '',
      reserve_pool_size: '',
      pool_mode: null,
      max_user_connections: 0,
      current_connections: 0,
      max_user_client_connections: 70,
      current_client_connections: 1,
    },
  ]);
});

test('SHOW LISTS has all of the counts that exporters read', () => {
  const items = Object.fromEntries(
    rowsOf('lists', busyPooler()).map(({ list, items: count }) => [list, count]),
  );
  expect(items).toEqual({
    databases: 1,
    users: 2,
    peers: 0,
    pools: 1,
    peer_pools: 0,
    free_clients: 0,
    used_clients: 4,
    login_clients: 1,
    free_servers: 0,
    used_servers: 1,
    dns_names: 0,
    dns_zones: 0,
    dns_queries: 0,
    dns_pending: 0,
  });
});

test('SHOW STATS puts every counter under its own names, and averages beside totals', () => {
  const pooler = new FakePooler();
  // Every counter is another number, so that none can stand in the place of another.
  const names = Object.keys(countersOf({})) as (keyof ReturnType<typeof countersOf>)[];
  const total = countersOf(Object.fromEntries(names.map((name, index) => [name, 1_000 * (index + 1)])));
  pooler.statsRecord = { windowMs: 1_000, databases: [{ database: 'app', total, before: countersOf({}) }] };
  const values = [1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 10_000, 11_000, 12_000];
  const averages = [1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 2, 2, 9, 10_000, 11_000, 12_000];
  const own = [13_000, 14_000, 15_000, 16_000, 17_000, 18_000];
  expect(listOf(shows.stats.rows(pooler))).toEqual([['app', ...values, ...averages, ...own]]);
  expect(listOf(shows.stats_totals.rows(pooler))).toEqual([['app', ...values, ...own]]);
  expect(listOf(shows.stats_averages.rows(pooler))).toEqual([['app', ...averages]]);
});

test('SHOW STATS for all databases is the sum, one row for each number', () => {
  const pooler = new FakePooler();
  const stats = (database: string, queries: number) => ({
    database,
    total: countersOf({ queries, queryMicros: 10 * queries }),
    before: countersOf({}),
  });
  pooler.statsRecord = { windowMs: 2_000, databases: [stats('one', 10), stats('other', 30)] };
  const rows = listOf(shows.totals.rows(pooler));
  expect(rows.map(([name]) => name)).toEqual(
    ['total', 'avg'].flatMap((kind) =>
      [
        'server_assignment_count',
        'client_login_count',
        'xact_count',
        'query_count',
        'client_bytes',
        'server_bytes',
        'xact_time',
        'query_time',
        'wait_time',
        'ps_client_parse_count',
        'ps_server_parse_count',
        'ps_bind_count',
      ].map((name) => `${kind}_${name}`),
    ),
  );
  expect(Object.fromEntries(rows as [string, number][])).toMatchObject({
    total_query_count: 40,
    total_query_time: 400,
    avg_query_count: 20,
    avg_query_time: 10,
  });
});

test('What the process tells of itself in SHOW STATE is which of three it is', () => {
  const pooler = new FakePooler();
  const shown = () => rowsOf('state', pooler).map(({ key, value }) => `${key} ${value}`);
  expect(shown()).toEqual(['active yes', 'paused no', 'suspended no']);
  pooler.state = 'suspended';
  expect(shown()).toEqual(['active no', 'paused no', 'suspended yes']);
});

test('What the process tells of itself in SHOW VERSION begins with the version of PgBouncer that it is like, where tools look for it', () => {
  expect(rowsOf('version', new FakePooler())).toEqual([{ version: 'PgBouncer 1.26.1 (Headgate 0.1.0)' }]);
});

test('What the process tells of itself in SHOW CONFIG has numbers where exporters read them as such', () => {
  const config = new Map(
    rowsOf('config', new FakePooler('limits: { maxClientConn: 500 }')).map(({ key, ...row }) => [key, row]),
  );
  expect(config.get('max_client_conn')).toMatchObject({ value: '500', changeable: 'yes' });
  expect(config.get('max_user_connections')).toMatchObject({ value: '0' });
  expect(config.get('listen_port')).toMatchObject({ value: '6432', changeable: 'no' });
});

test('What the process tells of itself in SHOW MEM is in kilobytes, so that it fits', () => {
  expect(rowsOf('mem', busyPooler())).toEqual([
    { name: 'heap', size: 1_024, used: 2, free: 2, memtotal: 4_096 },
    { name: 'external', size: 1_024, used: 0, free: 0, memtotal: 0 },
    { name: 'array_buffers', size: 1_024, used: 1, free: 0, memtotal: 1_024 },
    { name: 'resident', size: 1_024, used: 8_789_063, free: 0, memtotal: 9_000_000_512 },
  ]);
});

test("Headgate's own SHOW PINS has who keeps a server, which, why and since when, the longest first", () => {
  const pooler = new FakePooler();
  const pinned = (id: number, reason: string, since: number) =>
    clientRecord({ id, serverId: id + 100, state: 'active', pin: { reason, since } });
  pooler.clientRecords = [
    pinned(1, 'listen', Date.UTC(2026, 0, 2)),
    clientRecord({ id: 2 }),
    pinned(3, 'advisory_lock', Date.UTC(2026, 0, 1)),
  ];
  expect(
    rowsOf('pins', pooler).map(({ client, server, reason, since }) => [client, server, reason, since]),
  ).toEqual([
    [3, 103, 'advisory_lock', '2026-01-01 00:00:00 UTC'],
    [1, 101, 'listen', '2026-01-02 00:00:00 UTC'],
  ]);
});

test("Headgate's own SHOW WAITING has the clients that wait for a server, the longest first", () => {
  const pooler = new FakePooler();
  pooler.clientRecords = [
    clientRecord({ id: 1, state: 'waiting', waitedMs: 10 }),
    clientRecord({ id: 2, state: 'active' }),
    clientRecord({ id: 3, state: 'waiting', waitedMs: 3_000.5 }),
  ];
  expect(rowsOf('waiting', pooler).map(({ client, wait, wait_us }) => [client, wait, wait_us])).toEqual([
    [3, 3, 500],
    [1, 0, 10_000],
  ]);
});

test("Headgate's own SHOW DISCARDS has how many servers were discarded, by pool and reason", () => {
  expect(listOf(shows.discards.rows(busyPooler()))).toEqual([
    ['app', 'alice', 'idle_timeout', 3],
    ['app', 'alice', 'max_lifetime', 1],
  ]);
});

test("Headgate's own SHOW LEDGER has what counts against the limit of each pool", () => {
  const pooler = new FakePooler();
  pooler.poolRecords = [poolRecord({ ledger: { limit: 20, pending: 1, live: 2, closing: 3, peak: 4 } })];
  expect(listOf(shows.ledger.rows(pooler))).toEqual([['app', 'alice', 20, 1, 2, 3, 4]]);
});
