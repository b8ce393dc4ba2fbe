/** `DsqlPool`: the drop-in for clusters of Aurora DSQL. */
import pg from 'pg';
import type { Leases } from '../core/leases.js';
import type { RateLimiter } from '../core/rate-limiter.js';
import type { Duration } from '../kernel/duration.js';
import type { EnvironmentWarning } from '../kernel/environment.js';
import type { PgClientClass } from '../pg/client.js';
import { Pool } from '../pg/pool.js';
import type { ConnectCallback, ConnectOptions, PoolClient } from '../pg/pool-interface.js';
import { checkoutScope } from './adapters/orm-checkout.js';
import { defineDsqlClient } from './dsql-client.js';
import { type DsqlPoolOptions, resolveDsqlOptions } from './dsql-options.js';
import type { Endpoint } from './endpoint.js';
import { joinFleet } from './fleet-limits.js';
import type { ExplainedSetting } from './settings.js';
import { sharedBucket } from './shared-rate.js';
import type { TransactionClient } from './transaction/pg-shapes.js';
import { type TransactionOptions, transaction } from './transaction/transaction.js';

const parts = Symbol('headgate.dsql');

/**
 * A `Pool` for a cluster of Aurora DSQL: every connection is opened with a token that is good, over TLS to a server
 * that has proved to be the cluster, and is replaced before the server would close it. The pool is brought to its size at
 * the start and kept there.
 *
 * @example
 * ```ts
 * import { DsqlPool } from 'headgate/dsql';
 *
 * const pool = new DsqlPool({ host: 'abcdefghijklmnopqrstuvwxyz.dsql.us-east-1.on.aws', user: 'admin', max: 20 });
 *
 * await pool.end();
 * ```
 */
export class DsqlPool extends Pool {
  /** Where the cluster is. */
  readonly endpoint: Endpoint;
  /** The limit above `max`: the `leases` given, or those in DynamoDB that the environment asks for. */
  declare readonly leases: Leases | undefined;
  /** How fast connections are opened: the `rateLimiter` given, the one in DynamoDB that the environment asks for, or the process's own. */
  declare readonly rateLimiter: RateLimiter | undefined;
  /** @internal Not private fields: a method that is called on a proxy of the pool would not find them. */
  declare readonly [parts]: {
    readonly explanation: readonly ExplainedSetting[];
    readonly leaveFleet: () => Promise<void>;
  };

  constructor(options: DsqlPoolOptions, Client?: unknown) {
    const note = (...said: [message: string, error?: unknown]): void => options.log?.(...said);
    const { endpoint, poolOptions, rate, distributed, credentials, explanation, warnings, ...settings } =
      resolveDsqlOptions({ ...options }, note);
    const Base = (poolOptions.Client ?? Client ?? pg.Client) as PgClientClass;
    const limiter = rate === undefined ? {} : { rateLimiter: sharedBucket(endpoint, rate) };
    // The class is an option too, and there it would win.
    const { limits, leave } = joinFleet(endpoint, distributed, credentials, note);
    const { leases, rateLimiter, ...others } = { ...poolOptions, ...limiter, ...limits };
    super({ ...others, leases, rateLimiter, Client: undefined }, defineDsqlClient(Base, settings));
    this.endpoint = endpoint;
    Object.defineProperty(this, parts, { value: { explanation, leaveFleet: leave } });
    // The server closes connections when it likes, and after an hour in any case: that must not end the program.
    this.on('error', (error) => note('an idle connection was lost', error));
    tellOf(warnings, note);
  }

  override connect(options?: ConnectOptions): Promise<PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(options: ConnectOptions, callback: ConnectCallback): void;
  override connect(...args: never[]): unknown {
    const checkout: unknown = super.connect(...args);
    const scope = checkoutScope(this);
    if (scope === undefined || !(checkout instanceof Promise)) return checkout;
    return checkout.then((client) => scope.take(client));
  }

  override end(options?: { readonly deadline?: Duration | undefined }): Promise<void>;
  override end(callback: (error?: Error) => void): void;
  override end(first?: ((error?: Error) => void) | { readonly deadline?: Duration | undefined }): unknown {
    const { leaveFleet } = this[parts];
    if (typeof first !== 'function') return super.end(first).then(leaveFleet);
    super.end((error?: Error) => {
      if (error === undefined) void leaveFleet().then(() => first());
      else first(error);
    });
    return undefined;
  }

  /**
   * Runs `fn` in a transaction, and again when it loses a conflict; see `transaction`.
   *
   * @example
   * ```ts
   * import { DsqlPool } from 'headgate/dsql';
   *
   * async function rename(pool: DsqlPool, id: string, name: string): Promise<void> {
   *   await pool.transaction(async (client) => {
   *     await client.query('UPDATE users SET name = $1 WHERE id = $2', [name, id]);
   *   });
   * }
   * ```
   */
  transaction<T>(
    fn: (client: TransactionClient) => T | Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    return transaction(this, fn, options);
  }

  /** Which value each setting has had since the pool was made, and where it is from. Nothing in it is secret. */
  explain(): readonly ExplainedSetting[] {
    return this[parts].explanation;
  }
}

/** To the program's log one by one, and as one warning of the process: a log may be switched off, a mistake must be seen. */
function tellOf(warnings: readonly EnvironmentWarning[], note: (message: string) => void): void {
  if (warnings.length === 0) return;
  const messages = warnings.map(
    ({ variable, text }) => `${variable} ${text}${text.endsWith('?') ? '' : '.'}`,
  );
  for (const message of messages) note(message);
  process.emitWarning(messages.join('\n'), { code: 'HG_DSQL_CONFIG' });
}
