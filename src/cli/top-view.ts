/** Screens of `headgate top`: views over SHOW commands, sorted, filtered and cut to the size of the screen. Nothing is read or written here. */
import type { ConsoleRow } from './console-client.js';

export interface TopColumn {
  /** Column of the SHOW command. */
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

export interface TopState {
  readonly view: TopViewKind;
  readonly sortedBy: string;
  readonly isAscending: boolean;
  readonly filter: string;
  /** A filter is being typed. */
  readonly isTyping: boolean;
  readonly chosen: number;
  /** The keys are shown in place of the table, until one is pressed. */
  readonly showsKeys: boolean;
  readonly isOver: boolean;
}

/** One line for each key, with its effect. */
export function keyLines(): readonly string[] {
  const keys = [
    ...topViews.map(({ key, title }): [string, string] => [key, title]),
    ['up, down', 'choose a row'],
    ['Enter', 'look into the chosen row'],
    ['<, >', 'choose the column to sort by'],
    ['r', 'turn the order around'],
    ['/', 'show only rows with some words'],
    ['Esc', 'show all rows again'],
    ['?', 'show these keys'],
    ['q', 'end'],
  ];
  return keys.map(([key = '', meaning]) => `${key.padEnd(9)} ${meaning}`);
}

export function firstState(view: TopViewKind = topViews[0] as TopViewKind): TopState {
  return {
    ...{ view, sortedBy: view.sortedBy, isAscending: false },
    ...{ filter: '', isTyping: false, chosen: 0, showsKeys: false, isOver: false },
  };
}

/** `rows`: what is shown, of which one is chosen. */
export function pressKey(state: TopState, key: string, rows: readonly ConsoleRow[]): TopState {
  if (state.isTyping) return typed(state, key);
  if (state.showsKeys && key !== 'q' && key !== '\x03') return { ...state, showsKeys: false };
  const last = Math.max(0, rows.length - 1);
  switch (key) {
    case 'q':
    case '\x03':
      return { ...state, isOver: true };
    case '?':
      return { ...state, showsKeys: true };
    case '/':
      return { ...state, isTyping: true };
    case '\x1b':
      return { ...state, filter: '', chosen: 0 };
    case '\x1b[A':
      return { ...state, chosen: Math.max(0, Math.min(state.chosen, last) - 1) };
    case '\x1b[B':
      return { ...state, chosen: Math.min(last, state.chosen + 1) };
    case 'r':
      return { ...state, isAscending: !state.isAscending };
    case '>':
    case '<':
      return { ...state, sortedBy: nextColumn(state, key === '>' ? 1 : -1) };
    case '\r':
    case '\n':
      return drillDown(state, rows[Math.min(state.chosen, last)]);
    default: {
      const view = topViews.find((known) => known.key === key);
      return view === undefined ? state : firstState(view);
    }
  }
}

function typed(state: TopState, key: string): TopState {
  if (key === '\r' || key === '\n') return { ...state, isTyping: false };
  if (key === '\x1b' || key === '\x03') return { ...state, isTyping: false, filter: '' };
  if (key === '\x7f' || key === '\b') return { ...state, filter: state.filter.slice(0, -1), chosen: 0 };
  return /^[\x20-\x7e]+$/.test(key) ? { ...state, filter: state.filter + key, chosen: 0 } : state;
}

function nextColumn({ view, sortedBy }: TopState, step: number): string {
  const names = view.columns.map(({ from }) => from);
  const at = names.indexOf(sortedBy) + step;
  return names[(at + names.length) % names.length] as string;
}

function drillDown(state: TopState, row: ConsoleRow | undefined): TopState {
  const { leadsTo } = state.view;
  const view = topViews.find(({ key }) => key === leadsTo?.view);
  if (row === undefined || leadsTo === undefined || view === undefined) return state;
  return { ...firstState(view), filter: leadsTo.by.map((name) => row[name] ?? '').join(' ') };
}

/** Every word of the filter is somewhere in the row; and in the order that is wanted. */
export function rowsToShow(state: TopState, rows: readonly ConsoleRow[]): readonly ConsoleRow[] {
  const { view, sortedBy, isAscending } = state;
  const words = state.filter.toLowerCase().split(' ').filter(Boolean);
  const found = rows.filter((row) => {
    const all = view.columns
      .map(({ from }) => row[from] ?? '')
      .join(' ')
      .toLowerCase();
    return words.every((word) => all.includes(word));
  });
  const isNumber = view.columns.find(({ from }) => from === sortedBy)?.kind !== 'text';
  const sign = isAscending ? 1 : -1;
  return [...found].sort((a, b) => {
    const [one, other] = [a[sortedBy] ?? '', b[sortedBy] ?? ''];
    return sign * (isNumber ? Number(one) - Number(other) : one < other ? -1 : Number(one > other));
  });
}

/** The table as lines; cut to `width` columns where that is given. */
export function tableLines(
  state: TopState,
  rows: readonly ConsoleRow[],
  size?: { readonly width: number; readonly height: number },
): string[] {
  const { columns } = state.view;
  const shown = size === undefined ? rows : rows.slice(0, Math.max(0, size.height - 1));
  const cells = shown.map((row) => columns.map((column) => cellOf(column, row)));
  const widths = columns.map(({ title }, at) =>
    Math.max(title.length + 1, ...cells.map((row) => (row[at] as string).length)),
  );
  const line = (texts: readonly string[]): string => {
    const padded = texts.map((cell, at) => {
      const isText = columns[at]?.kind === 'text';
      return isText ? cell.padEnd(widths[at] as number) : cell.padStart(widths[at] as number);
    });
    const whole = padded.join('  ').trimEnd();
    return size === undefined ? whole : whole.slice(0, size.width);
  };
  const titles = columns.map(({ from, title }) =>
    from === state.sortedBy ? `${title}${state.isAscending ? '^' : 'v'}` : title,
  );
  return [line(titles), ...cells.map(line)];
}

/** Nothing that a terminal would take for an order. */
function cellOf({ from, kind }: TopColumn, row: ConsoleRow): string {
  const value = (row[from] ?? '').replace(/\p{Cc}+/gu, ' ');
  return kind === 'micros' && value !== '' ? timeText(Number(value)) : value;
}

export function timeText(microseconds: number): string {
  if (!(microseconds >= 1_000)) return `${Math.round(microseconds)}us`;
  if (microseconds < 1_000_000) return `${(microseconds / 1_000).toFixed(1)}ms`;
  if (microseconds < 60_000_000) return `${(microseconds / 1_000_000).toFixed(1)}s`;
  return `${Math.floor(microseconds / 60_000_000)}m${String(Math.floor(microseconds / 1_000_000) % 60).padStart(2, '0')}s`;
}
