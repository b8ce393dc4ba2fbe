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
  pool.onSwallowed = (what) => log('info', 'statement swallowed from now on', { database, user, what });
  const { settingsBrought } = servers;
  if (settingsBrought !== undefined)
    pool.onSettingsBrought = (backend, from, to) => settingsBrought(backendShown(backend), from, to);
  pool.openingWatcher = {
    connected: (opening) => {
      const { pending, live } = pool.stats();
      if (pending + live > pool.limits.poolSize) servers.reserveTaken();
      servers.connected(openingShown(opening));
    },
    failed: (opening, error) => servers.hostFailed(openingShown(opening), error),
    evicted: (backend) => servers.closed(backendShown(backend), 'evicted'),
  };
  return onMessages(pool, {
    'headgate:pool:opened': ({ dialMs }) => servers.opened(dialMs),
    'headgate:pool:discarded': ({ connection, reason }) => {
      const backend = connection as Backend;
      const replication = backend.replication === undefined ? backend.substitute : backend;
      if (replication !== undefined) servers.closed(backendShown(replication), 'replication_ended');
      else if (!backend.isEvicted) servers.closed(backendShown(backend), reason);
    },
    'headgate:pool:refill-failed': ({ cause, error }) => servers.openingFailed(cause, rootOf(error)),
  });
}

function backendShown({ id, transport, connectedAt }: Backend): LoggedServer {
  return { id, ends: transport, openedAt: connectedAt };
}

function openingShown({ id, ends, address, beganAt, replication }: Opening): LoggedServer {
  const isReplication = replication !== undefined;
  return { id, ends: ends ?? endsOfDial(address), openedAt: beganAt, isReplication };
}

/** The log entry already has what the engine wraps around the cause. */
function rootOf(error: Error): Error {
  return error.cause instanceof Error && error.name === 'ConnectFailedError' ? error.cause : error;
}
