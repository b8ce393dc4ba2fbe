// Settings that each make sense, and together do not.
import { generateKeyPairSync } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/pooler/config/load-config.js';
import { enough, folderWith, load, problemsOf } from './config-files.js';

const certificates = join(import.meta.dirname, '../../support/dsql-certificates');
const database = 'databases: { app: {} }\n';

/** Messages of the problems, without their places. */
function wrongWith(yaml: string, files: Record<string, string> = {}): string[] {
  return problemsOf(() => load(yaml, {}, files)).map((problem) => problem.replace(/^\S+:\d+:\d+ {2}/, ''));
}

test.each<[string, string, string]>([
  [
    'where no client could connect',
    `${enough}listen: { addresses: [] }\nunixSocket: { dir: '' }`,
    'listen.addresses: is none and unixSocket.dir is none: no client could connect',
  ],
  [
    'without a database',
    'auth: { type: trust }',
    'databases: is missing: at least one is needed, such as app: { host: db.example }',
  ],
  [
    'without secrets of users',
    database,
    'auth.file: is missing: with scram-sha-256 users need secrets, from auth.file, auth.user or users.NAME.password',
  ],
  [
    'with statements to prepare and no room for them',
    `${enough}pooling: { prepareUnnamed: true, maxPreparedStatements: 0 }`,
    'pooling.prepareUnnamed: is true and maxPreparedStatements is 0: no server connection may keep a prepared statement',
  ],
  [
    'with statements that share connections, and a reset after each',
    `${enough}pooling: { multiplexDepth: 4, serverResetQueryAlways: true }`,
    'pooling.multiplexDepth: is 4 and serverResetQueryAlways is true: each client has a server connection to itself then; set multiplexDepth to 1',
  ],
  [
    'with statements that share connections, and a check after each',
    `${enough}pooling: { multiplexDepth: 2, sessionCheck: always }`,
    'pooling.multiplexDepth: is 2 and sessionCheck is always: each client has a server connection to itself then; set multiplexDepth to 1',
  ],
  [
    'with another number of ports than of hosts',
    'auth: { type: trust }\ndatabases: { app: { host: [db], port: [5433, 5434] } }',
    'databases.app.port: has an invalid number of ports: 2 for 1 host',
  ],
  ['with hba and no rules', `${database}auth: { type: hba }`, 'auth.hbaFile: is missing: auth.type is hba'],
  [
    'with certificates that are not asked for',
    `${database}auth: { type: cert }`,
    'auth.type: is cert, which needs clientTls.mode verify-ca or verify-full, not disable',
  ],
  [
    'with anyone as a user, and none for the server',
    `${database}auth: { type: any }`,
    'databases.app: needs a user: auth.type is any, and the name of the client is not used',
  ],
  [
    'with a database for secrets that there is not',
    `${database}auth: { type: trust, dbname: other }`,
    'auth.dbname: is other, which is none of the databases here',
  ],
  [
    'with a database for the secrets of one that there is not',
    'auth: { type: trust }\ndatabases: { app: { authDbname: other } }',
    'databases.app.authDbname: is other, which is none of the databases here',
  ],
  [
    'with the console as the database for secrets',
    "auth: { type: trust, dbname: headgate }\ndatabases: { '*': {} }",
    'auth.dbname: is headgate, which is the console',
  ],
  [
    'with the console as the database for the secrets of one',
    "auth: { type: trust }\ndatabases: { app: { authDbname: pgbouncer }, '*': {} }",
    'databases.app.authDbname: is pgbouncer, which is the console',
  ],
  [
    'with all others as the database for secrets',
    "auth: { type: trust, dbname: '*' }\ndatabases: { '*': {} }",
    'auth.dbname: must be a database with a name',
  ],
  [
    'with tokens that others could read',
    'auth: { type: trust }\ndatabases: { app: { iam: dsql, region: us-east-1 } }',
    'databases.app.iam: needs TLS with the server: tlsMode require or more, not prefer',
  ],
  [
    'with tokens and a password',
    'auth: { type: trust }\ndatabases: { app: { iam: rds, region: us-east-1, tlsMode: verify-full, password: x } }',
    'databases.app.password: can not be given together with iam, which stands in for it',
  ],
  [
    'with tokens for a region that nobody names',
    'auth: { type: trust }\ndatabases: { app: { iam: rds, host: db.example, tlsMode: require } }',
    'databases.app.region: is missing: the host db.example does not name a region, and AWS_REGION is not set',
  ],
  [
    'with direct TLS that is not required',
    'auth: { type: trust }\ndatabases: { app: { tlsNegotiation: direct } }',
    'databases.app: starts TLS directly, which needs mode require or more, not prefer',
  ],
  [
    'with a console for a database',
    'auth: { type: trust }\ndatabases: { headgate: {} }',
    "databases.headgate: can't be configured: headgate is the name of the console",
  ],
  [
    'without a host',
    `auth: { type: trust }\ndatabases: { app: { host: [] } }`,
    'databases.app.host: must not be empty',
  ],
])('A configuration is refused %s', (_, yaml, problem) => {
  expect(wrongWith(yaml)).toEqual([problem]);
});

test('A configuration is refused with TLS for clients and no key or certificate', () => {
  expect(wrongWith(`${enough}clientTls: { mode: verify-full }`)).toEqual([
    'clientTls.keyFile: is missing: clientTls.mode is verify-full',
    'clientTls.certFile: is missing: clientTls.mode is verify-full',
    'clientTls.caFile: is missing: with verify-full certificates of clients are verified',
  ]);
});

test('A configuration is refused with files that are not there', () => {
  const yaml = `${database}auth: { type: hba, file: a, hbaFile: b, identFile: c }\nclientTls: { mode: require, keyFile: k, certFile: c }`;
  const wrong = wrongWith(yaml).map((problem) => problem.replace(/, access.*/, ''));
  expect(wrong.sort()).toEqual(
    ['auth.file', 'auth.hbaFile', 'auth.identFile', 'clientTls.certFile', 'clientTls.keyFile'].map(
      (path) => `${path}: can't be read: ENOENT: no such file or directory`,
    ),
  );
});

test('A configuration is refused with a certificate that is none', () => {
  const yaml = `${enough}clientTls: { mode: require, keyFile: k, certFile: c }`;
  expect(wrongWith(yaml, { k: 'x', c: 'y' })).toEqual([
    expect.stringMatching(/^clientTls.certFile: can't be used together with its key: /),
  ]);
});

test('A configuration is refused with a key that does not belong to its certificate', () => {
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const yaml = `${enough}clientTls: { mode: require, keyFile: k, certFile: c }`;
  const files = { k: privateKey, c: readFileSync(join(certificates, 'server.pem'), 'utf8') };
  expect(wrongWith(yaml, files)).toEqual([
    expect.stringMatching(/^clientTls.certFile: can't be used together with its key: .*mismatch/),
  ]);
});

test('A configuration is refused for a setting once, however many others depend on it', () => {
  expect(wrongWith(`${database}auth: { file: [1] }`)).toEqual(['auth.file: must be a text, not a list']);
});

test('A configuration is good with a key and its certificate', () => {
  const folder = folderWith({
    'h.yaml': `${enough}clientTls: { mode: verify-ca, keyFile: tls/server.key, certFile: tls/server.pem, caFile: tls/ca.pem }`,
  });
  mkdirSync(join(folder, 'tls'));
  for (const name of ['server.key', 'server.pem', 'ca.pem'])
    copyFileSync(join(certificates, name), join(folder, 'tls', name));
  const { config } = loadConfig({ configFile: 'h.yaml', folder });
  expect(readFileSync(config.clientTls.keyFile as string, 'utf8')).toContain('PRIVATE KEY');
});

test.each(['users: { u: { password: x } }', 'auth: { user: u }'])(
  'A configuration is good with the secrets of %s',
  (yaml) => {
    expect(wrongWith(`${database}${yaml}`)).toEqual([]);
  },
);

test('A configuration is good with a database for secrets that the entry for all others serves', () => {
  const databases = "databases: { app: { authDbname: one }, '*': {} }";
  expect(wrongWith(`${databases}\nauth: { type: trust, dbname: other }`)).toEqual([]);
});

test('A configuration is good with rules that are not there, as long as they are not used', () => {
  expect(load(`${database}auth: { type: md5, user: u, hbaFile: none, identFile: none }`).warnings).toEqual([
    'auth.hbaFile is not used: auth.type is md5, not hba',
    'auth.identFile is not used: auth.type is md5, not hba',
  ]);
});

test.each([
  [
    'host all all all password',
    'false',
    ': without TLS clients are refused, unless auth.allowUnencryptedPasswords is true',
  ],
  ['hostnossl all all all password', 'true', ' without TLS: passwords can be read on the way'],
  ['hostssl all all all password', 'false', undefined],
  ['local all all password', 'false', undefined],
  ['host all all all md5', 'false', undefined],
  ['nonsense', 'false', undefined],
])(
  'A configuration is good with a warning where rules ask for passwords that can be read: %s',
  (rule, isAllowed, warning) => {
    const yaml = `${database}auth: { type: hba, hbaFile: hba.conf, allowUnencryptedPasswords: ${isAllowed} }`;
    expect(load(yaml, {}, { 'hba.conf': rule }).warnings).toEqual(
      warning === undefined ? [] : [`auth.hbaFile has rules with password${warning}`],
    );
  },
);

test.each([
  [`${enough}listen: { addresses: '*' }`, 'auth.type is trust: who reaches * needs no password'],
  [
    `${database}auth: { type: plain, user: u, allowUnencryptedPasswords: true }`,
    'auth.type is plain without TLS: passwords can be read on the way',
  ],
  [
    `${database}auth: { type: plain, user: u }`,
    'auth.type is plain: without TLS clients are refused, unless auth.allowUnencryptedPasswords is true',
  ],
  [
    'auth: { type: trust }\ndatabases: { app: { loadBalanceHosts: disable } }',
    'databases.app.loadBalanceHosts has no effect: there is one host',
  ],
  [
    'auth: { type: trust }\nadmin: { compatibility: pgbouncer }',
    'databases is empty: clients can only connect to the console',
  ],
])('A configuration is good with a warning for what is unlikely to be meant: %s', (yaml, warning) => {
  expect(load(yaml).warnings).toEqual([warning]);
});
