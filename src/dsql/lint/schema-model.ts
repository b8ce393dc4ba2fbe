/** Tables, schemas and roles that the statements up to here create. */
import type { ColumnDef, Constraint, CreateStmt, RangeVar } from 'libpg-query';
import { bodiesOf, bodyOf, namesOf } from '../../dialect/parse-tree.js';
import { readType } from '../../dialect/type-names.js';
import { constraintsOf, type StatementView } from './statement-view.js';

export interface KnownTable {
  readonly view: StatementView;
  readonly definition: CreateStmt;
  readonly columns: Map<string, { readonly view: StatementView; readonly column: ColumnDef }>;
  readonly primaryKey: Set<string>;
  indexes: number;
  /** Constraints or columns were dropped, so that its definition no longer tells what it has. */
  isReduced: boolean;
  /** An identity that INSERT sets only with OVERRIDING SYSTEM VALUE. */
  isAlwaysGenerated: boolean;
}

const defaultSchema = 'public';

function tableKey({ schemaname = defaultSchema, relname = '' }: RangeVar): string {
  return `${schemaname}.${relname}`;
}

export class SchemaModel {
  readonly tables = new Map<string, KnownTable>();
  readonly roles = new Set<string>();
  readonly schemas = new Set<string>();
  /** Names that fixes of this round gave. */
  readonly generatedNames = new Set<string>();
  readonly #views = new Set<string>();

  table(relation: RangeVar | undefined): KnownTable | undefined {
    return relation && this.tables.get(tableKey(relation));
  }

  isView(relation: RangeVar | undefined): boolean {
    return relation !== undefined && this.#views.has(tableKey(relation));
  }

  typeOf(relation: RangeVar | undefined, column: string): string | undefined {
    const type = this.table(relation)?.columns.get(column)?.column.typeName;
    return type && readType(type).internal;
  }

  /** Takes in what a statement does. */
  add(view: StatementView): void {
    const table = view.body('CreateStmt');
    if (table?.relation) this.#addTable(table, table.relation, view);
    const made = view.body('ViewStmt')?.view ?? materialized(view);
    if (made) this.#views.add(tableKey(made));
    const index = view.body('IndexStmt');
    const indexed = this.table(index?.relation);
    if (indexed) indexed.indexes++;
    const alter = view.body('AlterTableStmt');
    const altered = this.table(alter?.relation);
    for (const { def, subtype } of altered ? bodiesOf(alter?.cmds, 'AlterTableCmd') : []) {
      if (altered) altered.isReduced ||= subtype === 'AT_DropConstraint' || subtype === 'AT_DropColumn';
      const column = bodyOf(def, 'ColumnDef');
      if (altered && column?.colname && column.typeName)
        altered.columns.set(column.colname, { view, column });
      const constraint = bodyOf(def, 'Constraint');
      if (altered && constraint) noteKey(altered, constraint, undefined);
    }
    const drop = view.body('DropStmt');
    for (const object of drop?.removeType === 'OBJECT_TABLE' ? (drop.objects ?? []) : []) {
      const [name = '', schema = defaultSchema] = namesOf(bodyOf(object, 'List')?.items).reverse();
      this.tables.delete(`${schema}.${name}`);
    }
    const renamed = view.body('RenameStmt')?.relation ?? view.body('AlterObjectSchemaStmt')?.relation;
    if (renamed) this.tables.delete(tableKey(renamed));
    const role = view.body('CreateRoleStmt')?.role;
    if (role !== undefined) this.roles.add(role);
    const schema = view.body('CreateSchemaStmt')?.schemaname;
    if (schema !== undefined) this.schemas.add(schema);
  }

  #addTable(definition: CreateStmt, relation: RangeVar, view: StatementView): void {
    const table: KnownTable = {
      view,
      definition,
      columns: new Map(),
      primaryKey: new Set(),
      indexes: 0,
      isReduced: false,
      isAlwaysGenerated: false,
    };
    for (const column of bodiesOf(definition.tableElts, 'ColumnDef')) {
      if (column.colname === undefined) continue;
      table.columns.set(column.colname, { view, column });
      for (const constraint of constraintsOf(column)) noteKey(table, constraint, column.colname);
    }
    for (const constraint of bodiesOf(definition.tableElts, 'Constraint'))
      noteKey(table, constraint, undefined);
    this.tables.set(tableKey(relation), table);
  }
}

function noteKey(table: KnownTable, constraint: Constraint, column: string | undefined): void {
  if (constraint.contype === 'CONSTR_IDENTITY') table.isAlwaysGenerated ||= constraint.generated_when === 'a';
  const isPrimary = constraint.contype === 'CONSTR_PRIMARY';
  if (isPrimary || constraint.contype === 'CONSTR_UNIQUE') table.indexes++;
  if (isPrimary)
    for (const key of column === undefined ? namesOf(constraint.keys) : [column]) table.primaryKey.add(key);
}

function materialized(view: StatementView): RangeVar | undefined {
  const statement = view.body('CreateTableAsStmt');
  return statement?.objtype === 'OBJECT_MATVIEW' ? statement.into?.rel : undefined;
}
