// Configurations from their files, flags and variables: what a good one says, and everything that is wrong with a bad one.
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/pooler/config/load-config.js';
import { databaseFor } from '../../../src/pooler/config/pooler-config.js';
import { enough, flags, folderWith, load, problemsOf } from './config-files.js';

const anyText = { configFile: undefined };

test('A configuration file needs no more than a database and a way to know users', () => {
  const { config, warnings } = load(enough);
  expect(warnings).toEqual([]);
  expect(config.listen).toEqual({
    addresses: ['127.0.0.1'],
    port: 6432,
    backlog: 4_096,
    reusePort: false,
    workers: 1,
    peerId: 0,
    peers: new Map(),
    priority: 0,
  });
  expect(config.pooling).toMatchObject({
    poolMode: 'transaction',
    poolSize: 20,
    serverLifetime: 3_600_000,
  });
  expect(config.databases.get('app')).toMatchObject({ name: 'app', host: ['db.example'], port: 5432 });
  expect(config.users.size).toBe(0);
});

test('A configuration file is complete, in milliseconds and bytes', () => {
  const { config } = load(`${enough}
timeouts: { queryWaitTimeout: 1m30s, queryTimeout: off, clientIdleTimeout: 0 }
limits: { maxPacketSize: 64MB }
unixSocket: { mode: '0770' }
clientTls: { protocols: [tlsv1.3] }
observability: { metricsListen: '[::1]:9127' }
`);
  expect(config.timeouts).toMatchObject({
    queryWaitTimeout: 90_000,
    queryTimeout: 0,
    clientIdleTimeout: 0,
  });
  expect(config.limits.maxPacketSize).toBe(67_108_864);
  expect(config.unixSocket.mode).toBe(0o770);
  expect(config.clientTls.protocols).toEqual({ min: 'TLSv1.3', max: 'TLSv1.3' });
  expect(config.observability.metricsListen).toEqual({ host: '::1', port: 9127 });
});

test('A configuration file may be JSON', () => {
  const { config } = load(
    '{ "databases": { "app": {} }, "auth": { "type": "trust" }, "listen": { "port": 1 } }',
  );
  expect([config.listen.port, config.databases.get('app')?.host]).toEqual([1, ['localhost']]);
});

test('A configuration file of PgBouncer with names that PgBouncer does not know is refused, as PgBouncer refuses it', () => {
  const ini = ['[databases]', 'app = host=db nonsense=1', '[pgbouncer]', 'auth_type = trust', 'pool_mod = x'];
  const folder = folderWith({ 'p.ini': [...ini, '[wrong]', 'a = 1'].join('\n') });
  expect(problemsOf(() => loadConfig({ pgbouncerIni: 'p.ini', folder }))).toEqual([
    'p.ini:2  app.nonsense: it is not known',
    'p.ini:5  pool_mod: it is not known; did you mean pool_mode?',
    "p.ini:7  wrong.a: there is no section 'wrong'",
  ]);
});

test('A configuration file can not be changed once it is read', () => {
  const { config } = load(enough);
  expect(() => Object.assign(config, { listen: {} })).toThrow(TypeError);
  expect(() => Object.assign(config.listen, { port: 1 })).toThrow(TypeError);
  expect(() => (config.listen.addresses as string[]).push('*')).toThrow(TypeError);
  expect(() => (config.databases as Map<string, unknown>).clear()).toThrow(TypeError);
  expect(() => Object.assign(config.databases.get('app') as object, { port: 1 })).toThrow(TypeError);
});

test('A configuration file has every problem told at once, with its place and the nearest known key', () => {
  const yaml = `listn: { port: 1 }
pool_mode: session
pooling:
  poolSiz: 3
  poolMode: transation
  serverLifetime: 30
  maxClientConn: 3
unixSocket: { mode: 0777 }
databases:
  app: { host: db, pool_size: 30, password: 12 }
  my.db: { port: 0, database: x }
  pgbouncer: {}
  text: host=db foo=1
users: 3
auth: [1]
`;
  expect(problemsOf(() => load(yaml))).toEqual([
    'headgate.yaml:1:1  listn: is not known here; did you mean listen?',
    'headgate.yaml:2:1  pool_mode: is not known here; did you mean pooling.poolMode?',
    'headgate.yaml:4:3  pooling.poolSiz: is not known here; did you mean poolSize?',
    "headgate.yaml:5:3  pooling.poolMode: must be one of session, transaction, statement, not 'transation'; did you mean transaction?",
    'headgate.yaml:6:3  pooling.serverLifetime: must be a duration with its unit, such as 500ms, 45s or 11m, not 30',
    'headgate.yaml:7:3  pooling.maxClientConn: is not known here; did you mean limits.maxClientConn?',
    "headgate.yaml:8:15  unixSocket.mode: must be a text such as '0770': a number may be read as decimal",
    'headgate.yaml:10:20  databases.app.pool_size: is not known here; did you mean poolSize?',
    'headgate.yaml:10:35  databases.app.password: must be a text in quotes, { file: PATH } or { env: NAME }',
    'headgate.yaml:11:12  databases.my.db.port: must be a whole number from 1 to 65535, not 0',
    'headgate.yaml:11:21  databases.my.db.database: is not known here; did you mean dbname?',
    "headgate.yaml:12:3  databases.pgbouncer: can't be configured: pgbouncer is the name of the console",
    expect.stringMatching(
      /^headgate.yaml:13:3 {2}databases.text: has a key that is not known; known are host, /,
    ),
    'headgate.yaml:14:1  users: must be a mapping of names to their settings, not 3',
    'headgate.yaml:15:1  auth: must be a mapping of settings to their values, not a list',
  ]);
});

test.each([
  ['a text', 'hello', /^headgate.yaml:1:1 {2}must be a mapping of sections/],
  ['a mistake in YAML', 'a: b\n  c: "', /^headgate.yaml:\d:\d+ {2}/],
  ['a key twice', 'auth: {}\nauth: {}', /^headgate.yaml:2:1 {2}Map keys must be unique/],
  ['merging', `${enough}pooling: { '<<': { poolSize: 1 } }`, /pooling.<<: is not supported/],
  ['endless nesting', `a: ${'['.repeat(100)}${']'.repeat(100)}`, /is nested too deeply/],
])('A configuration file is refused for %s', (_, yaml, message) => {
  expect(problemsOf(() => load(yaml))[0]).toMatch(message);
});

test('A configuration file is not expanded without end', () => {
  const bomb = [
    'a: &a [x, x, x, x, x, x, x, x, x]',
    ...'bcdefgh'
      .split('')
      .map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[i]}`).join(', ')}]`),
  ];
  expect(problemsOf(() => load(bomb.join('\n'))).join()).toMatch(/too large|Excessive alias/);
});

test('A configuration file that is not there, or too long, is told by its name', () => {
  expect(problemsOf(() => loadConfig({ configFile: 'none.yaml', folder: '/nowhere' }))[0]).toMatch(
    /^none.yaml {2}can't be read: ENOENT/,
  );
  expect(problemsOf(() => load(`#${'x'.repeat(1_100_000)}`))[0]).toMatch(
    /more than the 1048576 that are read/,
  );
});

test('A configuration file takes an empty key for one that is not there, and `__proto__` for a key as any other', () => {
  expect(load(`${enough}pooling:\nlimits: { maxClientConn: }`).config.limits.maxClientConn).toBe(1_000);
  expect(problemsOf(() => load(`${enough}__proto__: { listen: 1 }`))[0]).toMatch(
    /__proto__: is not known here/,
  );
});

test('A configuration file names files from its own folder', () => {
  const files = { 'conf/users.txt': '"a" "b"' };
  const folder = folderWith({ ...files, 'conf/h.yaml': 'auth: { file: users.txt }\ndatabases: { a: {} }' });
  expect(loadConfig({ configFile: 'conf/h.yaml', folder }).config.auth.file).toBe(
    join(folder, 'conf/users.txt'),
  );
});

describe('A setting', () => {
  const yaml = `${enough}pooling: { poolSize: 3, poolMode: session, minPoolSize: 1 }`;

  test('A setting is taken from its flag, else its variable, else the file, else the default', () => {
    const { config, places } = load(yaml, {
      flags: flags({ default_pool_size: '5' }),
      environment: { HEADGATE_DEFAULT_POOL_SIZE: '4', HEADGATE_POOL_MODE: 'statement' },
    });
    expect(config.pooling).toMatchObject({
      poolSize: 5,
      poolMode: 'statement',
      minPoolSize: 1,
      reservePoolSize: 0,
    });
    expect(places.get('pooling.poolSize')).toEqual({ source: '--default-pool-size' });
    expect(places.get('pooling.poolMode')).toEqual({ source: 'HEADGATE_POOL_MODE' });
    expect(places.get('pooling.minPoolSize')).toEqual({ source: 'headgate.yaml', line: 3, column: 44 });
    expect(places.has('pooling.reservePoolSize')).toBe(false);
  });

  test('with a stronger source is not held up by a mistake in a weaker one', () => {
    const { config } = load(`${enough}listen: { port: x }`, { flags: flags({ listen_port: '1' }) });
    expect(config.listen.port).toBe(1);
  });

  test('a setting that makes no sense is told by the flag or the variable that it came from', () => {
    const request = { flags: flags({ listen_port: '70000' }), environment: { HEADGATE_QUERY_TIMEOUT: '30' } };
    expect(problemsOf(() => load(enough, request))).toEqual([
      '--listen-port  listen.port: must be a whole number from 0 to 65535, not 70000',
      "HEADGATE_QUERY_TIMEOUT  timeouts.queryTimeout: must be a duration with its unit, such as 500ms, 45s or 11m, not '30'",
    ]);
  });

  test('A setting can be switched off on a command line with the word none', () => {
    const given = flags({
      unix_socket_dir: 'none',
      track_extra_parameters: 'none',
      server_check_query: 'none',
    });
    const { config } = load(enough, { flags: given });
    expect(config.unixSocket.dir).toBeUndefined();
    expect(config.pooling).toMatchObject({ trackExtraParameters: [], serverCheckQuery: '' });
  });

  test('A setting is as before where its variable is empty', () => {
    expect(load(yaml, { environment: { HEADGATE_POOL_MODE: '' } }).config.pooling.poolMode).toBe('session');
  });

  test('A setting has a variable whose name is wrong told, and not what it says', () => {
    const { warnings } = load(enough, {
      environment: { HEADGATE_POOL_MOD: 'hush', HEADGATE_XYZ: 'x', OTHER: 'x' },
    });
    expect(warnings).toEqual([
      'HEADGATE_POOL_MOD is not known and not used; did you mean HEADGATE_POOL_MODE?',
      'HEADGATE_XYZ is not known and not used',
    ]);
  });
});

test('Databases and users can be connection strings and URLs', () => {
  const { config } = load(`databases:
  pairs: host=a,b port=6000 dbname=x user=u password='it''s' pool_size=5 query_wait_timeout=30s
  url: postgresql://me:p%40ss@[::1]:5433/db%20x?sslmode=require&application_name=app
  empty:
users: { u: pool_mode=session }
auth: { type: trust }`);
  expect(config.databases.get('pairs')).toMatchObject({
    host: ['a', 'b'],
    port: 6000,
    dbname: 'x',
    user: 'u',
    poolSize: 5,
    queryWaitTimeout: 30_000,
  });
  expect(config.databases.get('pairs')?.password?.reveal()).toBe("it's");
  expect(config.databases.get('url')).toMatchObject({
    host: ['::1'],
    port: 5433,
    dbname: 'db x',
    user: 'me',
    tlsMode: 'require',
    applicationName: 'app',
  });
  expect(config.databases.get('url')?.password?.reveal()).toBe('p@ss');
  expect(config.databases.get('empty')).toMatchObject({ host: ['localhost'], poolSize: undefined });
  expect(config.users.get('u')).toMatchObject({ poolMode: 'session', poolSize: undefined });
});

test('Databases and users of a flag replace those of a variable, and these those of the file, by name', () => {
  const { config, places } = load('databases: { a: {}, b: {}, c: {} }\nauth: { type: trust }', {
    environment: { HEADGATE_DATABASES: 'b = port=2\n\nc = port=2' },
    flags: flags({ databases: ['c = port=3', '"d e" = port=3'], users: 'u = pool_size=1' }),
  });
  const ports = [...config.databases.values()].map(({ name, port }) => [name, port]);
  expect(ports).toEqual([
    ['a', 5432],
    ['b', 2],
    ['c', 3],
    ['d e', 3],
  ]);
  expect(places.get('databases.b')).toEqual({ source: 'HEADGATE_DATABASES' });
  expect(config.users.get('u')?.poolSize).toBe(1);
});

test('Databases and users need no file at all', () => {
  const environment = {
    HEADGATE_DATABASES: '{ app: { host: db }, "*": host=other }',
    HEADGATE_AUTH_TYPE: 'trust',
  };
  const { config } = loadConfig({ ...anyText, environment });
  expect([...config.databases.keys()]).toEqual(['app', '*']);
});

test.each([
  ['app', "--database  must be a name, = and settings, such as 'app = host=db.example port=5432'"],
  ['app = host', '--database  databases.app: must be key=value pairs, and is not at its character 1'],
  ["app = password='sesame", '--database  databases.app: has a quote without its end, in password'],
  ['app = password=', '--database  databases.app: has no value for password'],
  [
    'app = postgres://a:sesame@b:x',
    '--database  databases.app: is not a URL such as postgres://user@host:5432/dbname',
  ],
  [
    'app = postgres://a:%zz@b',
    '--database  databases.app: has a % that is not followed by two hexadecimal digits',
  ],
  [
    'app = password=open sesame=x',
    expect.stringMatching(/databases.app: has a key that is not known; known are/),
  ],
  ['app = constructor=1', expect.stringMatching(/databases.app: has a key that is not known/)],
  ['app = port=1 prt=2', '--database  databases.app: has prt, which is not known; did you mean port?'],
])('Databases and users written as %s are refused without repeating them', (text, message) => {
  const all = problemsOf(() => load(enough, { flags: flags({ databases: text }) }));
  expect(all).toEqual([message]);
  expect(all.join()).not.toContain('sesame');
});

test('Databases and users that clients ask for are found by name, and all others by *', () => {
  const { config } = load(
    'databases: { app: { dbname: main }, "*": { host: other } }\nauth: { type: trust }',
  );
  expect(databaseFor(config, 'app')).toMatchObject({ name: 'app', dbname: 'main', host: ['localhost'] });
  expect(databaseFor(config, 'x')).toMatchObject({ name: 'x', dbname: 'x', host: ['other'] });
  expect(databaseFor(load(enough).config, 'x')).toBeUndefined();
});

describe('A secret', () => {
  const yaml = `databases:
  plain: { user: u, password: sesame }
  file: { user: u, password: { file: pw } }
  env: { user: u, password: { env: DB_PASSWORD } }
  text: user=u password_file=pw
  flag: user=u password_env=DB_PASSWORD
auth: { type: trust }`;
  const given = { environment: { DB_PASSWORD: 'from the environment' } };

  test('A secret can be in the file, in another file, or in a variable', () => {
    const { config } = load(yaml, given, { pw: 'from a file\n' });
    const passwords = [...config.databases.values()].map(({ password }) => password?.reveal());
    expect(passwords).toEqual([
      'sesame',
      'from a file',
      'from the environment',
      'from a file',
      'from the environment',
    ]);
  });

  test('A secret is shown by nothing that prints a configuration', () => {
    const { config } = load(yaml, given, { pw: 'from a file' });
    const database = config.databases.get('plain');
    const printed = [
      inspect(config, { depth: 9 }),
      JSON.stringify([...config.databases]),
      `${database?.password}`,
    ];
    for (const text of printed) {
      expect(text).not.toMatch(/sesame|from/);
      expect(text).toContain('(hidden)');
    }
  });

  test('a secret that is not where it should be is a problem', () => {
    expect(problemsOf(() => load(yaml, {}, { pw: '' }))).toEqual([
      expect.stringMatching(/databases.file.password: can't be read from .*pw: it is empty$/),
      expect.stringMatching(
        /databases.env.password: is to be in the variable DB_PASSWORD, which is not set$/,
      ),
      expect.stringMatching(/databases.text.password: can't be read/),
      expect.stringMatching(/databases.flag.password: is to be in the variable/),
    ]);
  });

  test.each(['[a]', '{ file: 1 }', '{ fil: x }', '{ file: a, env: b }', '{}', '12'])(
    'A secret can not be %s',
    (value) => {
      expect(problemsOf(() => load(`${enough}users: { u: { password: ${value} } }`))[0]).toMatch(
        /users.u.password: must be a text in quotes, \{ file: PATH \} or \{ env: NAME \}$/,
      );
    },
  );
});
