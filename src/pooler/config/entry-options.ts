/** Options of one database or one user. */
import { weight } from './fair-share-kinds.js';
import { duration, integer, list, oneOf, query, text } from './kinds.js';
import { clientIdleSide } from './limit-options.js';
import { option, override, type PgBouncerSide } from './option.js';
import { ownLifetimeSide, poolModes } from './pooling-options.js';
import { path, ports, secret } from './special-kinds.js';

const connections = integer({ min: 0, max: 10_000_000, zero: 'no limit' });
const poolSize = integer({ min: 1, max: 1_000_000 });
const reserve = integer({ min: 0, max: 1_000_000 });

/** Here 0 is no limit, as everywhere; with PgBouncer it does not lift the general limit. */
const zeroForAll: PgBouncerSide = { zeroIsUnset: true };

export const databaseOptions = {
  host: option(list, Object.freeze(['localhost']), {
    name: 'host',
    meaning: 'names, addresses, or folders of Unix sockets; of several, each new connection takes the next',
    reload: 'other-servers',
    pgbouncer: {
      otherDefault: { ini: '', why: 'the server is often on another machine, or in a container' },
    },
  }),
  port: option(ports, 5432, {
    name: 'port',
    meaning: 'port of the server; of several hosts, one for all or as many as there are hosts',
    reload: 'other-servers',
    pgbouncer: {},
  }),
  dbname: option(text, undefined, {
    name: 'dbname',
    meaning: "the database's name on the server",
    reload: 'other-servers',
    pgbouncer: {},
    defaultText: 'the same',
  }),
  user: option(text, undefined, {
    name: 'user',
    meaning: 'logs in at the server for all clients, which then share one pool',
    reload: 'other-servers',
    pgbouncer: {},
    defaultText: "the client's",
  }),
  password: option(secret, undefined, {
    name: 'password',
    meaning: "that user's password: a text, { file: PATH } or { env: NAME }",
    reload: 'other-servers',
    pgbouncer: {},
    defaultText: 'as in auth_file',
  }),
  iam: option(oneOf('none', 'rds', 'dsql'), 'none', {
    name: 'iam',
    meaning: 'logs in with tokens of AWS IAM in place of a password',
    reload: 'other-servers',
  }),
  dialect: override(oneOf('postgresql', 'dsql'), {
    name: 'dialect',
    meaning: 'what the server understands: with dsql, the section dsql applies to it',
    reload: 'other-servers',
    defaultText: 'dsql with iam: dsql, otherwise postgresql',
  }),
  region: option(text, undefined, {
    name: 'region',
    meaning: 'the AWS region that tokens are for',
    reload: 'other-servers',
    defaultText: 'the one in host, or AWS_REGION',
  }),
  tlsMode: override(oneOf('disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'), {
    name: 'sslmode',
    meaning: 'in place of serverTls.mode',
    reload: 'other-servers',
  }),
  tlsCaFile: override(path, {
    name: 'sslrootcert',
    meaning: 'in place of serverTls.caFile',
    reload: 'other-servers',
  }),
  tlsCertFile: override(path, {
    name: 'sslcert',
    meaning: 'in place of serverTls.certFile',
    reload: 'other-servers',
  }),
  tlsKeyFile: override(path, {
    name: 'sslkey',
    meaning: 'in place of serverTls.keyFile',
    reload: 'other-servers',
  }),
  tlsNegotiation: override(oneOf('postgres', 'direct'), {
    name: 'sslnegotiation',
    meaning: 'in place of serverTls.negotiation',
    reload: 'other-servers',
  }),
  authUser: option(text, undefined, {
    name: 'auth_user',
    meaning: 'in place of auth.user',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  authQuery: override(query, {
    name: 'auth_query',
    meaning: 'in place of auth.query',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  authDbname: option(text, undefined, {
    name: 'auth_dbname',
    meaning: 'in place of auth.dbname',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  poolMode: override(oneOf(...poolModes), {
    name: 'pool_mode',
    meaning: 'in place of pooling.poolMode',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  poolSize: override(poolSize, {
    name: 'pool_size',
    meaning: 'in place of pooling.poolSize',
    reload: 'now',
    pgbouncer: {},
  }),
  minPoolSize: override(reserve, {
    name: 'min_pool_size',
    meaning: 'in place of pooling.minPoolSize',
    reload: 'now',
    pgbouncer: {},
  }),
  reservePoolSize: override(reserve, {
    name: 'reserve_pool_size',
    meaning: 'in place of pooling.reservePoolSize',
    reload: 'now',
    pgbouncer: {},
  }),
  maxDbConnections: override(connections, {
    name: 'max_db_connections',
    meaning: 'in place of limits.maxDbConnections',
    reload: 'now',
    pgbouncer: zeroForAll,
  }),
  maxDbClientConnections: override(connections, {
    name: 'max_db_client_connections',
    meaning: 'in place of limits.maxDbClientConnections',
    reload: 'now',
    pgbouncer: zeroForAll,
  }),
  serverLifetime: override(duration('never'), {
    name: 'server_lifetime',
    meaning: 'in place of pooling.serverLifetime',
    reload: 'new-servers',
    pgbouncer: ownLifetimeSide,
  }),
  serverMaxUses: override(integer({ min: 0, zero: 'never' }), {
    name: 'server_max_uses',
    meaning: 'in place of pooling.serverMaxUses',
    reload: 'now',
  }),
  queryWaitTimeout: override(duration('for ever'), {
    name: 'query_wait_timeout',
    meaning: 'in place of timeouts.queryWaitTimeout',
    reload: 'now',
    pgbouncer: {},
  }),
  connectQuery: override(query, {
    name: 'connect_query',
    meaning: 'run on each new server connection; an error of it is logged, and the connection is used',
    reload: 'other-servers',
    pgbouncer: {},
  }),
  loadBalanceHosts: option(oneOf('round-robin', 'disable'), 'round-robin', {
    name: 'load_balance_hosts',
    meaning: 'of several hosts: the next one for each connection, or the same until it fails',
    reload: 'now',
    pgbouncer: {},
  }),
  targetSessionAttrs: option(oneOf('any', 'read-write', 'read-only', 'primary', 'standby'), 'any', {
    name: 'target_session_attrs',
    meaning: 'which servers are good enough for a new connection, after connect_query',
    reload: 'other-servers',
    pgbouncer: {},
  }),
  clientEncoding: option(text, undefined, {
    name: 'client_encoding',
    meaning: 'asked of the server for each connection',
    reload: 'other-servers',
    pgbouncer: {},
  }),
  datestyle: option(text, undefined, {
    name: 'datestyle',
    meaning: 'asked of the server for each connection',
    reload: 'other-servers',
    pgbouncer: {},
  }),
  timezone: option(text, undefined, {
    name: 'timezone',
    meaning: 'asked of the server for each connection',
    reload: 'other-servers',
    pgbouncer: {},
  }),
  applicationName: option(text, undefined, {
    name: 'application_name',
    meaning: 'asked of the server for each connection',
    reload: 'other-servers',
    pgbouncer: {},
  }),
};

export const userOptions = {
  password: option(secret, undefined, {
    name: 'password',
    meaning:
      'the password, or its md5 or SCRAM secret: a text, { file: PATH } or { env: NAME }; wins over auth.file',
    reload: 'new-clients',
  }),
  poolMode: override(oneOf(...poolModes), {
    name: 'pool_mode',
    meaning: "in place of pooling.poolMode and the database's",
    reload: 'new-clients',
    pgbouncer: {},
  }),
  poolSize: override(poolSize, {
    name: 'pool_size',
    meaning: "in place of pooling.poolSize and the database's",
    reload: 'now',
    pgbouncer: {},
  }),
  reservePoolSize: override(reserve, {
    name: 'reserve_pool_size',
    meaning: "in place of pooling.reservePoolSize and the database's",
    reload: 'now',
    pgbouncer: {},
  }),
  maxUserConnections: override(connections, {
    name: 'max_user_connections',
    meaning: 'in place of limits.maxUserConnections',
    reload: 'now',
    pgbouncer: zeroForAll,
  }),
  minUserConnections: option(reserve, 0, {
    name: 'min_user_connections',
    meaning: 'server connections guaranteed to it as soon as it needs them, however many others need',
    reload: 'now',
  }),
  weight: override(weight, {
    name: 'weight',
    meaning: 'in place of what fairShares.weights says',
    reload: 'now',
  }),
  maxUserClientConnections: override(connections, {
    name: 'max_user_client_connections',
    meaning: 'in place of limits.maxUserClientConnections',
    reload: 'now',
    pgbouncer: zeroForAll,
  }),
  queryTimeout: override(duration('for ever'), {
    name: 'query_timeout',
    meaning: 'in place of timeouts.queryTimeout',
    reload: 'now',
    pgbouncer: zeroForAll,
  }),
  queryWaitTimeout: override(duration('for ever'), {
    name: 'query_wait_timeout',
    meaning: "in place of timeouts.queryWaitTimeout and the database's",
    reload: 'now',
    pgbouncer: {},
  }),
  transactionTimeout: override(duration('for ever'), {
    name: 'transaction_timeout',
    meaning: 'in place of timeouts.transactionTimeout',
    reload: 'now',
    pgbouncer: zeroForAll,
  }),
  idleTransactionTimeout: override(duration('for ever'), {
    name: 'idle_transaction_timeout',
    meaning: 'in place of timeouts.idleTransactionTimeout',
    reload: 'now',
    pgbouncer: zeroForAll,
  }),
  clientIdleTimeout: override(duration('for ever'), {
    name: 'client_idle_timeout',
    meaning: 'in place of timeouts.clientIdleTimeout',
    reload: 'now',
    pgbouncer: { ...clientIdleSide, ...zeroForAll },
  }),
};
