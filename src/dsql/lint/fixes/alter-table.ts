/** Fixes of ALTER TABLE: constraints that are moved into CREATE TABLE, or added without being checked at once. */

import type { AlterTableCmd, Constraint } from 'libpg-query';
import { bodyOf, namesOf } from '../../../dialect/parse-tree.js';
import { quoteName } from '../../../sql/quote.js';
import type { Edit } from '../mapped-text.js';
import type { Fix } from '../rule.js';
import { constraintsOf } from '../statement-view.js';
import { findWords, isName, type Range } from '../tokens.js';
import { constraintRange } from './columns.js';
import { type Case, constraintName, type Fixer, safe, unsafe } from './fixer.js';
import { withoutCommand } from './tables.js';

interface AddedConstraint {
  readonly constraint: Constraint;
  /** Tokens of the constraint behind ADD. */
  readonly range: Range;
  readonly table: string;
}

function addedConstraint({ view, problem }: Case): AddedConstraint | undefined {
  const command = problem.about as AlterTableCmd;
  const constraint = bodyOf(command.def, 'Constraint');
  const range = view.commandRange(command);
  if (constraint === undefined || range === undefined) return undefined;
  return {
    constraint,
    range: { first: range.first + 1, last: range.last },
    table: view.alterTable().table,
  };
}

/** Moves the constraint behind the last element of the script's own CREATE TABLE. */
function moveToTable(found: Case): Fix | undefined {
  const { view, model } = found;
  const added = addedConstraint(found);
  const table = model.table(view.body('AlterTableStmt')?.relation);
  if (added === undefined || table === undefined || added.constraint.indexname !== undefined)
    return undefined;
  const last = table.view.tableItems().at(-1);
  const isOwn = [...keysOf(added.constraint)].every((key) => table.columns.get(key)?.view === table.view);
  const isSecondKey = added.constraint.contype === 'CONSTR_PRIMARY' && table.primaryKey.size > 0;
  if (last === undefined || !isOwn || table.isReduced || isSecondKey) return undefined;
  const { start } = table.view.placeOf(last);
  const line = table.view.text.lastIndexOf('\n', start) + 1;
  const indent = /^\s*$/.test(table.view.text.slice(line, start))
    ? view.newline + table.view.text.slice(line, start)
    : ' ';
  const removal = withoutCommand(found);
  const text = view
    .sourceOf(added.range)
    .replace(/\bNOT\s+VALID\s*$/i, '')
    .trimEnd();
  if (removal === undefined) return undefined;
  const edits = [...removal.edits, table.view.after(last.last, `,${indent}${text}`)];
  return table.definition.if_not_exists
    ? unsafe('the constraint, where the table exists already', edits)
    : safe(edits);
}

function keysOf(constraint: Constraint): string[] {
  return [...namesOf(constraint.keys), ...namesOf(constraint.fk_attrs)];
}

export const fixAddPrimaryKey: Fixer = (found) => moveToTable(found);

export const fixAddUnique: Fixer = (found) => {
  const moved = moveToTable(found);
  const added = addedConstraint(found);
  if (moved !== undefined || added === undefined || added.constraint.indexname !== undefined) return moved;
  const { view } = found;
  const open = view.tokens.findIndex(({ word }, index) => index >= added.range.first && word === '(');
  if (open < 0) return undefined;
  const keys = namesOf(added.constraint.keys);
  const relation = view.body('AlterTableStmt')?.relation?.relname ?? '';
  const name = added.constraint.conname
    ? quoteName(added.constraint.conname)
    : constraintName(found, [relation, ...keys], 'key');
  const nulls = added.constraint.nulls_not_distinct ? ' NULLS NOT DISTINCT' : '';
  const index = `CREATE UNIQUE INDEX ASYNC ${name} ON ${added.table} (${keys.map(quoteName).join(', ')})${nulls}`;
  return replaceCommand(
    found,
    [index],
    'the constraint is a unique index: ON CONFLICT ON CONSTRAINT does not find it',
  );
};

/** Statements in place of one command. */
function replaceCommand(found: Case, statements: readonly string[], loses: string): Fix | undefined {
  const { view } = found;
  if ((view.body('AlterTableStmt')?.cmds?.length ?? 0) <= 1)
    return unsafe(loses, view.replaceAll(statements));
  const removal = withoutCommand(found);
  return removal && unsafe(loses, [...removal.edits, ...view.append(statements)]);
}

/** NOT VALID, and a validation in the background. */
function addUnchecked(found: Case, kind: string): Fix | undefined {
  const { view } = found;
  const added = addedConstraint(found);
  if (added === undefined) return undefined;
  const relation = view.body('AlterTableStmt')?.relation?.relname ?? '';
  const edits: Edit[] = [];
  let name = view.nameAt(added.range.first + 1);
  if (added.constraint.conname === undefined) {
    name = constraintName(found, [relation, ...keysOf(added.constraint)], kind);
    edits.push(view.before(added.range.first, `CONSTRAINT ${name} `));
  }
  const isLast = added.range.last === view.tokens.length - 1;
  const validate = `ALTER TABLE ASYNC ${added.table} VALIDATE CONSTRAINT ${name}`;
  const [append] = view.append([validate]);
  const last = { first: added.range.last, last: added.range.last };
  // Not an insertion, which another statement of this round might come before.
  if (isLast) edits.push(view.replace(last, `${view.sourceOf(last)} NOT VALID${append?.text ?? ''}`));
  else edits.push(view.after(added.range.last, ' NOT VALID'), ...(append ? [append] : []));
  return safe(edits);
}

export const fixAddCheck: Fixer = (found) => {
  if (found.view.profile.accepts('CHECK NOT VALID')) return addUnchecked(found, 'check');
  return moveToTable(found) ?? dropCommand(found, 'the CHECK: nothing checks the rows');
};

export const fixAddForeignKey: Fixer = (found) =>
  found.view.profile.accepts('foreign keys')
    ? addUnchecked(found, 'fkey')
    : dropCommand(found, 'the foreign key: nothing keeps rows together');

export const fixAddExclusion: Fixer = (found) =>
  dropCommand(found, 'the exclusion constraint: overlapping rows are accepted');

function dropCommand(found: Case, loses: string): Fix | undefined {
  const removal = withoutCommand(found);
  return removal && unsafe(loses, removal.edits);
}

export const fixValidate: Fixer = ({ view, problem }) => {
  if (!view.profile.accepts('ALTER TABLE ASYNC') || view.body('AlterTableStmt')?.cmds?.length !== 1)
    return undefined;
  return problem.refusal.message.includes('ASYNC')
    ? undefined
    : safe(view.after(1, ` ${view.like(1, 'async')}`));
};

export const fixSetNotNull: Fixer = (found) => {
  const { view, problem } = found;
  if (!view.profile.accepts('CHECK NOT VALID')) return undefined;
  const command = problem.about as AlterTableCmd;
  const relation = view.body('AlterTableStmt')?.relation?.relname ?? '';
  const statements = notNull(found, relation, command.name ?? '');
  return replaceCommand(
    found,
    statements,
    'NOT NULL is a CHECK: the column counts as nullable in the catalog',
  );
};

function notNull(found: Case, relation: string, column: string): string[] {
  const { table } = found.view.alterTable();
  const name = constraintName(found, [relation, column], 'not_null');
  return [
    `ALTER TABLE ${table} ADD CONSTRAINT ${name} CHECK (${quoteName(column)} IS NOT NULL) NOT VALID`,
    `ALTER TABLE ASYNC ${table} VALIDATE CONSTRAINT ${name}`,
  ];
}

/** The column first, then its default and its constraints. */
export const fixAddColumn: Fixer = (found) => {
  const { view, problem } = found;
  const command = problem.about as AlterTableCmd;
  const column = bodyOf(command.def, 'ColumnDef');
  const part = view.commandRange(command);
  const { profile } = view;
  if (column?.colname === undefined || part === undefined) return undefined;
  if (!profile.accepts('CHECK NOT VALID') || !profile.accepts('SET and DROP DEFAULT')) return undefined;
  const { table } = view.alterTable();
  const relation = view.body('AlterTableStmt')?.relation?.relname ?? '';
  const name = quoteName(column.colname);
  const [defaults, others]: [string[], string[]] = [[], []];
  const ranges: Range[] = [];
  for (const constraint of constraintsOf(column)) {
    if (constraint.contype?.startsWith('CONSTR_ATTR_')) continue;
    const range = constraintRange(view, column, constraint.location);
    if (range === undefined) return undefined;
    ranges.push(range);
    const isNamed = constraint.conname !== undefined;
    const text = view.sourceOf({ first: isNamed ? range.first + 2 : range.first, last: range.last });
    const title = (kind: string) =>
      isNamed && isName(view.tokens[range.first + 1])
        ? view.nameAt(range.first + 1)
        : constraintName(found, [relation, column.colname ?? ''], kind);
    const unchecked = (kind: string, body: string) => {
      const given = title(kind);
      others.push(
        `ALTER TABLE ${table} ADD CONSTRAINT ${given} ${body} NOT VALID`,
        `ALTER TABLE ASYNC ${table} VALIDATE CONSTRAINT ${given}`,
      );
    };
    switch (constraint.contype) {
      case 'CONSTR_NULL':
        break;
      case 'CONSTR_NOTNULL':
        others.push(...notNull(found, relation, column.colname));
        break;
      case 'CONSTR_DEFAULT':
        defaults.push(
          `ALTER TABLE ${table} ALTER COLUMN ${name} SET ${text}`,
          `UPDATE ${table} SET ${name} = DEFAULT WHERE ${name} IS NULL`,
        );
        break;
      case 'CONSTR_CHECK':
        unchecked('check', text.replace(/\bNO\s+INHERIT\s*$/i, '').trimEnd());
        break;
      case 'CONSTR_FOREIGN':
        if (!profile.accepts('foreign keys')) return undefined;
        unchecked('fkey', `FOREIGN KEY (${name}) ${text}`);
        break;
      case 'CONSTR_UNIQUE':
        others.push(`CREATE UNIQUE INDEX ASYNC ${title('key')} ON ${table} (${name})`);
        break;
      default:
        return undefined;
    }
  }
  const first = Math.min(...ranges.map((range) => range.first));
  const last = Math.max(...ranges.map((range) => range.last));
  if (findWords(view.tokens, ['COLLATE'], { first, last }) >= 0) return undefined;
  const bare = view.without({ first, last });
  const statements = [...defaults, ...others];
  const isLast = last === view.tokens.length - 1;
  const [append] = view.append(statements);
  const edits = isLast ? [{ ...bare, text: append?.text ?? '' }] : [bare, ...(append ? [append] : [])];
  return unsafe(
    'one UPDATE fills rows that exist, at most 3,000; NOT NULL is a CHECK, UNIQUE an index',
    edits,
  );
};
