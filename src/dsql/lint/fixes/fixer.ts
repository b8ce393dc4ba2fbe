/** Types of fixers: a problem of a statement in, where it is and how to fix it out. */

import type { ColumnDef } from 'libpg-query';
import type { Problem } from '../../../dialect/examiner.js';
import { quoteName } from '../../../sql/quote.js';
import type { Edit } from '../mapped-text.js';
import type { Fix } from '../rule.js';
import type { SchemaModel } from '../schema-model.js';
import { constraintsOf, type StatementView } from '../statement-view.js';
import type { Range } from '../tokens.js';

export interface Case {
  readonly view: StatementView;
  readonly problem: Problem;
  readonly model: SchemaModel;
}

/** Undefined where it has to be done by hand. */
export type Fixer = (found: Case) => Fix | undefined;

export function safe(edits: Edit | readonly Edit[], loses?: string): Fix {
  return { level: 'safe', edits: [edits].flat(), loses };
}

export function unsafe(loses: string, edits: Edit | readonly Edit[]): Fix {
  return { level: 'unsafe', edits: [edits].flat(), loses };
}

/** The column that a problem is about: itself, its type, or the one that holds the constraint. */
export function columnOf({ view, problem }: Case): ColumnDef | undefined {
  const { about } = problem;
  const columns = columnsOf(view);
  return columns.find(
    (column) =>
      column === about ||
      column.typeName === about ||
      constraintsOf(column).some(
        (constraint) =>
          constraint === about ||
          (constraint.location !== undefined &&
            constraint.location === (about as { location?: number } | undefined)?.location),
      ) ||
      (about as { def?: { ColumnDef?: ColumnDef } } | undefined)?.def?.ColumnDef === column,
  );
}

/** Columns that a statement defines. */
export function columnsOf(view: StatementView): ColumnDef[] {
  const elements = (view.body('CreateStmt')?.tableElts ?? []) as { ColumnDef?: ColumnDef }[];
  const commands = (view.body('AlterTableStmt')?.cmds ?? []) as {
    AlterTableCmd?: { subtype?: string; def?: { ColumnDef?: ColumnDef } };
  }[];
  const added = commands.filter(({ AlterTableCmd }) => AlterTableCmd?.subtype === 'AT_AddColumn');
  return [
    ...elements.map((element) => element.ColumnDef),
    ...added.map((command) => command.AlterTableCmd?.def?.ColumnDef),
  ].filter((column) => column !== undefined);
}

/** The element of a list of CREATE TABLE or CREATE INDEX, or the command of ALTER TABLE, around a problem; the whole statement otherwise. */
export function partOf(found: Case): Range {
  const { view, problem } = found;
  const whole = { first: 0, last: view.tokens.length - 1 };
  const { about } = problem;
  const column = columnOf(found);
  if (column) return view.columnRange(column) ?? whole;
  const command = (view.body('AlterTableStmt')?.cmds ?? []).findIndex((node) => isBody(node, about));
  if (command >= 0) return view.alterTable().commands[command] ?? whole;
  const element = (view.body('CreateStmt')?.tableElts ?? []).findIndex((node) => isBody(node, about));
  if (element >= 0) return view.tableItems()[element] ?? whole;
  const key = (view.body('IndexStmt')?.indexParams ?? []).findIndex((node) => isBody(node, about));
  if (key >= 0) return indexKeys(view)[key] ?? whole;
  return whole;
}

function isBody(node: object, about: unknown): boolean {
  return Object.values(node)[0] === about;
}

/** Keys of CREATE INDEX: the list behind the table and its method. */
export function indexKeys(view: StatementView): Range[] {
  const table = view.tokenAt(view.body('IndexStmt')?.relation?.location);
  return view.listAt(view.tokens.findIndex(({ word }, index) => index > table && word === '('));
}

const longestName = 63;

/** As PostgreSQL names a constraint: table, columns, kind and a number where the name is taken, in 63 bytes. */
export function constraintName({ view, model }: Case, parts: readonly string[], kind: string): string {
  for (let number = 0; ; number++) {
    const end = `_${kind}${number === 0 ? '' : number}`;
    let head = parts.join('_');
    while (Buffer.byteLength(head + end) > longestName) head = head.slice(0, -1);
    const name = head + end;
    if (model.generatedNames.has(name) || view.text.includes(name)) continue;
    model.generatedNames.add(name);
    return quoteName(name);
  }
}
