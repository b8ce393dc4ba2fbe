// The settings on the console: in PgBouncer's words.
import { expect, test } from 'vitest';
import { consoleSettings, withConsoleSetting } from '../../../src/pooler/config/console-settings.js';
import { allOptions } from '../../../src/pooler/config/option-table.js';
import { poolSettingsFor } from '../../../src/pooler/config/pool-settings.js';
import { type DatabaseConfig, databaseFor } from '../../../src/pooler/config/pooler-config.js';
import { configWith, load, problemsOf } from './config-files.js';

test("SHOW CONFIG has every setting under PgBouncer's name, in its units", () => {
  const rows = consoleSettings(
    configWith('timeouts: { queryWaitTimeout: 500ms }\npooling: { serverRoundRobin: true }'),
  );
  const row = (key: string) => rows.find((setting) => setting.key === key);
  expect(rows).toHaveLength(allOptions.length);
  expect(rows.map(({ key }) => key)).toEqual(rows.map(({ key }) => key).sort());
  expect(row('query_wait_timeout')).toEqual({
    key: 'query_wait_timeout',
    value: '0.5',
    default: '120',
    changeable: true,
  });
  expect(row('server_round_robin')).toMatchObject({ value: '1', default: '0' });
  expect(row('listen_port')).toMatchObject({ value: '6432', changeable: false });
  expect(row('unix_socket_mode')).toMatchObject({ value: '0777' });
});

test.each([
  ['query_timeout', '1.5', 'timeouts', 'queryTimeout', 1_500],
  ['default_pool_size', '7', 'pooling', 'poolSize', 7],
  ['server_round_robin', '1', 'pooling', 'serverRoundRobin', true],
  ['verbose', '2', 'logging', 'level', 'debug'],
  ['log_level', 'warn', 'logging', 'level', 'warn'],
  ['server_tls_ciphers', 'default', 'serverTls', 'ciphers', undefined],
  ['client_tls_ciphers', 'HIGH:!aNULL', 'clientTls', 'ciphers', 'HIGH:!aNULL'],
  ['server_tls13_ciphers', 'TLS_AES_128_GCM_SHA256', 'serverTls', 'tls13Ciphers', 'TLS_AES_128_GCM_SHA256'],
  ['admin_users', 'a, b', 'admin', 'adminUsers', ['a', 'b']],
] as const)('SET %s = %s changes that, and nothing else', (name, value, section, key, expected) => {
  const config = configWith('serverTls: { ciphers: HIGH }');
  const changed = withConsoleSetting(config, name, value);
  expect((changed[section] as Record<string, unknown>)[key]).toEqual(expected);
  expect({ ...changed, [section]: config[section] }).toEqual(config);
  expect(Object.isFrozen(changed) && Object.isFrozen(changed[section])).toBe(true);
});

test('SET server_lifetime = 0 uses each server connection once, as with PgBouncer, and another value undoes that', () => {
  const once = withConsoleSetting(configWith(''), 'server_lifetime', '0');
  expect(once.pooling).toMatchObject({ serverLifetime: 0, serverMaxUses: 1 });
  expect(Object.isFrozen(once.pooling)).toBe(true);
  const again = withConsoleSetting(once, 'server_lifetime', '60');
  expect(again.pooling).toMatchObject({ serverLifetime: 60_000, serverMaxUses: 0 });
});

test('SET server_lifetime leaves server_max_uses as it is where the one has nothing to do with the other', () => {
  const config = configWith('pooling: { serverMaxUses: 500 }');
  expect(withConsoleSetting(config, 'server_lifetime', '60').pooling.serverMaxUses).toBe(500);
});

test('SET server_lifetime = 0 is not for a database with a lifetime of its own', () => {
  const { config } = load(
    'databases: { own: { serverLifetime: 1h }, counted: { serverLifetime: 1h, serverMaxUses: 9 }, other: {} }\nauth: { type: trust }',
  );
  const once = withConsoleSetting(config, 'server_lifetime', '0');
  const usesOf = (name: string) =>
    poolSettingsFor(once, databaseFor(once, name) as DatabaseConfig, 'u').serverMaxUses;
  expect(['own', 'counted', 'other'].map(usesOf)).toEqual([0, 9, 1]);
  expect(() => (once.databases as Map<string, unknown>).clear()).toThrow(TypeError);
});

test.each([
  ['pool_mod', 'x', "'pool_mod' is not a setting; did you mean pool_mode?"],
  ['pool_mode', 'x', "pool_mode: must be one of session, transaction, statement, not 'x'"],
  ['client_tls_ciphers', 'nonsense', "client_tls_ciphers: OpenSSL knows no cipher of 'nonsense'"],
  ['server_tls_ciphers', 'a:b', "server_tls_ciphers: OpenSSL knows no cipher of 'a:b'"],
  [
    'client_tls13_ciphers',
    'TLS_AES_256_GCM_SHA384:TLS_NONSENSE',
    "client_tls13_ciphers: 'TLS_NONSENSE' is no cipher of TLS 1.3; OpenSSL has TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256 and TLS_AES_128_GCM_SHA256",
  ],
  ['query_timeout', '2592000', "query_timeout: must be at most 24d, not '30d'"],
  ['query_timeout', '5s', "query_timeout: must be a number of seconds, not '5s'"],
  [
    'listen_port',
    '1',
    "listen_port: can't be changed while the pooler runs: sockets are opened at the start",
  ],
  ['auth_type', 'hba', 'auth.hbaFile: is missing: auth.type is hba'],
])('SET %s = %s is refused', (name, value, problem) => {
  expect(problemsOf(() => withConsoleSetting(configWith(''), name, value))).toEqual([problem]);
});
