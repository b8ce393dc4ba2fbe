/** Options: limits and timeouts. */
import { duration, integer } from './kinds.js';
import { memoryOptions } from './memory-options.js';
import { option, type PgBouncerSide } from './option.js';
import { size } from './special-kinds.js';

const count = integer({ min: 0, max: 10_000_000, zero: 'no limit' });

export const limitOptions = {
  maxClientConn: option(integer({ min: 1, max: 10_000_000 }), 1_000, {
    name: 'max_client_conn',
    meaning: 'clients in all',
    reload: 'now',
    pgbouncer: {
      otherDefault: {
        ini: '100',
        why: 'a client that waits costs little, and Node raises its own limit of open files',
      },
    },
  }),
  maxServerConnections: option(count, 0, {
    name: 'max_server_connections',
    meaning: 'server connections in all',
    reload: 'now',
  }),
  maxDbConnections: option(count, 0, {
    name: 'max_db_connections',
    meaning: 'server connections of each database, of all users together',
    reload: 'now',
    pgbouncer: {},
  }),
  maxDbClientConnections: option(count, 0, {
    name: 'max_db_client_connections',
    meaning: 'clients of each database',
    reload: 'now',
    pgbouncer: {},
  }),
  maxUserConnections: option(count, 0, {
    name: 'max_user_connections',
    meaning: 'server connections of each user, in all databases together',
    reload: 'now',
    pgbouncer: {},
  }),
  maxUserClientConnections: option(count, 0, {
    name: 'max_user_client_connections',
    meaning: 'clients of each user',
    reload: 'now',
    pgbouncer: {},
  }),
  maxNewPools: option(integer({ min: 1, max: 10_000_000 }), 32, {
    name: 'max_new_pools',
    meaning: 'databases and users of one server that are tried at once for the first time; others wait',
    reload: 'now',
  }),
  maxPacketSize: option(size({ min: 1_024, max: 2_147_483_647 }), 2_147_483_647, {
    name: 'max_packet_size',
    meaning: 'bytes of one message: a query, or a row',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  ...memoryOptions,
};

export const clientIdleSide: PgBouncerSide = {
  difference:
    'also ends a client that has its server connection for the session, which PgBouncer leaves alone',
  differsFor: (ini) => Number(ini) !== 0,
};

export const timeoutOptions = {
  queryWaitTimeout: option(duration('for ever'), 120_000, {
    name: 'query_wait_timeout',
    meaning: 'how long a client waits for a server connection',
    reload: 'now',
    pgbouncer: {},
  }),
  queryWaitNotify: option(duration('never'), 5_000, {
    name: 'query_wait_notify',
    meaning: 'a client that waits for longer is told so',
    reload: 'now',
    pgbouncer: {},
  }),
  queryTimeout: option(duration('for ever'), 0, {
    name: 'query_timeout',
    meaning: 'how long a query may take, the wait for a server connection included',
    reload: 'now',
    pgbouncer: {},
  }),
  transactionTimeout: option(duration('for ever'), 0, {
    name: 'transaction_timeout',
    meaning: 'how long a transaction may be open',
    reload: 'now',
    pgbouncer: {},
  }),
  idleTransactionTimeout: option(duration('for ever'), 0, {
    name: 'idle_transaction_timeout',
    meaning: 'how long a client may do nothing in a transaction',
    reload: 'now',
    pgbouncer: {},
  }),
  clientIdleTimeout: option(duration('for ever'), 0, {
    name: 'client_idle_timeout',
    meaning: 'how long a client may do nothing',
    reload: 'now',
    pgbouncer: clientIdleSide,
  }),
  clientWriteTimeout: option(duration('for ever'), 0, {
    name: 'client_write_timeout',
    meaning: 'how long a client that has a server connection may stop reading what it is sent',
    reload: 'now',
  }),
  clientLoginTimeout: option(duration('for ever'), 60_000, {
    name: 'client_login_timeout',
    meaning: 'how long a client may take to log in',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  cancelWaitTimeout: option(duration('for ever'), 10_000, {
    name: 'cancel_wait_timeout',
    meaning: 'how long passing on a request to cancel may take',
    reload: 'now',
    pgbouncer: {},
  }),
  suspendTimeout: option(duration('for ever'), 10_000, {
    name: 'suspend_timeout',
    meaning: 'how long SUSPEND waits for data on its way, before it closes connections',
    reload: 'now',
    pgbouncer: {},
  }),
  shutdownTimeout: option(duration('at once'), 30_000, {
    name: 'shutdown_timeout',
    meaning: 'how long a shutdown waits for transactions to end',
    reload: 'now',
    pgbouncer: {
      otherDefault: { ini: '2073600', why: 'container platforms give a program some seconds to end' },
    },
  }),
  autodbIdleTimeout: option(duration('never'), 3_600_000, {
    name: 'autodb_idle_timeout',
    meaning:
      'a database that came from * and is not used for longer is forgotten; its totals stay in SHOW STATS',
    reload: 'now',
    pgbouncer: {},
  }),
  poolIdleTimeout: option(duration('never'), 0, {
    name: 'pool_idle_timeout',
    meaning:
      'a pool without clients and server connections for longer is forgotten; its totals stay in SHOW STATS',
    reload: 'now',
    pgbouncer: {},
  }),
};
