/** A SHOW command as data: its columns, what each is filled with, and where the rows come from. */
import type { PoolerView } from './pooler-view.js';
import type { ColumnType, ResultColumn, Value } from './result-values.js';

export interface Show {
  readonly columns: readonly ResultColumn[];
  rows(view: PoolerView): readonly (readonly Value[])[];
}

/** A column and what it is filled with. */
export interface FilledColumn<Item> extends ResultColumn {
  readonly fill: (item: Item) => Value | undefined;
}

/** A row for each item. */
export function showEach<Item>(
  columns: readonly FilledColumn<Item>[],
  items: (view: PoolerView) => readonly Item[],
): Show {
  return {
    columns: columns.map(({ name, type }) => ({ name, type })),
    rows: (view) => items(view).map((item) => columns.map(({ fill }) => fill(item) ?? null)),
  };
}

/** Columns, and never a row: what PgBouncer has and Headgate has not. */
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

/** A column that is never filled. */
export function empty(name: string, type: ColumnType): FilledColumn<unknown> {
  return { name, type, fill: () => null };
}

/** A point in time, in PgBouncer's way to write it; the zone is always UTC. */
export function timeText(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** A time in two columns: whole seconds, and the microseconds besides. */
export function wholeSeconds(milliseconds: number): number {
  return Math.floor(Math.round(milliseconds * 1_000) / 1_000_000);
}

export function restMicros(milliseconds: number): number {
  return Math.round(milliseconds * 1_000) % 1_000_000;
}
