/** SHOW CLIENTS, SERVERS, SOCKETS, ACTIVE_SOCKETS and FDS: a row for each connection. */
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

/** A connection of either kind, as it is shown. */
interface Connection {
  readonly record: ClientRecord | ServerRecord;
  readonly type: 'C' | 'S';
  readonly user: string;
  readonly database: string;
  readonly state: string;
  readonly waitedMs: number;
  readonly isCloseNeeded: boolean;
  /** The other end's connection. */
  readonly link: string;
  readonly processId: number;
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

/** Places in PgBouncer's buffers, which are not made in this way here: all that is known is how much is in them. */
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

export const servers: Show = showEach(columns, (view) =>
  view.servers().map((server) => serverShown(server, server.state)),
);

export const sockets: Show = showEach(socketColumns, socketsOf);

export const activeSockets: Show = showEach(socketColumns, (view) =>
  socketsOf(view).filter(({ record }) => record.heldBytes > 0 || record.ends.unsent > 0),
);

/** PgBouncer's words for the states there; those with cancel requests are not among them. */
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
  return { record, type: 'C', user, database, state, waitedMs, link, isCloseNeeded: false, processId: 0 };
}

function serverShown(record: ServerRecord, state: string): Connection {
  const { user, database, isCloseNeeded, clientId, processId } = record;
  const link = clientId === undefined ? '' : pointer('C', clientId);
  return { record, type: 'S', user, database, state, waitedMs: 0, link, isCloseNeeded, processId };
}

/** Stands for PgBouncer's address in memory: different for each connection, and the same wherever that one is meant. */
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

/** The numbers of files are not known here, and keys and passwords are nobody's business. */
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
