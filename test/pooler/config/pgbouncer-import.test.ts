// From pgbouncer.ini to our configuration: what is carried over, what is not, and that nothing changes on the way to YAML.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ConfigError, Problems } from '../../../src/pooler/config/config-problems.js';
import { readConfig } from '../../../src/pooler/config/config-reader.js';
import type { ConfigTree } from '../../../src/pooler/config/config-tree.js';
import { importReport } from '../../../src/pooler/config/import-report.js';
import { allOptions, type EntryKind, entryOptions } from '../../../src/pooler/config/option-table.js';
import { type ImportedSetting, importIni } from '../../../src/pooler/config/pgbouncer-import.js';
import { leftOutOptions } from '../../../src/pooler/config/pgbouncer-left-out.js';
import { poolSettingsFor } from '../../../src/pooler/config/pool-settings.js';
import {
  type DatabaseConfig,
  databaseFor,
  type PoolerConfig,
} from '../../../src/pooler/config/pooler-config.js';
import { parseYaml } from '../../../src/pooler/config/yaml-tree.js';
import { writeYaml } from '../../../src/pooler/config/yaml-writer.js';
import { folderWith, problemsOf } from './config-files.js';

const samples = join(import.meta.dirname, 'samples');

/** Throws what is wrong. */
function configOf(tree: ConfigTree): PoolerConfig {
  const problems = new Problems();
  const sources = { flags: new Map(), environment: {}, tree, folder: '/', readsFiles: false };
  const { config } = readConfig(sources, problems);
  if (problems.list.length > 0) throw new ConfigError(problems.list);
  return config;
}

function imported(file: string, folder = samples) {
  const problems = new Problems();
  const { tree, settings } = importIni(file, folder, problems);
  if (problems.list.length > 0) throw new ConfigError(problems.list);
  return { tree, settings, config: configOf(tree) };
}

/** What is imported from these lines. */
function importedLines(...lines: string[]) {
  return imported('p.ini', folderWith({ 'p.ini': lines.join('\n') }));
}

function outcomes(settings: readonly ImportedSetting[], outcome: string): string[] {
  return settings.filter((setting) => setting.outcome === outcome).map(({ name }) => name);
}

/** With what a secret hides, so that two can be compared. */
function revealed(config: PoolerConfig): unknown {
  const entries = (map: ReadonlyMap<string, { password: { reveal(): string } | undefined }>) =>
    [...map].map(([name, entry]) => [name, { ...entry, password: entry.password?.reveal() }]);
  return { ...config, databases: entries(config.databases), users: entries(config.users) };
}

test('The sample with every option has every option that we know of PgBouncer', () => {
  const { settings } = imported('everything.ini');
  const names = new Set(settings.map(({ name }) => name));
  const general = allOptions.flatMap(({ option }) =>
    option.pgbouncer === undefined ? [] : [option.pgbouncer.name ?? option.name],
  );
  const missing = [...general, ...Object.keys(leftOutOptions)].filter((name) => !names.has(name));
  const ofEntries = (kind: EntryKind) =>
    entryOptions(kind).filter(
      ([, option]) => option.pgbouncer !== undefined && !names.has(`shop.${option.name}`),
    );
  expect([missing, ofEntries('databases'), ofEntries('users')]).toEqual([[], [], []]);
});

test('The sample with every option is carried over, value by value', () => {
  const { config } = imported('everything.ini');
  expect(config.listen).toMatchObject({
    addresses: ['10.0.0.5', '::1'],
    port: 7432,
    backlog: 512,
    reusePort: true,
  });
  expect(config.unixSocket).toMatchObject({ dir: '/var/run/pgbouncer', mode: 0o770, group: 'postgres' });
  expect(config.tcp).toMatchObject({ keepAlive: false, keepAliveIdle: 60_000 });
  expect(config.clientTls).toMatchObject({
    mode: 'require',
    keyFile: '/etc/pgbouncer/tls.key',
    certFile: '/etc/pgbouncer/tls.crt',
    caFile: '/etc/pgbouncer/ca.crt',
    protocols: { min: 'TLSv1.3', max: 'TLSv1.3' },
    ciphers: 'HIGH:!aNULL',
    tls13Ciphers: 'TLS_AES_256_GCM_SHA384',
    ecdhCurve: 'auto',
    dheParams: 'auto',
  });
  expect(config.serverTls).toMatchObject({
    mode: 'verify-full',
    protocols: { min: 'TLSv1', max: 'TLSv1.3' },
    ciphers: undefined,
  });
  expect(config.auth).toMatchObject({
    type: 'scram-sha-256',
    file: '/etc/pgbouncer/userlist.txt',
    hbaFile: '/etc/pgbouncer/hba.conf',
    identFile: '/etc/pgbouncer/ident.conf',
    user: 'lookup',
    query: 'SELECT uname, phash FROM pgbouncer.user_lookup($1)',
    dbname: 'reports',
    queryCacheTime: 0,
    scramIterations: 8192,
  });
  expect(config.pooling).toMatchObject({
    poolMode: 'transaction',
    poolSize: 25,
    minPoolSize: 3,
    reservePoolSize: 4,
    reservePoolTimeout: 2_500,
    serverLifetime: 1_800_000,
    serverLifetimeJitter: 0.1,
    serverMaxUses: 0,
    serverIdleTimeout: 120_000,
    serverConnectTimeout: 5_000,
    serverLoginRetry: 3_000,
    serverConnectLimit: 1,
    serverRoundRobin: true,
    serverCheckDelay: 10_000,
    serverCheckQuery: 'select 1',
    serverResetQuery: 'DEALLOCATE ALL',
    serverResetQueryAlways: true,
    serverCleaningTimeout: 10_000,
    serverFastClose: true,
    maxPreparedStatements: 500,
    deferBegin: false,
    trackExtraParameters: ['IntervalStyle', 'search_path'],
    ignoreStartupParameters: ['extra_float_digits', 'options'],
    applicationNameAddHost: true,
    disableSimpleQuery: true,
  });
  expect(config.limits).toMatchObject({
    maxClientConn: 5_000,
    maxServerConnections: 0,
    maxDbConnections: 60,
    maxDbClientConnections: 800,
    maxUserConnections: 50,
    maxUserClientConnections: 700,
    maxPacketSize: 2 ** 30,
  });
  expect(config.timeouts).toMatchObject({
    queryWaitTimeout: 45_000,
    queryWaitNotify: 3_000,
    queryTimeout: 300_000,
    transactionTimeout: 240_000,
    idleTransactionTimeout: 180_000,
    clientIdleTimeout: 7_200_000,
    clientLoginTimeout: 20_000,
    cancelWaitTimeout: 4_000,
    suspendTimeout: 6_000,
    shutdownTimeout: 2_073_600_000,
    autodbIdleTimeout: 600_000,
    poolIdleTimeout: 900_000,
  });
  expect(config.admin).toMatchObject({
    adminUsers: ['root', 'alice'],
    statsUsers: ['grafana'],
    loginNotifyMessage: 'Welcome to the pooler.',
    pidFile: '/var/run/pgbouncer/pgbouncer.pid',
  });
  expect(config.logging).toMatchObject({
    level: 'debug',
    format: 'text',
    connections: false,
    disconnections: false,
    poolerErrors: false,
    stats: false,
    statsPeriod: 30_000,
  });
});

test('The sample with every option has its databases and users carried over', () => {
  const { config } = imported('everything.ini');
  expect([...config.databases.keys()]).toEqual(['shop', 'reports', 'odd name "quoted"', 'local', '*']);
  const { password, ...shop } = config.databases.get('shop') as NonNullable<
    ReturnType<typeof config.databases.get>
  >;
  expect(password?.reveal()).toBe("it's; a # secret");
  expect(shop).toMatchObject({
    host: ['db1.internal', 'db2.internal'],
    port: 5433,
    dbname: 'shop_prod',
    user: 'shop',
    authUser: 'lookup',
    authQuery: 'SELECT uname, phash FROM pgbouncer.user_lookup($1)',
    authDbname: 'reports',
    poolSize: 40,
    minPoolSize: 4,
    reservePoolSize: 6,
    connectQuery: "SET statement_timeout = '5s'",
    poolMode: 'statement',
    queryWaitTimeout: 7_500,
    loadBalanceHosts: 'disable',
    targetSessionAttrs: 'read-write',
    maxDbConnections: 80,
    maxDbClientConnections: 900,
    serverLifetime: 900_000,
    serverMaxUses: undefined,
    clientEncoding: 'UTF8',
    datestyle: 'ISO',
    timezone: 'Europe/Berlin',
    applicationName: 'pooled',
  });
  expect(config.databases.get('reports')).toMatchObject({
    host: ['/var/run/postgresql'],
    reservePoolSize: 2,
    serverLifetime: undefined,
    serverMaxUses: undefined,
    poolSize: undefined,
    queryWaitTimeout: undefined,
  });
  expect(config.databases.get('local')).toMatchObject({ host: ['/var/run/pgbouncer'], port: 5432 });
  expect(config.users.get('shop')).toEqual({
    name: 'shop',
    password: undefined,
    minUserConnections: 0,
    weight: undefined,
    poolMode: 'session',
    poolSize: 11,
    reservePoolSize: 3,
    maxUserConnections: 12,
    maxUserClientConnections: 120,
    queryTimeout: 30_000,
    queryWaitTimeout: 5_000,
    transactionTimeout: 90_000,
    idleTransactionTimeout: 60_000,
    clientIdleTimeout: 600_000,
  });
});

test('The sample with every option has what is not the same, and what is left out, in its report', () => {
  const { settings } = imported('everything.ini');
  expect(outcomes(settings, 'difference')).toEqual([
    'verbose',
    'server_reset_query',
    'server_login_retry',
    'client_tls_ecdhcurve',
    'client_tls_dheparams',
    'client_idle_timeout',
    'shop.client_idle_timeout',
  ]);
  expect(outcomes(settings, 'left-out').sort()).toEqual(Object.keys(leftOutOptions).sort());
  expect(outcomes(settings, 'default')).toEqual(expect.arrayContaining(['compatibility', 'local.host']));
  const report = importReport(settings);
  expect(report[0]).toMatch(/^\d+ settings carried over, 7 with a difference, 12 left out$/);
  expect(report).toContainEqual(expect.stringMatching(/^ {2}everything.ini:\d+ {2}sbuf_loopcnt: every/));
  expect(report.join('\n')).not.toContain('secret');
});

test.each(['everything.ini', 'debian.ini', 'tenants.ini'])(
  'Every sample %s is the same after it was written as YAML',
  (file) => {
    const { tree, config } = imported(file);
    const problems = new Problems();
    const yaml = writeYaml(tree.data, ['from a test']);
    const again = configOf(parseYaml(yaml, 'again.yaml', '/', problems));
    expect(problems.list).toEqual([]);
    expect(revealed(again)).toEqual(revealed(config));
  },
);

test('Every sample of a distribution keeps the defaults of PgBouncer', () => {
  const { config, settings } = imported('debian.ini');
  expect(config.pooling.poolMode).toBe('session');
  expect(config.auth).toMatchObject({ type: 'md5', file: '/etc/pgbouncer/userlist.txt' });
  expect(config.databases.get('app')?.host).toEqual(['/var/run/postgresql']);
  expect(config.databases.get('analytics')).toMatchObject({ host: ['10.1.2.3'], dbname: 'dwh' });
  expect(outcomes(settings, 'default')).toEqual(
    expect.arrayContaining(['pool_mode', 'app.host', 'compatibility']),
  );
});

test('Every sample of many files is read as one', () => {
  const { config } = imported('tenants.ini');
  expect([...config.databases.keys()]).toEqual(['tenant_a', 'tenant_b', 'shared']);
  expect(config.databases.get('tenant_a')).toMatchObject({ host: ['a.internal'], poolSize: 5 });
  expect(config.users.get('b')?.maxUserConnections).toBe(5);
  expect(config.auth.file).toBe(join(samples, 'userlist.txt'));
});

test('A pgbouncer.ini that says nothing has what PgBouncer would have', () => {
  const { config, settings } = importedLines('[pgbouncer]');
  expect(config.listen.addresses).toEqual([]);
  expect(config.pooling.poolMode).toBe('session');
  expect(config.auth.type).toBe('md5');
  expect(config.limits.maxClientConn).toBe(100);
  expect(importReport(settings)).toEqual([
    '0 settings carried over, 0 with a difference, 0 left out',
    "PgBouncer's defaults that are not Headgate's, written out:",
    "  listen_addr -> listen.addresses: PgBouncer's default is none",
    "  auth_type -> auth.type: PgBouncer's default is md5",
    "  auth_query_cache_time -> auth.queryCacheTime: PgBouncer's default is 0",
    "  failed_login_delay -> auth.failedLoginDelay: PgBouncer's default is 0",
    "  pool_mode -> pooling.poolMode: PgBouncer's default is session",
    "  server_connect_limit -> pooling.serverConnectLimit: PgBouncer's default is 1",
    "  defer_begin -> pooling.deferBegin: PgBouncer's default is 0",
    "  max_client_conn -> limits.maxClientConn: PgBouncer's default is 100",
    "  shutdown_timeout -> timeouts.shutdownTimeout: PgBouncer's default is 2073600",
    "  compatibility -> admin.compatibility: PgBouncer's default is pgbouncer",
    "  sigterm_mode -> admin.sigtermMode: PgBouncer's default is wait_for_clients",
    '  auth_type -> auth.allowUnencryptedPasswords: PgBouncer takes and sends passwords in clear text without TLS, too',
  ]);
});

test.each(['pam', 'LDAP'])('A pgbouncer.ini with %s for authentication does not become less safe', (type) => {
  const { config, settings } = importedLines('[pgbouncer]', `auth_type = ${type}`);
  expect(config.auth.type).toBe('scram-sha-256');
  expect(outcomes(settings, 'difference')).toEqual(['auth_type']);
});

test('A pgbouncer.ini with any for authentication has it told that the console is not for all', () => {
  const { config, settings } = importedLines('[pgbouncer]', 'auth_type = any');
  expect(config.auth.type).toBe('any');
  expect(settings[0]).toMatchObject({ outcome: 'difference', why: expect.stringContaining('the console') });
});

test('A pgbouncer.ini takes and sends passwords in clear text without TLS, as PgBouncer does, and says so', () => {
  const { config, settings } = importedLines('[pgbouncer]', 'auth_type = plain');
  expect(config.auth).toMatchObject({ type: 'plain', allowUnencryptedPasswords: true });
  expect(importReport(settings)).toContain(
    '  auth_type -> auth.allowUnencryptedPasswords: PgBouncer takes and sends passwords in clear text without TLS, too',
  );
});

test.each([
  ['host pgbouncer all all reject', true],
  ['host shop,headgate all all reject', true],
  ['host all all all reject', false],
])('A pgbouncer.ini with the rule %s says whether the second name of the console matters', (rule, isTold) => {
  const folder = folderWith({
    'p.ini': '[pgbouncer]\nauth_hba_file = hba.conf\nauth_type = hba\n',
    'hba.conf': rule,
  });
  const report = importReport(imported('p.ini', folder).settings).join('\n');
  expect(/rules for pgbouncer hold for both names/.test(report)).toBe(isTold);
});

test('A pgbouncer.ini with a server_lifetime of 0 uses each server connection once', () => {
  const { config, settings } = importedLines('[pgbouncer]', 'server_lifetime = 0');
  expect(config.pooling).toMatchObject({ serverLifetime: 0, serverMaxUses: 1 });
  expect(outcomes(settings, 'difference')).toEqual(['server_lifetime']);
});

test('A pgbouncer.ini that says another server_lifetime further down does not keep what the first one meant', () => {
  const { config } = importedLines('[pgbouncer]', 'server_lifetime = 0', 'server_lifetime = 60');
  expect(config.pooling).toMatchObject({ serverLifetime: 60_000, serverMaxUses: 0 });
});

test('A pgbouncer.ini has a lifetime for one database that is not cut to one use by that of all', () => {
  const { config } = importedLines(
    '[databases]',
    'app = host=x server_lifetime=3600',
    'other = host=x',
    '[pgbouncer]',
    'server_lifetime = 0',
  );
  const of = (name: string) => poolSettingsFor(config, databaseFor(config, name) as DatabaseConfig, 'u');
  expect(of('app')).toMatchObject({ serverLifetime: 3_600_000, serverMaxUses: 0 });
  expect(of('other')).toMatchObject({ serverLifetime: 0, serverMaxUses: 1 });
});

test('A pgbouncer.ini without a lifetime of 0 is imported without a limit of uses', () => {
  const { tree } = importedLines('[databases]', 'app = server_lifetime=60', '[pgbouncer]');
  expect(tree.data['databases']).toEqual({ app: { host: ['/tmp'], serverLifetime: '1m' } });
});

test('A pgbouncer.ini has what holds for all where a database or a user says 0 and PgBouncer means that', () => {
  const { config, settings } = importedLines(
    '[databases]',
    'app = max_db_connections=0 max_db_client_connections=0 server_lifetime=0',
    '[users]',
    'u = max_user_connections=0 max_user_client_connections=0 query_timeout=0 idle_transaction_timeout=0 transaction_timeout=0 client_idle_timeout=0.0',
    '[pgbouncer]',
    'max_db_connections = 1',
    'max_db_client_connections = 2',
    'max_user_connections = 3',
    'max_user_client_connections = 4',
    'query_timeout = 5',
    'idle_transaction_timeout = 6',
    'transaction_timeout = 7',
    'client_idle_timeout = 8',
    'server_lifetime = 9',
  );
  expect(poolSettingsFor(config, databaseFor(config, 'app') as DatabaseConfig, 'u')).toMatchObject({
    maxDbConnections: 1,
    maxDbClientConnections: 2,
    maxUserConnections: 3,
    maxUserClientConnections: 4,
    queryTimeout: 5_000,
    idleTransactionTimeout: 6_000,
    transactionTimeout: 7_000,
    clientIdleTimeout: 8_000,
    serverLifetime: 9_000,
    serverMaxUses: 0,
  });
  expect(outcomes(settings, 'difference')).toEqual(['client_idle_timeout']);
});

test('A pgbouncer.ini keeps a 0 that PgBouncer takes at its word', () => {
  const { config } = importedLines(
    '[databases]',
    'app = query_wait_timeout=0 min_pool_size=0 reserve_pool_size=0',
    '[users]',
    'u = query_wait_timeout=0',
    '[pgbouncer]',
  );
  expect(config.databases.get('app')).toMatchObject({
    queryWaitTimeout: 0,
    minPoolSize: 0,
    reservePoolSize: 0,
  });
  expect(config.users.get('u')?.queryWaitTimeout).toBe(0);
});

test('A pgbouncer.ini with a time that is longer than can be has the longest, and says so', () => {
  const { config, settings } = importedLines(
    '[databases]',
    'app = host=x server_lifetime=2592000',
    '[pgbouncer]',
    'server_lifetime = 2592000',
    'server_login_retry = 2147483647',
    'pool_idle_timeout = 2073600',
  );
  const longest = 24 * 86_400_000;
  expect(config.pooling).toMatchObject({ serverLifetime: longest, serverLoginRetry: longest });
  expect(config.databases.get('app')?.serverLifetime).toBe(longest);
  expect(config.timeouts.poolIdleTimeout).toBe(longest);
  const told = settings.filter(({ outcome }) => outcome === 'difference');
  expect(told.map(({ name, why }) => `${name}: ${why}`)).toEqual([
    'server_lifetime: 24d is as long as it gets',
    'server_login_retry: 24d is as long as it gets; the wait begins short and grows up to this, in place of being this from the first failure on; without it 1s in place of 15s, for clients that wait meanwhile',
    'app.server_lifetime: 24d is as long as it gets',
  ]);
});

test.each(['require', 'prefer', 'allow', undefined])(
  'A pgbouncer.ini with sslmode %s for servers has the roots left out, which PgBouncer does not use then',
  (mode) => {
    const lines = ['server_tls_ca_file = /etc/pgbouncer/old-ca.crt'];
    if (mode !== undefined) lines.push(`server_tls_sslmode = ${mode}`);
    const { config, settings, tree } = importedLines('[pgbouncer]', ...lines);
    expect(config.serverTls).toMatchObject({ mode: mode ?? 'prefer', caFile: undefined });
    expect(JSON.stringify(tree.data)).not.toContain('old-ca');
    expect(outcomes(settings, 'left-out')).toEqual(['server_tls_ca_file']);
    expect(importReport(settings)).toContainEqual(
      expect.stringMatching(/^ {2}p\.ini:2 {2}server_tls_ca_file: .*verify-ca/),
    );
  },
);

test.each(['verify-ca', 'verify-full'])(
  'A pgbouncer.ini with sslmode %s for servers keeps their roots',
  (mode) => {
    const { config, settings } = importedLines(
      '[pgbouncer]',
      'server_tls_ca_file = /etc/pgbouncer/ca.crt',
      `server_tls_sslmode = ${mode}`,
    );
    expect(config.serverTls).toMatchObject({ mode, caFile: '/etc/pgbouncer/ca.crt' });
    expect(outcomes(settings, 'left-out')).toEqual([]);
    expect(outcomes(settings, 'difference')).toEqual([]);
  },
);

test('A pgbouncer.ini has the last word of several for the same', () => {
  const { config } = importedLines(
    '[databases]',
    'a = host=x',
    'a = host=y port=1',
    '[pgbouncer]',
    'listen_port=1',
    'listen_port=2',
  );
  expect(config.databases.get('a')).toMatchObject({ host: ['y'], port: 1 });
  expect(config.listen.port).toBe(2);
});

test('A pgbouncer.ini with unknown names is imported without them, with what was probably meant', () => {
  const { settings } = importedLines(
    '[pgbouncer]',
    'pool_mod = session',
    'xyz = 1',
    '[databases]',
    'a = hots=b',
    '[wrong]',
    'a = 1',
  );
  const report = importReport(settings.filter(({ outcome }) => outcome === 'left-out'));
  expect(report.slice(2)).toEqual([
    '  p.ini:2  pool_mod: it is not known; did you mean pool_mode?',
    '  p.ini:3  xyz: it is not known',
    '  p.ini:5  a.hots: it is not known; did you mean host?',
    "  p.ini:7  wrong.a: there is no section 'wrong'",
  ]);
});

test('A pgbouncer.ini with values that make no sense has all of them told, with their lines', () => {
  const lines = [
    '[pgbouncer]',
    'pool_mode = fast',
    'listen_port = many',
    'query_timeout = 5s',
    'log_stats = yes',
    '[databases]',
    'a = host=b port',
    "c = password='sesame",
  ];
  const problems = problemsOf(() => importedLines(...lines));
  expect(problems).toEqual([
    "p.ini:2  pooling.poolMode: (pool_mode) must be one of session, transaction, statement, not 'fast'",
    "p.ini:3  listen.port: (listen_port) must be a whole number, not 'many'",
    "p.ini:4  timeouts.queryTimeout: (query_timeout) must be a number of seconds, not '5s'",
    "p.ini:5  logging.stats: (log_stats) must be a whole number, not 'yes'",
    'p.ini:7  databases.a: must be key=value pairs, and is not at its character 8',
    'p.ini:8  databases.c: has a quote without its end, in password',
  ]);
});

test('A pgbouncer.ini with values out of range has them told where they are written', () => {
  expect(
    problemsOf(() => importedLines('[pgbouncer]', 'listen_port = 99999', '[databases]', 'a = pool_size=0')),
  ).toEqual([
    'p.ini:2  listen.port: must be a whole number from 0 to 65535, not 99999',
    'p.ini:4  databases.a.poolSize: must be a whole number from 1 to 1000000, not 0',
  ]);
});
