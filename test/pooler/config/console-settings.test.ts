// The settings on the console: in PgBouncer's words.
import { describe, expect, test } from 'vitest';
import { consoleSettings, withConsoleSetting } from '../../../src/pooler/config/console-settings.js';
import { allOptions } from '../../../src/pooler/config/option-table.js';
import { configWith, problemsOf } from './config-files.js';

describe('SHOW CONFIG', () => {
  test("has every setting under PgBouncer's name, in its units", () => {
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
});

describe('SET', () => {
  test.each([
    ['query_timeout', '1.5', 'timeouts', 'queryTimeout', 1_500],
    ['default_pool_size', '7', 'pooling', 'poolSize', 7],
    ['server_round_robin', '1', 'pooling', 'serverRoundRobin', true],
    ['verbose', '2', 'logging', 'level', 'debug'],
    ['log_level', 'warn', 'logging', 'level', 'warn'],
    ['server_tls_ciphers', 'default', 'serverTls', 'ciphers', undefined],
    ['admin_users', 'a, b', 'admin', 'adminUsers', ['a', 'b']],
  ] as const)('%s = %s changes that, and nothing else', (name, value, section, key, expected) => {
    const config = configWith('serverTls: { ciphers: HIGH }');
    const changed = withConsoleSetting(config, name, value);
    expect((changed[section] as Record<string, unknown>)[key]).toEqual(expected);
    expect({ ...changed, [section]: config[section] }).toEqual(config);
    expect(Object.isFrozen(changed) && Object.isFrozen(changed[section])).toBe(true);
  });

  test.each([
    ['pool_mod', 'x', "'pool_mod' is not a setting; did you mean pool_mode?"],
    ['pool_mode', 'x', "pool_mode: must be one of session, transaction, statement, not 'x'"],
    ['query_timeout', '5s', "query_timeout: must be a number of seconds, not '5s'"],
    [
      'listen_port',
      '1',
      "listen_port: can't be changed while the pooler runs: sockets are opened at the start",
    ],
    ['auth_type', 'hba', 'auth.hbaFile: is missing: auth.type is hba'],
  ])('%s = %s is refused', (name, value, problem) => {
    expect(problemsOf(() => withConsoleSetting(configWith(''), name, value))).toEqual([problem]);
  });
});
