// The changes that a reload makes, and when.
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { adjustPolicy, type PoolPolicy, readPolicy } from '../../../src/core/pool-policy.js';
import { OptionReader } from '../../../src/kernel/option-reader.js';
import { diffConfig, needsOtherServers } from '../../../src/pooler/config/config-diff.js';
import { allOptions, entryOptions } from '../../../src/pooler/config/option-table.js';
import { policyFor } from '../../../src/pooler/config/pool-settings.js';
import { type DatabaseConfig, databaseFor } from '../../../src/pooler/config/pooler-config.js';
import { load, problemsOf } from './config-files.js';

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

const settingsOfTheEngine = [
  'pooling.poolSize',
  'pooling.minPoolSize',
  'pooling.serverLifetime',
  'pooling.serverLifetimeJitter',
  'pooling.serverMaxUses',
  'pooling.serverIdleTimeout',
  'pooling.serverConnectTimeout',
  'pooling.serverLoginRetry',
  'pooling.serverConnectLimit',
  'pooling.serverRoundRobin',
  'pooling.serverCheckDelay',
  'fairShares.capacity',
  'fairShares.regularIdleTimeout',
  'fairShares.regularMaxLifetime',
  'fairShares.reservedIdleTimeout',
  'fairShares.reservedMaxLifetime',
  'timeouts.queryWaitTimeout',
];

/** Values of all kinds: of each option, those that it accepts are tried. */
const values = ['7', '77', '5m', '0.3', 'true', 'false', 'select 7', 'session'];

/** The engine's policy for the pool of a user; undefined where the configuration is refused. */
function policyWith(said: string): PoolPolicy | undefined {
  const yaml = `databases: { app: {} }\nauth: { type: trust }\n${said}`;
  if (problemsOf(() => load(yaml)).length > 0) return undefined;
  const { config } = load(yaml);
  const options = policyFor(config, databaseFor(config, 'app') as DatabaseConfig, 'u');
  return readPolicy(new OptionReader(options), false);
}

type Difference = keyof PoolPolicy;

function differences(one: PoolPolicy, other: PoolPolicy): Difference[] {
  return (Object.keys(one) as Difference[]).filter((key) => !isDeepStrictEqual(one[key], other[key]));
}

test('A reload of each setting of the engine holds when the table of options says so', () => {
  const compared: string[] = [];
  for (const { section, key, path, option } of allOptions) {
    const policies = values.map((value) => policyWith(`${section}: { ${key}: ${value} }`));
    for (const next of policies) {
      const present = { ...(policyWith('') as PoolPolicy) };
      if (next === undefined || differences(present, next).length === 0) continue;
      adjustPolicy(present, next);
      // The pool takes its size over as its limit, and callers bring their own timeout.
      const left = differences(present, next).filter((name) => name !== 'max' && name !== 'acquireTimeout');
      expect([path, left, option.reload]).toEqual([path, left, left.length === 0 ? 'now' : 'new-servers']);
      if (!compared.includes(path)) compared.push(path);
    }
  }
  expect(compared).toEqual(settingsOfTheEngine);
});

test('Everything that needs a restart says why, and nothing else does', () => {
  const all = [
    ...allOptions.map(({ option }) => option),
    ...entryOptions('databases').map(([, option]) => option),
  ];
  for (const { name, reload, whyRestart } of all)
    expect([name, whyRestart !== undefined]).toEqual([name, reload === 'restart']);
});
