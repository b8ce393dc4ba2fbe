/** The views of `headgate top`: which columns of which SHOW command each has, and where a chosen row leads. */

export interface TopColumn {
  /** Of the SHOW command. */
  readonly from: string;
  readonly title: string;
  readonly kind: 'text' | 'number' | 'micros';
}

export interface TopViewKind {
  readonly key: string;
  readonly title: string;
  readonly command: string;
  readonly columns: readonly TopColumn[];
  /** The column that rows are sorted by at first, the greatest first. */
  readonly sortedBy: string;
  /** The view that a chosen row leads to, and the columns whose values are looked for there. */
  readonly leadsTo?: { readonly view: string; readonly by: readonly string[] };
}

const text = (from: string, title = from): TopColumn => ({ from, title, kind: 'text' });
const number = (from: string, title = from): TopColumn => ({ from, title, kind: 'number' });
const micros = (from: string, title = from): TopColumn => ({ from, title, kind: 'micros' });

export const topViews: readonly TopViewKind[] = [
  {
    key: 'p',
    title: 'pools',
    command: 'POOLS',
    sortedBy: 'cl_waiting',
    columns: [
      ...[text('database'), text('user'), number('cl_active', 'active'), number('cl_waiting', 'waiting')],
      ...[number('sv_active', 'servers'), number('sv_idle', 'idle'), number('sv_login', 'opening')],
      ...[number('maxwait', 'maxwait_s'), text('pool_mode', 'mode')],
    ],
    leadsTo: { view: 'a', by: ['database', 'user'] },
  },
  {
    key: 'u',
    title: 'queries',
    command: 'QUERY_STATS',
    sortedBy: 'total_time',
    columns: [
      ...[number('calls'), number('errors'), number('rows'), micros('total_time', 'total')],
      ...[micros('mean_time', 'mean'), micros('p99_time', 'p99'), micros('wait_time', 'waited')],
      ...[text('database'), text('user'), text('query')],
    ],
    leadsTo: { view: 'a', by: ['query'] },
  },
  {
    key: 'a',
    title: 'running',
    command: 'ACTIVE_QUERIES',
    sortedBy: 'time',
    columns: [
      ...[micros('time'), text('state'), number('client'), number('remote_pid', 'pid')],
      ...[text('database'), text('user'), text('application_name', 'application'), text('query')],
    ],
  },
  {
    key: 'c',
    title: 'clients',
    command: 'CLIENTS',
    sortedBy: 'wait',
    columns: [
      ...[
        text('database'),
        text('user'),
        text('state'),
        text('addr'),
        number('port'),
        number('wait', 'wait_s'),
      ],
      ...[text('application_name', 'application'), text('connect_time', 'connected')],
    ],
  },
  {
    key: 's',
    title: 'shares',
    command: 'SHARES',
    sortedBy: 'demand',
    columns: [
      ...[
        text('budget'),
        text('user'),
        number('capacity'),
        number('demand'),
        number('share'),
        number('held'),
      ],
      ...[number('recalled'), number('wait_ms')],
    ],
    leadsTo: { view: 'p', by: ['user'] },
  },
];
