/** A SHOW command as data: its columns, their values, and the source of its rows. */
import type { PoolerView } from './pooler-view.js';
import type { ColumnType, ResultColumn, Value } from './result-values.js';

/** Rows of a result, each made when it is asked for: there may be thousands. */
export interface Rows {
  readonly length: number;
  at(index: number): readonly Value[] | undefined;
}

export interface Show {
  readonly columns: readonly ResultColumn[];
  rows(view: PoolerView): Rows;
}

/** A column and the source of its values. */
export interface FilledColumn<Item> extends ResultColumn {
  readonly fill: (item: Item) => Value | undefined;
}

/** One row per item. */
export function showEach<Item>(
  columns: readonly FilledColumn<Item>[],
  items: (view: PoolerView) => readonly Item[],
): Show {
  return {
    columns: columns.map(({ name, type }) => ({ name, type })),
    rows(view) {
      const list = items(view);
      const { length } = list;
      return { length, at: (index) => columns.map(({ fill }) => fill(list[index] as Item) ?? null) };
    },
  };
}

/** Columns without rows, for features that only PgBouncer has. */
export function showNothing(columns: readonly FilledColumn<never>[]): Show {
  return showEach(columns, () => []);
}

type Fill<Item> = FilledColumn<Item>['fill'];

export function text<Item>(name: string, fill: Fill<Item>): FilledColumn<Item> {
  return { name, type: 'text', fill };
}

export function int4<Item>(name: string, fill: Fill<Item>): FilledColumn<Item> {
  return { name, type: 'int4', fill };
}

export function int8<Item>(name: string, fill: Fill<Item>): FilledColumn<Item> {
  return { name, type: 'int8', fill };
}

export function numeric<Item>(name: string, fill: Fill<Item>): FilledColumn<Item> {
  return { name, type: 'numeric', fill };
}

/** A number with a fraction. */
export function decimal<Item>(name: string, fill: Fill<Item>): FilledColumn<Item> {
  return { name, type: 'decimal', fill };
}

/** A column without values. */
export function empty(name: string, type: ColumnType): FilledColumn<unknown> {
  return { name, type, fill: () => null };
}

/** A point in time in PgBouncer's notation; always UTC. */
export function timeText(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** A duration in two columns: whole seconds, and the remaining microseconds. */
export function wholeSeconds(milliseconds: number): number {
  return Math.floor(Math.round(milliseconds * 1_000) / 1_000_000);
}

export function restMicros(milliseconds: number): number {
  return Math.round(milliseconds * 1_000) % 1_000_000;
}
