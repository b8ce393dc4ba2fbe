// A key and its certificate are set one after the other, and fit only together.
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ConfigError } from '../../../src/pooler/config/config-problems.js';
import { withConsoleSettings } from '../../../src/pooler/config/console-settings.js';
import type { PoolerConfig } from '../../../src/pooler/config/pooler-config.js';
import { keepHeld, withHeldSettings } from '../../../src/pooler/console/held-settings.js';
import { configWith } from '../config/config-files.js';

const file = (name: string): string =>
  fileURLToPath(new URL(`../../net/certificates/${name}`, import.meta.url));

function withTls(): PoolerConfig {
  return withConsoleSettings(configWith(''), [
    ['client_tls_key_file', file('server.key')],
    ['client_tls_cert_file', file('server.pem')],
    ['client_tls_sslmode', 'require'],
  ]);
}

test.each([
  [
    ['client_tls_key_file', 'renewed.key'],
    ['client_tls_cert_file', 'renewed.pem'],
  ],
  [
    ['client_tls_cert_file', 'renewed.pem'],
    ['client_tls_key_file', 'renewed.key'],
  ],
] as const)('SET of %s is held until its other half comes', ([first, one], [second, other]) => {
  const config = withTls();
  expect(withHeldSettings(config, first, file(one))).toBeInstanceOf(ConfigError);
  const changed = withHeldSettings(config, second, file(other)) as PoolerConfig;
  expect(changed.clientTls).toMatchObject({ keyFile: file('renewed.key'), certFile: file('renewed.pem') });
});

test('a value that is held outlives a SET of another setting, and not another configuration', () => {
  const config = withTls();
  withHeldSettings(config, 'client_tls_key_file', file('renewed.key'));
  const other = withHeldSettings(config, 'query_timeout', '7') as PoolerConfig;
  keepHeld(config, 'query_timeout', other);
  const changed = withHeldSettings(other, 'client_tls_cert_file', file('renewed.pem')) as PoolerConfig;
  expect(changed.clientTls.keyFile).toBe(file('renewed.key'));
  expect(withHeldSettings(withTls(), 'client_tls_cert_file', file('renewed.pem'))).toBeInstanceOf(
    ConfigError,
  );
});

test('a problem that is no matter of TLS is not held', () => {
  expect(() => withHeldSettings(withTls(), 'query_timeout', 'soon')).toThrow(ConfigError);
});
