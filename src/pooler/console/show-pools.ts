/** SHOW POOLS, DATABASES, USERS and LISTS, and Headgate's own PINS, WAITING, DISCARDS and LEDGER. */
import { type PoolSettings, poolSettingsFor } from '../config/pool-settings.js';
import { consoleDatabases, type UserConfig } from '../config/pooler-config.js';
import { portOf } from '../config/special-kinds.js';
import type { ClientRecord, DatabaseRecord, PoolerView, PoolRecord, UserRecord } from './pooler-view.js';

import { int4, int8, restMicros, type Show, showEach, text, timeText, wholeSeconds } from './show.js';

const ofDatabase = text<{ readonly database: string }>('database', ({ database }) => database);
const ofUser = text<{ readonly user: string }>('user', ({ user }) => user);

export const pools: Show = showEach<PoolRecord>(
  [
    ofDatabase,
    ofUser,
    int4('cl_active', ({ clients }) => (clients.active ?? 0) + (clients.idle ?? 0)),
    int4('cl_waiting', ({ clients }) => clients.waiting ?? 0),
    int4('cl_active_cancel_req', ({ clients }) => clients.active_cancel_req ?? 0),
    int4('cl_waiting_cancel_req', ({ clients }) => clients.waiting_cancel_req ?? 0),
    int4('sv_active', ({ servers }) => servers.active ?? 0),
    int4('sv_active_cancel', ({ servers }) => servers.active_cancel ?? 0),
    int4('sv_being_canceled', ({ servers }) => servers.being_canceled ?? 0),
    int4('sv_idle', ({ servers }) => servers.idle ?? 0),
    int4('sv_used', ({ servers }) => servers.used ?? 0),
    int4('sv_tested', ({ servers }) => servers.tested ?? 0),
    int4('sv_login', ({ servers }) => servers.new ?? 0),
    int4('maxwait', ({ longestWaitMs }) => wholeSeconds(longestWaitMs)),
    int4('maxwait_us', ({ longestWaitMs }) => restMicros(longestWaitMs)),
    text('pool_mode', ({ mode }) => mode),
    text('load_balance_hosts', ({ hosts, loadBalanceHosts }) => (hosts > 1 ? loadBalanceHosts : null)),
    text('target_session_attrs', ({ targetSessionAttrs }) => targetSessionAttrs),
    text('waits_for', ({ shortage }) => shortage ?? null),
    text('wait_cause', ({ waitCause }) => waitCause ?? null),
    text('open_failure', ({ dialFailure }) => dialFailure?.cause ?? null),
    text('open_error_code', ({ dialFailure }) => dialFailure?.code ?? null),
    text('open_error', ({ dialFailure }) => dialFailure?.message ?? null),
  ],
  (view) => [...view.pools(), ...consolePool(view)],
);

/** PgBouncer's console has a pool of its own. */
function consolePool(view: PoolerView): readonly PoolRecord[] {
  if (view.config.admin.compatibility !== 'pgbouncer') return [];
  const active = view.clients().filter(({ database = '' }) => consoleDatabases.includes(database)).length;
  return [
    {
      database: 'pgbouncer',
      user: 'pgbouncer',
      mode: 'statement',
      hosts: 0,
      loadBalanceHosts: '',
      targetSessionAttrs: 'any',
      clients: { active },
      servers: {},
      longestWaitMs: 0,
      ...{ shortage: undefined, waitCause: undefined, dialFailure: undefined },
      ledger: { limit: 0, pending: 0, live: 0, closing: 0, peak: 0 },
      discarded: {},
    },
  ];
}

interface ShownDatabase {
  readonly record: DatabaseRecord;
  /** Settings for users without settings of their own. */
  readonly effective: PoolSettings;
}

export const databases: Show = showEach<ShownDatabase>(
  [
    text('name', ({ record }) => record.settings.name),
    text('host', ({ record }) => record.settings.host.join(',') || null),
    int4('port', ({ record }) => portOf(record.settings.port, 0)),
    text('database', ({ record }) => record.settings.dbname ?? record.settings.name),
    text('force_user', ({ record }) => record.settings.user),
    int4('pool_size', ({ effective }) => effective.poolSize),
    int4('min_pool_size', ({ effective }) => effective.minPoolSize),
    int4('reserve_pool_size', ({ effective }) => effective.reservePoolSize),
    int4('server_lifetime', ({ effective }) => effective.serverLifetime / 1_000),
    text('pool_mode', ({ record }) => record.settings.poolMode),
    text('load_balance_hosts', ({ record: { settings } }) =>
      settings.host.length > 1 ? settings.loadBalanceHosts : null,
    ),
    text('target_session_attrs', ({ record }) => record.settings.targetSessionAttrs),
    int4('max_connections', ({ effective }) => effective.maxDbConnections),
    int4('current_connections', ({ record }) => record.servers),
    int4('max_client_connections', ({ effective }) => effective.maxDbClientConnections),
    int4('current_client_connections', ({ record }) => record.clients),
    int4('paused', ({ record }) => Number(record.isPaused)),
    int4('disabled', ({ record }) => Number(record.isDisabled)),
  ],
  (view) =>
    view.databases().map((record) => ({
      record,
      // No user has an empty name.
      effective: poolSettingsFor(view.config, record.settings, ''),
    })),
);

/** As PgBouncer prints these two. */
function ofWidth(size: number | undefined): string {
  return size?.toString().padStart(9) ?? '';
}

interface ShownUser {
  readonly record: UserRecord;
  readonly own: Partial<UserConfig>;
  readonly view: PoolerView;
}

/** As with PgBouncer, the first two numbers are texts. */
export const users: Show = showEach<ShownUser>(
  [
    text('name', ({ record }) => record.name),
    text('pool_size', ({ own }) => ofWidth(own.poolSize)),
    text('reserve_pool_size', ({ own }) => ofWidth(own.reservePoolSize)),
    text('pool_mode', ({ own }) => own.poolMode),
    int4(
      'max_user_connections',
      ({ own, view }) => own.maxUserConnections ?? view.config.limits.maxUserConnections,
    ),
    int4('current_connections', ({ record }) => record.servers),
    int4(
      'max_user_client_connections',
      ({ own, view }) => own.maxUserClientConnections ?? view.config.limits.maxUserClientConnections,
    ),
    int4('current_client_connections', ({ record }) => record.clients),
  ],
  (view) => view.users().map((record) => ({ record, own: view.config.users.get(record.name) ?? {}, view })),
);

export const lists: Show = showEach<readonly [list: string, items: number]>(
  [text('list', ([list]) => list), int4('items', ([, items]) => items)],
  (view) => {
    const clients = view.clients();
    return [
      ['databases', view.databases().length],
      ['users', view.users().length],
      ['peers', view.config.listen.peers.size],
      ['pools', view.pools().length + consolePool(view).length],
      ['peer_pools', view.config.listen.peers.size],
      ['free_clients', 0],
      ['used_clients', clients.length],
      ['login_clients', clients.filter(({ state }) => state === 'login').length],
      ['free_servers', 0],
      ['used_servers', view.servers().length],
      ['dns_names', 0],
      ['dns_zones', 0],
      ['dns_queries', 0],
      ['dns_pending', 0],
    ];
  },
);

/** Clients that keep their server after a transaction. */
export const pins: Show = showEach<ClientRecord>(
  [
    int4('client', ({ id }) => id),
    int4('server', ({ serverId }) => serverId),
    text('database', ({ database }) => database),
    text('user', ({ user }) => user),
    text('reason', ({ pin }) => pin?.reason),
    text('since', ({ pin }) => pin && timeText(pin.since)),
    text('application_name', ({ applicationName }) => applicationName),
  ],
  (view) =>
    view
      .clients()
      .filter(({ pin }) => pin !== undefined)
      .sort((one, other) => (one.pin?.since ?? 0) - (other.pin?.since ?? 0)),
);

/** The longest wait comes first. */
export const waiting: Show = showEach<ClientRecord>(
  [
    int4('client', ({ id }) => id),
    text('database', ({ database }) => database),
    text('user', ({ user }) => user),
    int4('wait', ({ waitedMs }) => wholeSeconds(waitedMs)),
    int4('wait_us', ({ waitedMs }) => restMicros(waitedMs)),
    text('addr', ({ ends }) => ends.remoteAddress),
    int4('port', ({ ends }) => ends.remotePort),
    text('application_name', ({ applicationName }) => applicationName),
  ],
  (view) =>
    view
      .clients()
      .filter(({ state }) => state === 'waiting')
      .sort((one, other) => other.waitedMs - one.waitedMs),
);

interface Discarded {
  readonly database: string;
  readonly user: string;
  readonly reason: string;
  readonly count: number;
}

export const discards: Show = showEach<Discarded>(
  [ofDatabase, ofUser, text('reason', ({ reason }) => reason), int8('count', ({ count }) => count)],
  (view) =>
    view.pools().flatMap(({ database, user, discarded }) =>
      Object.entries(discarded)
        .filter(([, count]) => count > 0)
        .map(([reason, count]) => ({ database, user, reason, count })),
    ),
);

export const ledger: Show = showEach<PoolRecord>(
  [
    ofDatabase,
    ofUser,
    int4('limit', (pool) => pool.ledger.limit),
    int4('pending', (pool) => pool.ledger.pending),
    int4('live', (pool) => pool.ledger.live),
    int4('closing', (pool) => pool.ledger.closing),
    int4('peak', (pool) => pool.ledger.peak),
  ],
  (view) => view.pools(),
);
