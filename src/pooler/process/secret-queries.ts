/** Asks servers for the secrets of users (`auth_query`). */
import type { AuthQuery } from '../clients/login/authenticator.js';
import { consoleDatabases, databaseFor, type PoolerConfig } from '../config/pooler-config.js';
import { ServingError } from '../errors.js';
import type { PoolerLog } from '../log.js';
import { borrow } from '../servers/borrow.js';
import { askServer } from '../servers/server-question.js';
import type { NewPoolGates } from './new-pool-gate.js';
import type { PoolRegistry } from './pool-registry.js';

/** Time that a query may wait for a server. */
const secretTimeoutMs = 10_000;

export interface SecretParts {
  readonly config: () => PoolerConfig;
  readonly gates: NewPoolGates;
  readonly pools: PoolRegistry;
  readonly log: PoolerLog;
}

export class SecretQueries {
  readonly #parts: SecretParts;

  constructor(parts: SecretParts) {
    this.#parts = parts;
  }

  /** Asks the server for a user's secret: null where it has none, undefined where there is no such user. */
  async ask(query: AuthQuery, user: string): Promise<string | null | undefined> {
    if (consoleDatabases.includes(query.database))
      throw new ServingError(`cannot use the reserved "${query.database}" database as an auth_dbname`);
    const database = databaseFor(this.#parts.config(), query.database);
    if (database === undefined)
      throw new ServingError(`authentication database "${query.database}" is not configured (auth_dbname)`);
    const question = { what: 'auth_query', text: query.text, values: [user], mostRows: 1 };
    const options = { timeoutMs: secretTimeoutMs, signal: AbortSignal.timeout(secretTimeoutMs) };
    const leaveGate = await this.#parts.gates.enter(database, query.user, options);
    const entry = this.#parts.pools.getForSecrets(database, query.user);
    const [row] = await borrow(entry.pool, options, (backend) => askServer(backend, question))
      .catch((error: unknown) => {
        this.#parts.pools.refused(entry, error);
        throw error;
      })
      .finally(leaveGate);
    if (row === undefined) return undefined;
    if (row.length !== 2)
      throw new ServingError(
        `auth_query must answer with 2 columns, the name of the user and its secret, and not with ${row.length}.`,
      );
    const [name, secret] = row;
    if (name === user) return secret;
    // A secret of another user must not let anybody in. It is not logged: the columns may have been mixed up.
    if (name !== null) this.#parts.log('warn', 'auth_query answer refused', { user, reason: 'other_user' });
    return undefined;
  }
}
