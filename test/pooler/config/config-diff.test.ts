// What a reload changes, and when.
import { expect, test } from 'vitest';
import { diffConfig, needsOtherServers } from '../../../src/pooler/config/config-diff.js';
import { allOptions, entryOptions } from '../../../src/pooler/config/option-table.js';
import { policyFor } from '../../../src/pooler/config/pool-settings.js';
import { type DatabaseConfig, databaseFor } from '../../../src/pooler/config/pooler-config.js';
import { load } from './config-files.js';

const before = `
databases: { app: { host: a, poolSize: 5, password: one }, old: {}, same: {} }
users: { u: { poolSize: 1 }, gone: {} }
auth: { type: trust }
`;
const after = `
databases: { app: { host: b, poolSize: 6, password: two }, new: {}, same: {} }
users: { u: { poolSize: 2 } }
auth: { type: trust }
pooling: { poolSize: 30, poolMode: session, serverLifetime: 30m }
listen: { port: 7000 }
admin: { pidFile: /tmp/x.pid }
serverTls: { mode: require }
`;

function databaseOf(yaml: string, name: string): DatabaseConfig {
  return databaseFor(load(yaml).config, name) as DatabaseConfig;
}

function diff(one = before, other = after) {
  return diffConfig(load(one).config, load(other).config);
}

test('A reload of the same configuration changes nothing, secrets included', () => {
  const { changes, reconnectAll } = diff(before, before);
  expect({ changes, reconnectAll }).toEqual({ changes: [], reconnectAll: false });
});

test('A reload tells each change, and when it holds', () => {
  const told = diff().changes.map(({ path, from, to, effect, why }) => [path, from, to, effect, why]);
  expect(told).toEqual([
    ['listen.port', '6432', '7000', 'restart', 'sockets are opened at the start'],
    ['serverTls.mode', 'prefer', 'require', 'other-servers', undefined],
    ['pooling.poolMode', 'transaction', 'session', 'new-clients', undefined],
    ['pooling.poolSize', '20', '30', 'now', undefined],
    ['pooling.serverLifetime', '1h', '30m', 'new-servers', undefined],
    ['admin.pidFile', 'none', '/tmp/x.pid', 'restart', 'it is written at the start'],
    ['databases.new', 'none', 'there', 'now', undefined],
    ['databases.old', 'there', 'none', 'now', undefined],
    ['databases.app.host', 'a', 'b', 'other-servers', undefined],
    ['databases.app.password', '(hidden)', '(hidden)', 'other-servers', undefined],
    ['databases.app.poolSize', '5', '6', 'now', undefined],
    ['users.gone', 'there', 'none', 'now', undefined],
    ['users.u.poolSize', '1', '2', 'now', undefined],
  ]);
});

test('A reload replaces all server connections for what holds for all servers', () => {
  expect(diff().reconnectAll).toBe(true);
});

test('A reload leaves what needs a restart as it is', () => {
  const { config } = diff();
  expect([config.listen.port, config.admin.pidFile]).toEqual([6432, undefined]);
  expect(config.pooling.poolSize).toBe(30);
  expect(config.databases.get('app')?.host).toEqual(['b']);
  expect(Object.isFrozen(config) && Object.isFrozen(config.listen)).toBe(true);
});

test.each(['poolSize: 9', 'poolSize: 5, serverLifetime: 5m', 'poolSize: 5, serverMaxUses: 7'])(
  'A reload does not lead elsewhere with %s',
  (said) => {
    const other = before.replace('poolSize: 5', said);
    expect(diff(before, other).reconnectAll).toBe(false);
    expect(needsOtherServers(databaseOf(before, 'app'), databaseOf(other, 'app'))).toBe(false);
  },
);

test('A reload replaces them for whatever makes a connection another one, whichever entry says it', () => {
  const of = (entries: string) => databaseOf(`databases: { ${entries} }\nauth: { type: trust }`, 'app');
  const own = of('app: { host: a, password: one, dbname: app }');
  expect(needsOtherServers(own, of("'*': { host: a, password: one, poolSize: 3 }"))).toBe(false);
  const others = ['host: b', 'port: 1', 'dbname: b', 'password: two', 'user: u', 'tlsMode: require'];
  const usual = ['host: a', 'password: one'];
  for (const other of others) {
    const said = usual.filter((text) => text.split(':')[0] !== other.split(':')[0]);
    const entry = of(`'*': { ${[...said, other].join(', ')} }`);
    expect([other, needsOtherServers(own, entry)]).toEqual([other, true]);
  }
});

/** The engine takes these numbers over while it runs; for any other, another engine takes over, and open connections close. */
const takenOver = [
  'idleTimeout',
  'maxUses',
  'checkAfterIdle',
  'idleOrder',
  'dialLimit',
  'backoffBase',
  'backoffCap',
];

test.each([
  ['pooling', 'serverIdleTimeout', '1m'],
  ['pooling', 'serverMaxUses', '7'],
  ['pooling', 'serverLifetime', '5m'],
  ['pooling', 'serverLifetimeJitter', '0.3'],
  ['pooling', 'serverConnectTimeout', '3s'],
  ['pooling', 'serverConnectLimit', '2'],
  ['pooling', 'serverRoundRobin', 'true'],
  ['fairShares', 'regularIdleTimeout', '1m'],
  ['fairShares', 'reservedIdleTimeout', '1m'],
  ['fairShares', 'regularMaxLifetime', '5m'],
  ['fairShares', 'reservedMaxLifetime', '5m'],
] as const)('A reload of %s.%s holds when the table of options says so', (section, key, value) => {
  const usual = load('databases: { app: {} }\nauth: { type: trust }').config;
  const other = load(
    `databases: { app: {} }\nauth: { type: trust }\n${section}: { ${key}: ${value} }`,
  ).config;
  const [was, is] = [usual, other].map((config) =>
    Object.entries(policyFor(config, databaseFor(config, 'app') as DatabaseConfig, 'u')),
  );
  const before = new Map<string, unknown>(was);
  const changed = (is ?? []).filter(([name, now]) => now !== before.get(name)).map(([name]) => name);
  const effect = changed.every((name) => takenOver.includes(name)) ? 'now' : 'new-servers';
  expect(changed).not.toEqual([]);
  expect(allOptions.find((option) => option.path === `${section}.${key}`)?.option.reload).toBe(effect);
});

test('Everything that needs a restart says why, and nothing else does', () => {
  const all = [
    ...allOptions.map(({ option }) => option),
    ...entryOptions('databases').map(([, option]) => option),
  ];
  for (const { name, reload, whyRestart } of all)
    expect([name, whyRestart !== undefined]).toEqual([name, reload === 'restart']);
});
