/** State of `headgate top`, and the effects of keys on it. No I/O. */
import type { ConsoleRow } from './console-client.js';
import { type TopViewKind, topViews } from './top-views.js';

export interface TopState {
  readonly view: TopViewKind;
  readonly sortedBy: string;
  readonly isAscending: boolean;
  readonly filter: string;
  /** A filter is being typed. */
  readonly isTyping: boolean;
  readonly chosen: number;
  /** The first row on the screen. */
  readonly firstRow: number;
  /** The keys are shown in place of the table, until one is pressed. */
  readonly showsKeys: boolean;
  readonly isOver: boolean;
}

/** The table at the moment of a key. */
export interface ShownTable {
  readonly rows: readonly ConsoleRow[];
  /** Rows that fit on the screen. */
  readonly room: number;
}

/** One line for each key, with its effect. */
export function keyLines(): readonly string[] {
  const keys = [
    ...topViews.map(({ key, title }): [string, string] => [key, title]),
    ['up, down', 'choose a row; PageUp, PageDown, Home, End go further'],
    ['Enter', 'look into the chosen pool, query or share'],
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
    ...{ filter: '', isTyping: false, chosen: 0, firstRow: 0, showsKeys: false, isOver: false },
  };
}

/** `key`: a character, or the name of a key as `node:readline` has it, such as `pageup`; `ctrl-c`. */
export function pressKey(state: TopState, key: string, table: ShownTable): TopState {
  if (key === 'ctrl-c' && !state.isTyping) return { ...state, isOver: true };
  if (state.isTyping) return typed(state, key);
  if (state.showsKeys && key !== 'q') return { ...state, showsKeys: false };
  const chosen = chosenOf(state, key, table);
  if (chosen !== undefined) return { ...state, chosen };
  switch (key) {
    case 'q':
      return { ...state, isOver: true };
    case '?':
      return { ...state, showsKeys: true };
    case '/':
      return { ...state, isTyping: true };
    case 'escape':
      return { ...state, filter: '', chosen: 0 };
    case 'r':
      return { ...state, isAscending: !state.isAscending };
    case '>':
    case '<':
      return { ...state, sortedBy: nextColumn(state, key === '>' ? 1 : -1) };
    case 'return':
    case 'enter':
      return drillDown(state, table.rows[Math.min(state.chosen, table.rows.length - 1)]);
    default: {
      const view = topViews.find((known) => known.key === key);
      return view === undefined ? state : firstState(view);
    }
  }
}

/** Scrolls as little as brings the chosen row onto the screen, and no further than to the last row. */
export function scrollToChosen(state: TopState, { rows, room }: ShownTable): TopState {
  const last = Math.max(0, rows.length - 1);
  const chosen = Math.min(state.chosen, last);
  const lowest = Math.max(0, chosen - room + 1);
  const highest = Math.max(0, Math.min(chosen, rows.length - room));
  return { ...state, chosen, firstRow: Math.max(lowest, Math.min(state.firstRow, highest)) };
}

/** The row that a key leads to; undefined where the key is another. */
function chosenOf({ chosen }: TopState, key: string, { rows, room }: ShownTable): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    ...{ up: -1, down: 1, pageup: -room, pagedown: room },
    ...{ home: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY },
  };
  const step = steps[key];
  if (step === undefined) return undefined;
  const last = Math.max(0, rows.length - 1);
  return Math.max(0, Math.min(last, Math.min(chosen, last) + step));
}

function typed(state: TopState, key: string): TopState {
  if (key === 'return' || key === 'enter') return { ...state, isTyping: false };
  if (key === 'escape' || key === 'ctrl-c') return { ...state, isTyping: false, filter: '', chosen: 0 };
  if (key === 'backspace')
    return { ...state, filter: Array.from(state.filter).slice(0, -1).join(''), chosen: 0 };
  return /^[^\p{Cc}]$/u.test(key) ? { ...state, filter: state.filter + key, chosen: 0 } : state;
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
