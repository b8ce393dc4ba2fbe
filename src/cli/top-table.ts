/** The table of `headgate top`: rows of a SHOW command, filtered, sorted, and cut to the size of the screen. */
import type { ConsoleRow } from './console-client.js';
import type { TopState } from './top-state.js';
import type { TopColumn } from './top-views.js';

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

/** The titles and the rows as lines; with `size`, as many rows as there is room for, cut to the width. */
export function tableLines(
  state: TopState,
  rows: readonly ConsoleRow[],
  size?: { readonly width: number; readonly room: number },
): string[] {
  const { columns } = state.view;
  const shown = size === undefined ? rows : rows.slice(state.firstRow, state.firstRow + size.room);
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
    return size === undefined ? whole : cutTo(whole, size.width);
  };
  const titles = columns.map(({ from, title }) =>
    from === state.sortedBy ? `${title}${state.isAscending ? '^' : 'v'}` : title,
  );
  return [line(titles), ...cells.map(line)];
}

/** At most `width` characters, and no half of one. */
export function cutTo(text: string, width: number): string {
  return text.slice(0, width).replace(/[\uD800-\uDBFF]$/, '');
}

/** Without characters that a terminal obeys, or that turn the direction of what follows. */
function cellOf({ from, kind }: TopColumn, row: ConsoleRow): string {
  const value = (row[from] ?? '').replace(/[\p{Cc}\p{Cf}]+/gu, ' ');
  return kind === 'micros' && value !== '' ? timeText(Number(value)) : value;
}

export function timeText(microseconds: number): string {
  if (!(microseconds >= 1_000)) return `${Math.round(microseconds)}us`;
  if (microseconds < 1_000_000) return `${(microseconds / 1_000).toFixed(1)}ms`;
  if (microseconds < 60_000_000) return `${(microseconds / 1_000_000).toFixed(1)}s`;
  return `${Math.floor(microseconds / 60_000_000)}m${String(Math.floor(microseconds / 1_000_000) % 60).padStart(2, '0')}s`;
}
