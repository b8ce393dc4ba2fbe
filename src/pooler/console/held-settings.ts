/**
 * TLS settings of SET that can't be used yet: a key and its certificate come one after the other, and fit only together. As with
 * PgBouncer, the old ones are used until the rest has come. A reload forgets them with its configuration.
 */
import { ConfigError, type ConfigProblem } from '../config/config-problems.js';
import { withConsoleSettings } from '../config/console-settings.js';
import type { PoolerConfig } from '../config/pooler-config.js';

/** Values by name, for the configuration that they could not be added to. Bounded by the number of settings. */
const heldFor = new WeakMap<PoolerConfig, ReadonlyMap<string, string>>();

const tlsName = /_tls/;
const tlsPath = /^(?:clientTls|serverTls)\./;
const ciphersName = /_tls(?:13)?_ciphers$/;

/** The configuration with this setting and all held ones, or the problems that it is held for. Throws a `ConfigError`. */
export function withHeldSettings(
  config: PoolerConfig,
  key: string,
  value: string,
): PoolerConfig | ConfigError {
  const held = heldFor.get(config);
  if (!tlsName.test(key)) return withConsoleSettings(config, [[key, value]]);
  const settings = new Map(held).set(key, value);
  try {
    return withConsoleSettings(config, settings);
  } catch (error) {
    if (!(error instanceof ConfigError) || !error.problems.every((problem) => isHeld(problem, config)))
      throw error;
    heldFor.set(config, settings);
    return error;
  }
}

/** PgBouncer finds out when it uses a list of ciphers that OpenSSL does not know it. */
function isHeld({ path }: ConfigProblem, { admin }: PoolerConfig): boolean {
  return tlsPath.test(path) || (admin.compatibility === 'pgbouncer' && ciphersName.test(path));
}

/** Another setting has changed the configuration: what was held is still held. */
export function keepHeld(was: PoolerConfig, key: string, is: PoolerConfig): void {
  const held = heldFor.get(was);
  if (held !== undefined && !tlsName.test(key)) heldFor.set(is, held);
}
