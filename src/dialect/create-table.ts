/** CREATE TABLE: its variants, columns and constraints. */
import type { CollateClause, ColumnDef, Constraint, CreateStmt, TypeName } from 'libpg-query';
import { judgeColumnType } from './column-types.js';
import { type ColumnTypes, judgeConstraint } from './constraints.js';
import type { Refusal } from './judgement.js';
import { bodiesOf } from './parse-tree.js';
import { refuse, unsupported } from './refusal.js';
import { firstRefusal, type Rule, type RuleContext } from './rule.js';

/** 255 are documented; a cluster takes one more. */
const mostColumns = 256;

/** Variants of CREATE TABLE, refused with `<clause> not supported for CREATE TABLE`, in this order. */
const refusedClauses: readonly [clause: string, isUsed: (table: CreateStmt) => boolean][] = [
  ['TEMPORARY or TEMP table', (table) => table.relation?.relpersistence === 't'],
  ['UNLOGGED table', (table) => table.relation?.relpersistence === 'u'],
  ['PARTITION OF', (table) => table.partbound !== undefined],
  // PARTITION OF names its parent in the same place.
  ['INHERITS', (table) => table.inhRelations !== undefined && table.partbound === undefined],
  ['PARTITION BY', (table) => table.partspec !== undefined],
  ['OF type', (table) => table.ofTypename !== undefined],
  ['USING access method', (table) => table.accessMethod !== undefined],
  ['storage parameters', (table) => table.options !== undefined],
  ['ON COMMIT', (table) => (table.oncommit ?? 'ONCOMMIT_NOOP') !== 'ONCOMMIT_NOOP'],
  ['TABLESPACE', (table) => table.tablespacename !== undefined],
];

export const judgeCreateTable: Rule<CreateStmt> = (table, context) => {
  const columns = bodiesOf(table.tableElts, 'ColumnDef');
  const constraints = bodiesOf(table.tableElts, 'Constraint');
  const types = new Map<string, TypeName>();
  for (const { colname, typeName } of columns) if (colname && typeName) types.set(colname, typeName);
  return (
    firstRefusal(refusedClauses, context, ([clause, isUsed]) =>
      isUsed(table) ? unsupported(`${clause} not supported for CREATE TABLE`) : undefined,
    ) ??
    firstRefusal(columns, context, (column) => judgeColumn(column, types, context)) ??
    firstRefusal(constraints, context, (constraint) =>
      judgeConstraint(constraint, undefined, types, context),
    ) ??
    judgeColumnCount(columns, hasPrimaryKey(table))
  );
};

/** The column itself, without its constraints. */
export function judgeColumnDefinition(column: ColumnDef, context: RuleContext): Refusal | undefined {
  if (column.compression) return unsupported('COMPRESSION not supported');
  return (column.typeName && judgeColumnType(column.typeName, context)) ?? judgeCollation(column.collClause);
}

function judgeColumn(column: ColumnDef, types: ColumnTypes, context: RuleContext): Refusal | undefined {
  return (
    judgeColumnDefinition(column, context) ??
    firstRefusal(columnConstraints(column), context, (constraint) =>
      judgeConstraint(constraint, column.colname, types, context),
    )
  );
}

/** DEFERRABLE behind a column's constraint is a node of its own, and is merged into the constraint here. */
function columnConstraints(column: ColumnDef): Constraint[] {
  const constraints: Constraint[] = [];
  for (const constraint of bodiesOf(column.constraints, 'Constraint')) {
    const last = constraints.at(-1);
    if (constraint.contype !== 'CONSTR_ATTR_DEFERRABLE') constraints.push(constraint);
    else if (last !== undefined) constraints.splice(-1, 1, { ...last, deferrable: true });
  }
  return constraints;
}

/** DSQL has one collation, C, and no clause to name it. */
export function judgeCollation(clause: CollateClause | undefined): Refusal | undefined {
  return clause === undefined ? undefined : unsupported('COLLATE clause not supported');
}

function judgeColumnCount(columns: readonly ColumnDef[], hasKey: boolean): Refusal | undefined {
  if (columns.length <= mostColumns) return undefined;
  return refuse(
    '54011',
    hasKey
      ? `cannot use more than ${mostColumns} columns in an index`
      : 'tables can have at most 255 columns',
  );
}

function hasPrimaryKey(table: CreateStmt): boolean {
  const ofColumns = bodiesOf(table.tableElts, 'ColumnDef').flatMap((column) =>
    bodiesOf(column.constraints, 'Constraint'),
  );
  return [...ofColumns, ...bodiesOf(table.tableElts, 'Constraint')].some(
    (constraint) => constraint.contype === 'CONSTR_PRIMARY',
  );
}
