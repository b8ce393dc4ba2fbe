/** Records of clients and servers for the console, made from their present state. */
import type { PooledConnection } from '../../core/pooled-connection.js';
import { systemClock } from '../../runtime/system.js';
import { normalizedText } from '../../sql/normalized-text.js';
import { Frontend, headerBytes } from '../../wire/message-types.js';
import type { ConnectedClient } from '../clients/relay/connected-client.js';
import type { AdminSession } from '../console/admin-session.js';
import type {
  ActiveQueryRecord,
  ClientRecord,
  ClientState,
  ServerRecord,
  ServerState,
} from '../console/pooler-view.js';
import type { Backend } from '../servers/backend.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { endsOfDial, type Opening } from '../servers/opening.js';
import type { PendingClient } from './pending-clients.js';

/** Converts the clock of the process to milliseconds since 1970. */
function dateOf(time: number): number {
  return Date.now() - (systemClock.now() - time);
}

export function clientStateOf({ state, backend }: ConnectedClient): ClientState {
  if (state === 'waiting') return 'waiting';
  return backend === undefined ? 'idle' : 'active';
}

export function sessionRecord(session: ConnectedClient): ClientRecord {
  const { identity, transport, pin, pinnedAt, state, backend, times, held } = session;
  return {
    ...identity,
    ends: transport,
    requestedAt: dateOf(Math.max(times.askedAt, times.idleSince)),
    applicationName: session.told.get('application_name') ?? '',
    preparedStatements: session.namedStatements,
    replication: session.replication,
    heldBytes: held?.length ?? 0,
    state: clientStateOf(session),
    waitedMs: state === 'waiting' ? systemClock.now() - times.waitingSince : 0,
    serverId: backend?.id ?? session.placedOn,
    pin: pin && { reason: pin, since: pinnedAt },
  };
}

/** The client's running or waiting query; undefined where there is none. */
export function activeQueryRecord(session: ConnectedClient): ActiveQueryRecord | undefined {
  const { identity, backend, state, running, times } = session;
  if (state !== 'active' && state !== 'waiting') return undefined;
  const isWaiting = state === 'waiting';
  const since = isWaiting ? times.waitingSince : times.askedAt;
  const ms = Math.max(0, systemClock.now() - since);
  return {
    database: identity.database,
    user: identity.user,
    state,
    clientId: identity.id,
    serverId: backend?.id,
    processId: backend?.key?.processId,
    applicationName: session.told.get('application_name') ?? '',
    startedAt: Date.now() - ms,
    ms,
    waitedMs: isWaiting ? ms : times.waitMs,
    text: isWaiting ? textOfHeld(session.held) : running?.current?.text,
  };
}

/** Text of the held message, if it has one. */
function textOfHeld(held: Buffer | undefined): string | undefined {
  const type = held?.[0];
  if (held === undefined || (type !== Frontend.query && type !== Frontend.parse)) return undefined;
  const start = type === Frontend.query ? headerBytes : held.indexOf(0, headerBytes) + 1;
  const end = held.indexOf(0, start);
  return normalizedText(held, start, end === -1 ? held.length : end);
}

const cancelStates = { passed_on: 'active_cancel_req', waiting: 'waiting_cancel_req' } as const;

export function pendingRecord({
  id,
  transport,
  connectedAt,
  applicationName = '',
  user,
  database,
  cancelling,
  waitsFor,
  replication = 'none',
}: PendingClient): ClientRecord {
  return {
    id,
    ends: transport,
    connectedAt,
    requestedAt: connectedAt,
    applicationName,
    preparedStatements: 0,
    replication,
    heldBytes: 0,
    user,
    database,
    state:
      cancelling === undefined ? (waitsFor === undefined ? 'login' : 'waiting') : cancelStates[cancelling],
    waitedMs:
      cancelling === 'waiting'
        ? Date.now() - connectedAt
        : waitsFor === undefined
          ? 0
          : systemClock.now() - waitsFor.since,
    serverId: undefined,
    pin: undefined,
  };
}

export function consoleRecord(session: AdminSession, pending: PendingClient): ClientRecord {
  // As with PgBouncer, console clients are active.
  return { ...pendingRecord(pending), heldBytes: session.heldBytes, state: 'active' };
}

/** `checkAfterMs`: a connection that is idle for longer is checked before its next use; 0 turns that off. */
export function serverStateOf(backend: Backend, checkAfterMs: number): ServerState {
  const { state, idleSince } = backend.pooled as PooledConnection<Backend>;
  if (backend.isBeingCancelled) return 'being_canceled';
  if (state === 'idle')
    return checkAfterMs > 0 && systemClock.now() - idleSince > checkAfterMs ? 'used' : 'idle';
  return state === 'in_use' && backend.hasClient ? 'active' : 'tested';
}

export function serverRecord(
  pool: BackendPool,
  backend: Backend,
  holder: ConnectedClient | undefined,
): ServerRecord {
  const { id, connectedAt, transport, statements, key, home } = backend;
  const pooled = backend.pooled as PooledConnection<Backend>;
  return {
    id,
    ends: transport,
    connectedAt,
    requestedAt: Number.isNaN(pooled.inUseSince) ? connectedAt : dateOf(pooled.inUseSince),
    applicationName: holder?.told.get('application_name') ?? '',
    preparedStatements: statements.size,
    replication: holder?.replication ?? 'none',
    heldBytes: 0,
    user: pool.user,
    database: pool.database,
    state: serverStateOf(backend, pool.plan.policy.checkAfterIdle),
    clientId: holder?.identity.id,
    followerIds: backend.followers.flatMap(({ clientId }) => clientId ?? []),
    isCloseNeeded:
      home?.state === 'draining' || (pooled.state === 'in_use' && home?.wouldRetire(pooled) === true),
    processId: key?.processId ?? 0,
  };
}

/** Record of a connection that is being opened and has done nothing yet. */
export function openingRecord(
  { user, database }: BackendPool,
  { id, beganAt, address, transport }: Opening,
): ServerRecord {
  return {
    id,
    ends: transport ?? endsOfDial(address),
    connectedAt: beganAt,
    requestedAt: beganAt,
    applicationName: '',
    preparedStatements: 0,
    replication: 'none',
    heldBytes: 0,
    user,
    database,
    state: 'new',
    clientId: undefined,
    followerIds: [],
    isCloseNeeded: false,
    processId: 0,
  };
}
