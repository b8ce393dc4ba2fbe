/** Options: sharing, keeping and closing of server connections. */
import { boolean, duration, fraction, integer, list, oneOf, query } from './kinds.js';
import { option, type PgBouncerSide, type SaidForAll } from './option.js';

export const poolModes = ['session', 'transaction', 'statement'] as const;

export type PoolMode = (typeof poolModes)[number];

/** With PgBouncer, a lifetime of 0 ends after one use. Here 0 is no limit, as everywhere. */
const lifetimeSide: PgBouncerSide = {
  difference: '0, which closes a connection after one use, becomes serverMaxUses: 1',
  differsFor: (ini) => Number(ini) === 0,
  also(ini, said) {
    if (Number(ini) === 0) return { serverMaxUses: 1 };
    return endsAfterOneUse(said) ? { serverMaxUses: undefined } : {};
  },
};

/** An entry with a lifetime of its own is not affected by that. */
export const ownLifetimeSide: PgBouncerSide = {
  zeroIsUnset: true,
  also: (_, said) => (endsAfterOneUse(said) ? { serverMaxUses: 0 } : {}),
};

function endsAfterOneUse({ pooling }: SaidForAll): boolean {
  return pooling?.serverLifetime === 0 && pooling.serverMaxUses === 1;
}

export const poolingOptions = {
  poolMode: option(oneOf(...poolModes), 'transaction', {
    name: 'pool_mode',
    meaning:
      'when a client gives its server connection back: at the end of the session, transaction or statement',
    reload: 'new-clients',
    pgbouncer: {
      otherDefault: {
        ini: 'session',
        why: 'settings and prepared statements follow the client, and what else needs a session keeps it',
      },
    },
  }),
  poolSize: option(integer({ min: 1, max: 1_000_000 }), 20, {
    name: 'default_pool_size',
    meaning: 'server connections of each user in each database',
    reload: 'now',
    pgbouncer: {},
  }),
  minPoolSize: option(integer({ min: 0, max: 1_000_000 }), 0, {
    name: 'min_pool_size',
    meaning:
      'server connections that a pool is kept at, as far as its size and max_..._connections allow: while it has clients, and from the start where its database names the user',
    reload: 'now',
    pgbouncer: {},
  }),
  reservePoolSize: option(integer({ min: 0, max: 1_000_000 }), 0, {
    name: 'reserve_pool_size',
    meaning: 'server connections that a pool may have on top when a client waits for long',
    reload: 'now',
    pgbouncer: {},
  }),
  reservePoolTimeout: option(duration('the reserve is not used'), 5_000, {
    name: 'reserve_pool_timeout',
    meaning: 'how long a client waits before the reserve is used',
    reload: 'now',
    pgbouncer: {},
  }),
  serverLifetime: option(duration('never'), 3_600_000, {
    name: 'server_lifetime',
    meaning: 'a server connection that is older is closed once it is free',
    reload: 'new-servers',
    pgbouncer: lifetimeSide,
  }),
  serverLifetimeJitter: option(fraction, 0.1, {
    name: 'server_lifetime_jitter',
    meaning: 'lives are spread over this part of server_lifetime around it, so that they do not end together',
    reload: 'new-servers',
  }),
  serverMaxUses: option(integer({ min: 0, zero: 'never' }), 0, {
    name: 'server_max_uses',
    meaning: 'a server connection given out this often is closed',
    reload: 'now',
  }),
  serverIdleTimeout: option(duration('never'), 600_000, {
    name: 'server_idle_timeout',
    meaning: 'a server connection that is idle for longer is closed',
    reload: 'now',
    pgbouncer: {},
  }),
  serverConnectTimeout: option(duration('for ever'), 15_000, {
    name: 'server_connect_timeout',
    meaning: 'how long connecting to a server and logging in may take',
    reload: 'new-servers',
    pgbouncer: {},
  }),
  // Clients wait until the server is back, so retry soon. One attempt per second is no load.
  serverLoginRetry: option(duration('at once'), 1_000, {
    name: 'server_login_retry',
    meaning: 'the longest wait before a server that can not be connected to is tried again',
    reload: 'now',
    pgbouncer: {
      difference:
        'the wait begins short and grows up to this, in place of being this from the first failure on; without it 1s in place of 15s, for clients that wait meanwhile',
    },
  }),
  serverConnectLimit: option(integer({ min: 1, max: 10_000 }), 8, {
    name: 'server_connect_limit',
    meaning: 'server connections that one pool opens at the same time',
    reload: 'now',
    pgbouncer: {
      otherDefault: { ini: '1', why: 'after a restart of the server clients need not wait for each other' },
    },
  }),
  serverRoundRobin: option(boolean, false, {
    name: 'server_round_robin',
    meaning: 'gives out the server connection that was idle for longest, not the one used last',
    reload: 'now',
    pgbouncer: {},
  }),
  serverCheckDelay: option(duration('always'), 30_000, {
    name: 'server_check_delay',
    meaning: 'a server connection that was idle for longer is checked before it is given out',
    reload: 'now',
    pgbouncer: {},
  }),
  serverCheckQuery: option(query, '<empty>', {
    name: 'server_check_query',
    meaning: 'the check; <empty>: a query without text; none: no check',
    reload: 'now',
    pgbouncer: {},
  }),
  serverResetQuery: option(query, 'DISCARD ALL', {
    name: 'server_reset_query',
    meaning: 'cleans a server connection when a session that it belonged to is over',
    reload: 'now',
    pgbouncer: {
      difference: 'settings are reset in any case, also where it is not DISCARD ALL, and where it is empty',
      differsFor: (ini) => !/^\s*DISCARD\s+ALL\s*(?:;\s*)?$/i.test(ini),
    },
  }),
  serverResetQueryAlways: option(boolean, false, {
    name: 'server_reset_query_always',
    meaning: 'runs it in the other pool modes, too, whenever a client gives a connection back',
    reload: 'now',
    pgbouncer: {},
  }),
  sessionCheck: option(oneOf('unclear', 'always'), 'unclear', {
    name: 'session_check',
    meaning:
      'after which transactions a server is asked whether its client left something in the session: those whose texts do not rule it out, or all',
    reload: 'now',
  }),
  serverCleaningTimeout: option(duration(undefined), 10_000, {
    name: 'server_cleaning_timeout',
    meaning: 'how long cleaning may take, after which the connection is closed',
    reload: 'now',
  }),
  serverFastClose: option(boolean, false, {
    name: 'server_fast_close',
    meaning:
      'RECONNECT and changed settings end sessions between two transactions, not only when the client leaves',
    reload: 'now',
    pgbouncer: {},
  }),
  maxPreparedStatements: option(integer({ min: 0, zero: 'they are not followed' }), 200, {
    name: 'max_prepared_statements',
    meaning: 'prepared statements kept on each server connection',
    reload: 'now',
    pgbouncer: {},
  }),
  prepareUnnamed: option(boolean, false, {
    name: 'prepare_unnamed',
    meaning:
      'statements without a name that come again and again are parsed and planned once on each server connection',
    reload: 'new-clients',
  }),
  multiplexDepth: option(integer({ min: 1, max: 64 }), 1, {
    name: 'multiplex_depth',
    meaning:
      'while more statements are under way than a pool has connections, single statements of up to this many clients are sent one behind the other on each; 1: off',
    reload: 'now',
  }),
  multiplexStatements: option(oneOf('reads', 'all'), 'reads', {
    name: 'multiplex_statements',
    meaning:
      'which statements may be sent so; `all`: also those that write, which may have to wait for locks',
    reload: 'now',
  }),
  multiplexLongest: option(duration(undefined), 5, {
    name: 'multiplex_longest',
    meaning: 'nothing is sent behind a statement that usually takes longer, or that was not run yet',
    reload: 'now',
  }),
  deferBegin: option(boolean, true, {
    name: 'defer_begin',
    meaning: 'BEGIN is answered at once, and a server is taken with the first statement',
    reload: 'now',
    pgbouncer: {
      otherDefault: { ini: '0', why: 'a client that begins and then thinks holds no server' },
    },
  }),
  trackExtraParameters: option(list, Object.freeze(['IntervalStyle']), {
    name: 'track_extra_parameters',
    meaning: 'settings that servers report and that follow the client, beside the usual ones',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  ignoreStartupParameters: option(list, Object.freeze([]), {
    name: 'ignore_startup_parameters',
    meaning: 'startup parameters of clients that are left aside; `options`: what is in them and not tracked',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  applicationNameAddHost: option(boolean, false, {
    name: 'application_name_add_host',
    meaning: "adds the client's address and port to its application_name",
    reload: 'new-clients',
    pgbouncer: {},
  }),
  disableSimpleQuery: option(boolean, false, {
    name: 'disable_pqexec',
    meaning: 'refuses simple queries, which may hold several statements',
    reload: 'new-clients',
    pgbouncer: {},
  }),
};
