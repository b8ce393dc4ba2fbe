/** Passes on to the log what becomes of the server connections of a pool. */
import { onMessages } from '../../observe/pool-messages.js';
import type { PoolerLog } from '../log.js';
import type { Backend } from './backend.js';
import type { BackendPool } from './backend-pool.js';
import type { LoggedServer, ServerLog } from './connection-log.js';
import { endsOfDial, type Opening } from './opening.js';

/** Until the function that it returns is called. */
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

/** What the engine says around it is in the line already. */
function rootOf(error: Error): Error {
  return error.cause instanceof Error && error.name === 'ConnectFailedError' ? error.cause : error;
}
