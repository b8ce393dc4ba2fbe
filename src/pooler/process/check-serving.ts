/** Checks whether a configuration can be used with its files, as far as that shows without running it. */
import { Authenticator, AuthenticatorMemory } from '../clients/login/authenticator.js';
import { clientTlsOf, ServerTlsContexts } from '../clients/login/tls-contexts.js';
import { serverTlsFor } from '../config/pool-settings.js';
import type { PoolerConfig } from '../config/pooler-config.js';

/** Problems with users, rules and certificates. */
export function servingProblems(config: PoolerConfig): string[] {
  const serverTls = new ServerTlsContexts();
  const attempts = [
    () => new Authenticator(config, new AuthenticatorMemory(), async () => undefined),
    () => clientTlsOf(config.clientTls),
    ...Array.from(
      config.databases.values(),
      (database) => () => serverTls.tlsOf(serverTlsFor(config, database)),
    ),
  ];
  return attempts.flatMap((attempt) => {
    try {
      attempt();
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
}
