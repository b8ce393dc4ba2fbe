/** SHOW CLIENTS, SERVERS, SOCKETS, ACTIVE_SOCKETS and FDS: one row per connection. */
import type { ClientRecord, ListeningRecord, PoolerView, ServerRecord } from './pooler-view.js';
import {
  empty,
  type FilledColumn,
  int4,
  restMicros,
  type Show,
  showEach,
  text,
  timeText,
  wholeSeconds,
} from './show.js';

/** A client or server connection for display. */
interface Connection {
  readonly record: ClientRecord | ServerRecord;
  readonly type: 'C' | 'S';
  readonly user: string;
  readonly database: string;
  readonly state: string;
  readonly waitedMs: number;
  readonly isCloseNeeded: boolean;
  /** Pointer to the connection on the other side. */
  readonly link: string;
  readonly processId: number;
  /** Clients whose statements were sent behind that of the linked one. */
  readonly followers: string;
}

const columns: readonly FilledColumn<Connection>[] = [
  text('type', ({ type }) => type),
  text('user', ({ user }) => user),
  text('database', ({ database }) => database),
  text('replication', ({ record }) => record.replication),
  text('state', ({ state }) => state),
  text('addr', ({ record }) => record.ends.remoteAddress),
  int4('port', ({ record }) => record.ends.remotePort),
  text('local_addr', ({ record }) => record.ends.localAddress),
  int4('local_port', ({ record }) => record.ends.localPort),
  text('connect_time', ({ record }) => timeText(record.connectedAt)),
  text('request_time', ({ record }) => timeText(record.requestedAt)),
  int4('wait', ({ waitedMs }) => wholeSeconds(waitedMs)),
  int4('wait_us', ({ waitedMs }) => restMicros(waitedMs)),
  int4('close_needed', ({ isCloseNeeded }) => Number(isCloseNeeded)),
  text('ptr', ({ type, record }) => pointer(type, record.id)),
  text('link', ({ link }) => link),
  int4('remote_pid', ({ processId }) => processId),
  text('tls', ({ record }) => tlsText(record)),
  text('application_name', ({ record }) => record.applicationName),
  int4('prepared_statements', ({ record }) => record.preparedStatements),
  int4('id', ({ record }) => record.id),
];

/** Positions in PgBouncer's buffers, which have no counterpart here: only the number of bytes is known. */
const socketColumns: readonly FilledColumn<Connection>[] = [
  ...columns,
  int4('recv_pos', () => 0),
  int4('pkt_pos', () => 0),
  int4('pkt_remain', () => 0),
  int4('send_pos', () => 0),
  int4('send_remain', () => 0),
  int4('pkt_avail', ({ record }) => record.heldBytes),
  int4('send_avail', ({ record }) => record.ends.unsent),
];

export const clients: Show = showEach(columns, (view) =>
  view
    .clients()
    .filter(({ state }) => state !== 'login')
    .map((client) => clientShown(client, client.state)),
);

export const servers: Show = showEach<Connection>(
  [...columns, text('followers', ({ followers }) => followers)],
  (view) => view.servers().map((server) => serverShown(server, server.state)),
);

export const sockets: Show = showEach(socketColumns, socketsOf);

export const activeSockets: Show = showEach(socketColumns, (view) =>
  socketsOf(view).filter(({ record }) => record.heldBytes > 0 || record.ends.unsent > 0),
);

/** PgBouncer's names of the states; clients with cancel requests are left out. */
const clientSocketStates: Readonly<Partial<Record<ClientRecord['state'], string>>> = {
  active: 'cl_active',
  idle: 'cl_active',
  waiting: 'cl_waiting',
  login: 'cl_login',
};

const serverSocketStates: Readonly<Partial<Record<ServerRecord['state'], string>>> = {
  active: 'sv_active',
  idle: 'sv_idle',
  used: 'sv_used',
  tested: 'sv_tested',
  new: 'sv_login',
};

function socketsOf(view: PoolerView): Connection[] {
  return [
    ...view.clients().map((client) => clientShown(client, clientSocketStates[client.state] ?? '')),
    ...view.servers().map((server) => serverShown(server, serverSocketStates[server.state] ?? '')),
  ].filter(({ state }) => state !== '');
}

function clientShown(record: ClientRecord, state: string): Connection {
  const { user = '(nouser)', database = '(nodb)', waitedMs, serverId } = record;
  const link = serverId === undefined ? '' : pointer('S', serverId);
  const server = { isCloseNeeded: false, processId: 0, followers: '' };
  return { record, type: 'C', user, database, state, waitedMs, link, ...server };
}

function serverShown(record: ServerRecord, state: string): Connection {
  const { user, database, isCloseNeeded, clientId, processId } = record;
  const link = clientId === undefined ? '' : pointer('C', clientId);
  const followers = record.followerIds.map((id) => pointer('C', id)).join(' ');
  return { record, type: 'S', user, database, state, waitedMs: 0, link, isCloseNeeded, processId, followers };
}

/** Stands for PgBouncer's memory address: unique per connection, and the same wherever that connection is meant. */
function pointer(type: 'C' | 'S', id: number): string {
  return `0x${type === 'C' ? 'c' : '5'}${id.toString(16).padStart(8, '0')}`;
}

function tlsText({ ends: { tls } }: Connection['record']): string {
  return tls === undefined ? '' : `${tls.version}/${tls.cipher}`;
}

interface Socket {
  readonly task: 'pooler' | 'client' | 'server';
  readonly user: string | undefined;
  readonly database: string | undefined;
  readonly address: string;
  readonly port: number;
}

/** File descriptors are not known here, and keys and passwords are not shown. */
export const fds: Show = showEach<Socket>(
  [
    empty('fd', 'int4'),
    text('task', ({ task }) => task),
    text('user', ({ user }) => user),
    text('database', ({ database }) => database),
    text('addr', ({ address }) => address),
    int4('port', ({ port }) => port),
    empty('cancel', 'int8'),
    empty('link', 'int4'),
    empty('client_encoding', 'text'),
    empty('std_strings', 'text'),
    empty('datestyle', 'text'),
    empty('timezone', 'text'),
    empty('password', 'text'),
    empty('scram_client_key', 'bytea'),
    empty('scram_server_key', 'bytea'),
  ],
  (view) => [
    ...view.listening().map(listeningSocket),
    ...view.clients().map((client) => connectedSocket('client', client)),
    ...view.servers().map((server) => connectedSocket('server', server)),
  ],
);

function listeningSocket({ address, port }: ListeningRecord): Socket {
  return { task: 'pooler', user: undefined, database: undefined, address, port };
}

function connectedSocket(task: 'client' | 'server', record: ClientRecord | ServerRecord): Socket {
  const { user, database, ends } = record;
  return { task, user, database, address: ends.remoteAddress, port: ends.remotePort };
}
