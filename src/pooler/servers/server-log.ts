/** Logs the events of a pool's server connections. */
import { onMessages } from '../../observe/pool-messages.js';
import type { PoolerLog } from '../log.js';
import type { Backend } from './backend.js';
import type { BackendPool } from './backend-pool.js';
import type { LoggedServer, ServerLog } from './connection-log.js';
import { endsOfDial, type Opening } from './opening.js';

/** Logs until the returned function is called. */
export function logServers(pool: BackendPool, servers: ServerLog, log: PoolerLog): () => void {
  const { database, user } = pool;
  pool.onConnectQueryFailed = (error) => servers.connectQueryFailed(error);
  pool.onSwallowed = (what) =>
    log('info', 'a statement that the server refuses is swallowed from now on', { database, user, what });
  pool.openingWatcher = {
    connected: (opening) => servers.connected(openingShown(opening)),
    failed: (opening, error) => servers.hostFailed(openingShown(opening), error),
    reserveTaken: () => servers.reserveTaken(),
  };
  return onMessages(pool, {
    'headgate:pool:opened': ({ dialMs }) => servers.opened(dialMs),
    'headgate:pool:discarded': ({ connection, reason }) => {
      const { id, transport, connectedAt } = connection as Backend;
      servers.closed({ id, ends: transport, openedAt: connectedAt }, reason);
    },
    'headgate:pool:refill-failed': ({ cause, error }) => servers.openingFailed(cause, rootOf(error)),
  });
}

function openingShown({ id, ends, address, beganAt }: Opening): LoggedServer {
  return { id, ends: ends ?? endsOfDial(address), openedAt: beganAt };
}

/** The log entry already has what the engine wraps around the cause. */
function rootOf(error: Error): Error {
  return error.cause instanceof Error && error.name === 'ConnectFailedError' ? error.cause : error;
}
