/** Lists of clients and server connections for the page. Searched and paged here, since there may be ten thousand of them. */
import type { ListAnswer, ListColumn, ListRequest } from '../../dashboard/source.js';
import type { ClientRecord, PoolerView, ServerRecord } from '../console/pooler-view.js';

type Cell = string | number | null;

interface FilledColumn<Record> extends ListColumn {
  readonly fill: (record: Record) => Cell;
}

const clientColumns: readonly FilledColumn<ClientRecord>[] = [
  column('id', 'Client', 'number', ({ id }) => id),
  column('user', 'User', 'text', ({ user = null }) => user),
  column('database', 'Database', 'text', ({ database = null }) => database),
  column('state', 'State', 'text', ({ state }) => state),
  column('wait', 'Waits', 'ms', ({ waitedMs }) => Math.round(waitedMs)),
  column('pin', 'Pinned by', 'text', ({ pin }) => pin?.reason ?? null),
  column('server', 'Server', 'number', ({ serverId = null }) => serverId),
  column('application', 'Application', 'text', ({ applicationName }) => applicationName),
  column('address', 'Address', 'text', ({ ends }) => addressOf(ends)),
  column('since', 'Connected', 'time', ({ connectedAt }) => Math.round(connectedAt)),
];

const serverColumns: readonly FilledColumn<ServerRecord>[] = [
  column('id', 'Server', 'number', ({ id }) => id),
  column('user', 'User', 'text', ({ user }) => user),
  column('database', 'Database', 'text', ({ database }) => database),
  column('state', 'State', 'text', ({ state }) => state),
  column('client', 'Client', 'number', ({ clientId = null }) => clientId),
  column('pid', 'Process', 'number', ({ processId }) => processId),
  column('statements', 'Statements', 'number', ({ preparedStatements }) => preparedStatements),
  column('closing', 'Closes on return', 'text', ({ isCloseNeeded }) => (isCloseNeeded ? 'yes' : null)),
  column('address', 'Address', 'text', ({ ends }) => addressOf(ends)),
  column('since', 'Connected', 'time', ({ connectedAt }) => Math.round(connectedAt)),
];

function column<Record>(
  name: string,
  title: string,
  kind: ListColumn['kind'],
  fill: FilledColumn<Record>['fill'],
): FilledColumn<Record> {
  return { name, title, kind, fill };
}

function addressOf({ remoteAddress, remotePort }: ClientRecord['ends']): string {
  return remotePort === 0 ? remoteAddress : `${remoteAddress}:${remotePort}`;
}

export function listConnections(view: PoolerView, request: ListRequest): ListAnswer {
  return request.what === 'clients'
    ? answerOf(clientColumns, view.clients(), request)
    : answerOf(serverColumns, view.servers(), request);
}

function answerOf<Record>(
  columns: readonly FilledColumn<Record>[],
  records: readonly Record[],
  { search, offset, limit }: ListRequest,
): ListAnswer {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rowOf = (record: Record): Cell[] => columns.map(({ fill }) => fill(record));
  const matching =
    words.length === 0
      ? records
      : records.filter((record) => {
          const text = rowOf(record).join(' ').toLowerCase();
          return words.every((word) => text.includes(word));
        });
  return {
    columns: columns.map(({ name, title, kind }) => ({ name, title, kind })),
    rows: matching.slice(offset, offset + limit).map(rowOf),
    matching: matching.length,
    total: records.length,
  };
}
