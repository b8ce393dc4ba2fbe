/**
 * Logs what becomes of the server connections of a pool: those that open, those that go, why none can be opened, and what was
 * wrong with the query that each begins with.
 */
import { errorFields } from '../../observe/error-text.js';
import { onMessages } from '../../observe/pool-messages.js';
import { Repetition } from '../../observe/repetition.js';
import type { GeneralConfig } from '../config/pooler-config.js';
import type { PoolerLog } from '../log.js';
import type { BackendPool } from './backend-pool.js';

/** Ends that were asked for, and every connection comes to; of the others somebody may want to know. */
const ordinaryEnds = ['idle_timeout', 'max_lifetime', 'max_uses', 'over_limit', 'drained'];

/** A query that has not failed for so long has begun to work, or nobody needs it: the next failure is the first again. */
const quietMs = 60_000;

/** Until the function that it returns is called. */
export function logServers(
  pool: BackendPool,
  log: PoolerLog,
  logging: () => GeneralConfig['logging'],
): () => void {
  const { database, user } = pool;
  const failures = new Repetition<string>();
  const failedQueries = new Repetition<string>(quietMs);
  pool.onConnectQueryFailed = (error) => {
    const { code } = error.fields;
    const attempt = failedQueries.add(code);
    if (attempt === undefined) return;
    log('warn', 'a server connection is used although its connect_query failed', {
      database,
      user,
      ...errorFields(error),
      code,
      attempt,
    });
  };
  pool.onSwallowed = (what) =>
    log('info', 'a statement that the server refuses is swallowed from now on', { database, user, what });
  return onMessages(pool, {
    'headgate:pool:opened': ({ dialMs }) => {
      failures.end();
      if (logging().connections)
        log('info', 'a server connection is open', { database, user, ms: Math.round(dialMs) });
    },
    'headgate:pool:discarded': ({ reason }) => {
      if (logging().disconnections)
        log(ordinaryEnds.includes(reason) ? 'debug' : 'info', 'a server connection goes', {
          database,
          user,
          reason,
        });
    },
    'headgate:pool:refill-failed': ({ cause, error }) => {
      const attempt = failures.add(cause);
      if (attempt === undefined) return;
      log(cause === 'lease_acquire' ? 'debug' : 'error', 'a server connection could not be opened', {
        database,
        user,
        cause,
        ...errorFields(rootOf(error)),
        attempt,
      });
    },
  });
}

/** What the engine says around it is in the line already. */
function rootOf(error: Error): Error {
  return error.cause instanceof Error && error.name === 'ConnectFailedError' ? error.cause : error;
}
