/** Options: addresses for clients, and settings of every connection. */
import { ciphers, tls13Ciphers } from './cipher-kinds.js';
import { boolean, duration, integer, list, oneOf, text } from './kinds.js';
import { boundAtStart, type OptionDetails, option } from './option.js';
import { largestPeerId, noPeers, peersKind } from './peers.js';
import { fileMode, path, tlsProtocols } from './special-kinds.js';
import { type WorkerCount, workerCount } from './worker-count.js';

const isWindows = process.platform === 'win32';

export const listenOptions = {
  addresses: option(list, Object.freeze(['127.0.0.1']), {
    name: 'listen_addr',
    meaning:
      'addresses or names to listen on; * for all, none for Unix sockets only. One that this machine does not have is warned of and left out, if there is another',
    ...boundAtStart,
    pgbouncer: {
      difference:
        'the pooler does not start if one is in use, or if this machine has none of them; PgBouncer goes on with what is left',
      differsFor: () => false,
      otherDefault: { ini: '', why: 'a client on this machine can connect without a configuration' },
    },
  }),
  port: option(integer({ min: 0, max: 65_535 }), 6432, {
    name: 'listen_port',
    meaning: 'port, also in the name of the Unix socket; 0 for any that is free',
    ...boundAtStart,
    pgbouncer: {},
  }),
  backlog: option(integer({ min: 1, max: 65_535 }), 4_096, {
    name: 'listen_backlog',
    meaning:
      'connections that wait to be accepted, up to the limit of the system; a client that connects while that queue is full tries again a second later',
    ...boundAtStart,
    pgbouncer: {
      difference: 'without it 4096 in place of 128, for clients that come all at once',
      differsFor: () => false,
    },
  }),
  reusePort: option(boolean, false, {
    name: 'so_reuseport',
    meaning:
      'several processes may listen on the same port; needs Node 22.12 or newer, or on Linux the optional package koffi',
    ...boundAtStart,
    pgbouncer: {},
  }),
  peerId: option(integer({ min: 0, max: largestPeerId, zero: 'it has no peers' }), 0, {
    name: 'peer_id',
    meaning:
      'number of this pooler among those that share an address: it is in the keys that its clients cancel with',
    reload: 'restart',
    whyRestart: 'clients have keys with it',
    pgbouncer: {},
  }),
  peers: option(peersKind, noPeers, {
    name: 'peers',
    meaning:
      'the others, by their numbers, each with an address that leads to it alone: cancel requests with a key of theirs are passed on',
    reload: 'now',
  }),
  workers: option<WorkerCount>(workerCount, 1, {
    name: 'workers',
    meaning: 'processes that serve clients and share all limits; auto for one per core',
    reload: 'restart',
    whyRestart: 'processes are started at the start',
  }),
  priority: option(integer({ min: -20, max: 19, zero: 'as it was started' }), 0, {
    name: 'process_priority',
    meaning: 'scheduling priority of its processes: from -20, the highest, to 19',
    reload: 'restart',
    whyRestart: 'processes are started at the start',
  }),
};

export const unixSocketOptions = {
  dir: option(text, isWindows ? undefined : '/tmp', {
    name: 'unix_socket_dir',
    meaning: 'folder of the Unix socket; @ at the beginning for an abstract one',
    ...boundAtStart,
    pgbouncer: {},
    defaultText: '/tmp, on Windows none',
  }),
  mode: option(fileMode, 0o777, {
    name: 'unix_socket_mode',
    meaning: 'file mode of the Unix socket',
    ...boundAtStart,
    pgbouncer: {},
  }),
  group: option(text, undefined, {
    name: 'unix_socket_group',
    meaning: 'group that the Unix socket is given to: its name or its number',
    ...boundAtStart,
    pgbouncer: {},
  }),
};

const needsKoffi = 'on Linux with the optional package koffi';

export const tcpOptions = {
  keepAlive: option(boolean, true, {
    name: 'tcp_keepalive',
    meaning: 'the system checks whether the other side of a silent connection is still there',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  keepAliveIdle: option(duration('of the system'), 0, {
    name: 'tcp_keepidle',
    meaning: 'how long a connection is silent before the first check',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  keepAliveInterval: option(duration('of the system'), 0, {
    name: 'tcp_keepintvl',
    meaning: `how long it waits for an answer before the next check; ${needsKoffi}`,
    reload: 'new-clients',
    pgbouncer: {},
  }),
  keepAliveCount: option(integer({ min: 0, max: 127, zero: 'as the system has it' }), 0, {
    name: 'tcp_keepcnt',
    meaning: `checks without an answer after which the connection is closed; ${needsKoffi}`,
    reload: 'new-clients',
    pgbouncer: {},
  }),
  userTimeout: option(integer({ min: 0, zero: 'as the system has it' }), 0, {
    name: 'tcp_user_timeout',
    meaning: `milliseconds that the other side may leave data without an acknowledgement; ${needsKoffi}`,
    reload: 'new-clients',
    pgbouncer: {},
  }),
  socketBuffer: option(integer({ min: 0, max: 1_073_741_823, zero: 'as the system has it' }), 0, {
    name: 'tcp_socket_buffer',
    meaning: `bytes that the system keeps of a connection, in each direction (for receiving, only more than it would by itself); ${needsKoffi}`,
    reload: 'new-clients',
    pgbouncer: {},
  }),
};

const modes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

/** PgBouncer's words for the default ciphers, in all its versions. */
const usualCiphers = ['default', 'secure', 'fast', 'normal'];

const ciphersDetails = {
  meaning: 'ciphers up to TLS 1.2, as OpenSSL writes them',
  pgbouncer: { toData: (value: string) => (usualCiphers.includes(value) ? undefined : value) },
  defaultText: 'those of Node',
};

const tls13Details = {
  meaning: 'ciphers of TLS 1.3, between colons',
  pgbouncer: {},
  defaultText: 'those of Node',
};

function clientTls(name: string, details: Omit<OptionDetails, 'name' | 'reload'>): OptionDetails {
  return { ...details, name: `client_${name}`, reload: 'new-clients' };
}

function serverTls(name: string, details: Omit<OptionDetails, 'name' | 'reload'>): OptionDetails {
  return { ...details, name: `server_${name}`, reload: 'other-servers' };
}

export const clientTlsOptions = {
  mode: option(
    oneOf(...modes),
    'disable',
    clientTls('tls_sslmode', {
      meaning:
        'TLS with clients: disable, allow or prefer (if they want it), require, verify-ca or verify-full (with a certificate of theirs)',
      pgbouncer: {},
    }),
  ),
  keyFile: option(path, undefined, clientTls('tls_key_file', { meaning: 'our private key', pgbouncer: {} })),
  certFile: option(
    path,
    undefined,
    clientTls('tls_cert_file', {
      meaning: 'our certificate, and those between it and the root',
      pgbouncer: {},
    }),
  ),
  caFile: option(
    path,
    undefined,
    clientTls('tls_ca_file', { meaning: 'roots that certificates of clients must come from', pgbouncer: {} }),
  ),
  protocols: option(
    tlsProtocols,
    { min: 'TLSv1.2', max: 'TLSv1.3' },
    clientTls('tls_protocols', { meaning: 'versions of TLS: secure, all, or a list', pgbouncer: {} }),
  ),
  ciphers: option(ciphers, undefined, clientTls('tls_ciphers', ciphersDetails)),
  tls13Ciphers: option(tls13Ciphers, undefined, clientTls('tls13_ciphers', tls13Details)),
  ecdhCurve: option(
    text,
    'auto',
    clientTls('tls_ecdhcurve', {
      meaning: 'curves for the exchange of keys, between colons',
      pgbouncer: {
        difference: 'none is the same as auto: curves can not be switched off',
        differsFor: (value) => value === 'none',
        toData: (value) => (value === 'none' ? 'auto' : value),
      },
    }),
  ),
  dheParams: option(
    oneOf('auto', 'none'),
    'auto',
    clientTls('tls_dheparams', {
      meaning:
        'exchange of keys by finite fields, for clients without curves: auto, in a group as strong as the certificate, or none',
      pgbouncer: {
        difference: 'legacy is the same as auto: 1024 bits are not enough any more',
        differsFor: (value) => value === 'legacy',
        toData: (value) => (value === 'legacy' ? 'auto' : value),
      },
    }),
  ),
};

export const serverTlsOptions = {
  mode: option(
    oneOf(...modes),
    'prefer',
    serverTls('tls_sslmode', {
      meaning:
        'TLS with servers: disable, allow or prefer (if they have it), require, verify-ca (with a certificate), verify-full (for the name, too)',
      pgbouncer: {},
    }),
  ),
  caFile: option(
    path,
    undefined,
    serverTls('tls_ca_file', {
      meaning: 'roots that certificates of servers must come from; with require, too, if it is given',
      pgbouncer: {
        difference:
          'left out unless server_tls_sslmode is verify-ca or verify-full: PgBouncer looks at certificates only then, and here require does, too, as libpq has it',
        differsFor: () => false,
        isUnused: ({ mode }) => mode !== 'verify-ca' && mode !== 'verify-full',
      },
      defaultText: 'those of Node',
    }),
  ),
  keyFile: option(path, undefined, serverTls('tls_key_file', { meaning: 'our private key', pgbouncer: {} })),
  certFile: option(
    path,
    undefined,
    serverTls('tls_cert_file', { meaning: 'our certificate, for servers that ask for one', pgbouncer: {} }),
  ),
  protocols: option(
    tlsProtocols,
    { min: 'TLSv1.2', max: 'TLSv1.3' },
    serverTls('tls_protocols', { meaning: 'versions of TLS: secure, all, or a list', pgbouncer: {} }),
  ),
  ciphers: option(ciphers, undefined, serverTls('tls_ciphers', ciphersDetails)),
  tls13Ciphers: option(tls13Ciphers, undefined, serverTls('tls13_ciphers', tls13Details)),
  negotiation: option(
    oneOf('postgres', 'direct'),
    'postgres',
    serverTls('tls_negotiation', {
      meaning:
        'direct saves a round trip, with PostgreSQL 17 or newer and Aurora DSQL; needs mode require or more',
    }),
  ),
};
