/** `Pool`: the drop-in, as a subclass of the installed pg's own Pool. */
import pg from 'pg';
import type { PgClientClass } from './client.js';
import { definePool } from './define-pool.js';
import { warnOfOtherCopies } from './pg-copies.js';
import type { PoolClass, Pool as PoolInstance } from './pool-interface.js';

/** A `pg.Pool` that never has more connections than `max`, closing ones included. */
export type Pool = PoolInstance;
/** Makes a pool that can replace a `pg.Pool` everywhere. */
export const Pool: PoolClass = isOurs(pg.Pool)
  ? pg.Pool
  : definePool(pg.Pool, () => {
      warnOfOtherCopies();
      return pg.Client as unknown as PgClientClass;
    });

/** When Headgate replaces the pg-pool package, pg's own Pool is this class already. */
function isOurs(candidate: unknown): candidate is PoolClass {
  return 'tryConnect' in (candidate as PoolClass).prototype;
}
