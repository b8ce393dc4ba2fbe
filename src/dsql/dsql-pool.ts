/** `DsqlPool`: the drop-in for clusters of Aurora DSQL. */
import pg from 'pg';
import type { PgClientClass } from '../pg/client.js';
import { Pool } from '../pg/pool.js';
import { defineDsqlClient } from './dsql-client.js';
import { type DsqlPoolOptions, resolveDsqlOptions } from './dsql-options.js';
import type { Endpoint } from './endpoint.js';

/**
 * A `Pool` for a cluster of Aurora DSQL: every connection is opened with a token that is good, over TLS to a server
 * that has proved to be the cluster, and is replaced before the server would close it.
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

  constructor(options: DsqlPoolOptions, Client?: unknown) {
    const note = (message: string, error: unknown): void => options.log?.(message, error);
    const { endpoint, poolOptions, ...settings } = resolveDsqlOptions({ ...options }, process.env, note);
    const Base = (poolOptions.Client ?? Client ?? pg.Client) as PgClientClass;
    // The class is an option too, and there it would win.
    super({ ...poolOptions, Client: undefined }, defineDsqlClient(Base, settings));
    this.endpoint = endpoint;
    // The server closes connections when it likes, and after an hour in any case: that must not end the program.
    this.on('error', (error) => note('an idle connection was lost', error));
  }
}
