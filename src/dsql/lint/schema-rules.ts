/** Rules that need the tables of the script: keys of indexes, foreign keys, owners, limits. */
import type { Constraint, RangeVar, TypeName } from 'libpg-query';
import { declaredKeyBytes, judgeKeyType } from '../../dialect/column-types.js';
import { mostKeyBytes } from '../../dialect/constraints.js';
import { equalColumns } from '../../dialect/expressions.js';
import { bodiesOf, bodyOf, namesOf } from '../../dialect/parse-tree.js';
import type { RuleContext } from '../../dialect/rule.js';
import { rangesOf } from '../../dialect/survey.js';
import { readType } from '../../dialect/type-names.js';
import { isExtensionType, uuidFix } from './fixes/columns.js';
import { columnsOf, indexKeys } from './fixes/fixer.js';
import type { Fix, RawFinding } from './rule.js';
import type { KnownTable, SchemaModel } from './schema-model.js';
import { constraintsOf, type StatementView } from './statement-view.js';
import { endOfName, type Range } from './tokens.js';

const mostIndexes = 24;
const mostTables = 1000;
const mostSchemas = 10;

type Found = Pick<RawFinding, 'rule' | 'message'> & {
  readonly code?: string | undefined;
  readonly fix?: Fix | undefined;
  readonly range?: Range | undefined;
};

export function* inspectSchema(view: StatementView, model: SchemaModel): Generator<RawFinding> {
  for (const { range, ...found } of rulesOf(view, model)) {
    const place = range === undefined ? view.piece : view.placeOf(range);
    yield {
      code: undefined,
      fix: undefined,
      ...found,
      start: place.start,
      end: place.end,
      statement: view.piece.start,
    };
  }
}

function* rulesOf(view: StatementView, model: SchemaModel): Generator<Found> {
  yield* indexRules(view, model);
  yield* commandRules(view, model);
  yield* foreignKeyRules(view, model);
  yield* lockRules(view, model);
  for (const column of columnsOf(view)) {
    if (!isExtensionType(column.typeName)) continue;
    yield extensionType(view, column.typeName, view.typeRange(column));
  }
  const domain = view.body('CreateDomainStmt')?.typeName;
  const first = isExtensionType(domain) ? view.tokenAt(domain?.location) : -1;
  if (first >= 0) yield extensionType(view, domain, { first, last: endOfName(view.tokens, first) });
  yield* functionRules(view);
  yield* ownerRules(view, model);
  const index = view.body('IndexStmt');
  if (model.isView(index?.relation))
    yield {
      rule: 'materialized-view',
      message: `cannot create index on relation "${index?.relation?.relname}"`,
      code: '42809',
      fix: { level: 'unsafe', edits: [view.withoutAll()], loses: 'the index: a view has none' },
    };
  const comment = view.body('CommentStmt');
  if (comment?.objtype === 'OBJECT_EXTENSION')
    yield {
      rule: 'extension',
      message: 'extension does not exist',
      code: '42704',
      fix: { level: 'unsafe', edits: [view.withoutAll()], loses: 'the comment on the extension' },
    };
  const isWrite = view.body('UpdateStmt') ?? view.body('DeleteStmt');
  if (isWrite && isWrite.whereClause === undefined)
    yield { rule: 'write-without-where', message: 'changes every row of the table in one transaction' };
  if (view.body('CreateStmt') && model.tables.size === mostTables)
    yield {
      rule: 'table-limit',
      message: `creating more than ${mostTables} tables not allowed`,
      code: '54000',
    };
  if (view.body('CreateSchemaStmt') && model.schemas.size === mostSchemas)
    yield { rule: 'table-limit', message: `more than ${mostSchemas} schemas not allowed`, code: '54000' };
}

function extensionType(view: StatementView, type: TypeName | undefined, range: Range | undefined): Found {
  const message = `type "${namesOf(type?.names).at(-1)}" does not exist`;
  const loses = 'the type of the extension: values are compared as text';
  const fix: Fix | undefined = range && { level: 'unsafe', edits: [view.replace(range, 'text')], loses };
  return { rule: 'extension-type', message, code: '42704', range, fix };
}

function* indexRules(view: StatementView, model: SchemaModel): Generator<Found> {
  const index = view.body('IndexStmt');
  const table = model.table(index?.relation);
  if (index === undefined || table === undefined) return;
  const ranges = indexKeys(view);
  let bytes = 0;
  for (const [at, key] of bodiesOf(index.indexParams, 'IndexElem').entries()) {
    const type = table.columns.get(key.name ?? '')?.column.typeName;
    if (type === undefined) continue;
    bytes += declaredKeyBytes(type);
    yield* keyRules(view, table, key.name ?? '', type, ranges[at]);
  }
  if (bytes > mostKeyBytes)
    yield {
      rule: 'key-size',
      message: `key size greater than ${mostKeyBytes} bytes not supported`,
      code: '54000',
    };
  if (table.indexes >= mostIndexes)
    yield {
      rule: 'table-limit',
      message: `more than ${mostIndexes} indexes per table are not allowed`,
      code: '54000',
    };
}

function* keyRules(
  view: StatementView,
  table: KnownTable,
  name: string,
  type: TypeName,
  range: Range | undefined,
): Generator<Found> {
  const refusal = judgeKeyType(type, { profile: view.profile } as RuleContext);
  if (refusal === undefined) return;
  const { internal } = readType(type);
  const defined = table.columns.get(name);
  const place = defined?.view.typeRange(defined.column);
  const isBytea = internal === 'bytea';
  const rule = isBytea ? 'bytea-key' : internal === 'numeric' ? 'numeric-key' : 'key-type';
  const fix = isBytea && defined && place ? uuidFix(defined.view, place) : undefined;
  yield { rule, message: refusal.message, code: refusal.code, range, fix };
}

function* commandRules(view: StatementView, model: SchemaModel): Generator<Found> {
  const alter = view.body('AlterTableStmt');
  const table = model.table(alter?.relation);
  if (table === undefined) return;
  for (const command of bodiesOf(alter?.cmds, 'AlterTableCmd')) {
    const { subtype, name = '' } = command;
    const range = view.commandRange(command);
    if (subtype === 'AT_DropColumn' && table.primaryKey.has(name))
      yield {
        rule: 'primary-key-column',
        message: `cannot drop primary key column ${name}`,
        code: '0A000',
        range,
      };
    const added = subtype === 'AT_AddIdentity' ? table.columns.get(name) : undefined;
    const named = added?.column.typeName && readType(added.column.typeName);
    if (added === undefined || named === undefined || named.internal === 'int8') continue;
    const type = added.view.typeRange(added.column);
    const loses = 'the column is now a bigint, which some drivers return as text';
    yield {
      rule: 'identity-type',
      message: `datatype ${named.canonical} not supported, identity column type must be bigint`,
      code: '0A000',
      range,
      fix: type && {
        level: 'safe',
        edits: [added.view.replace(type, added.view.like(type.first, 'bigint'))],
        loses,
      },
    };
  }
}

/** Keys of the statement: the columns that refer, and the constraint. */
function foreignKeys(
  view: StatementView,
): { columns: string[]; constraint: Constraint; relation: RangeVar | undefined }[] {
  const table = view.body('CreateStmt');
  const alter = view.body('AlterTableStmt');
  const relation = table?.relation ?? alter?.relation;
  const ofTable = [
    ...bodiesOf(table?.tableElts, 'Constraint'),
    ...bodiesOf(alter?.cmds, 'AlterTableCmd').map(({ def }) => bodyOf(def, 'Constraint')),
  ].filter((constraint) => constraint?.contype === 'CONSTR_FOREIGN') as Constraint[];
  const ofColumns = columnsOf(view).flatMap((column) =>
    constraintsOf(column)
      .filter(({ contype }) => contype === 'CONSTR_FOREIGN')
      .map((constraint) => ({ columns: [column.colname ?? ''], constraint, relation })),
  );
  return [
    ...ofTable.map((constraint) => ({ columns: namesOf(constraint.fk_attrs), constraint, relation })),
    ...ofColumns,
  ];
}

function* foreignKeyRules(view: StatementView, model: SchemaModel): Generator<Found> {
  for (const { columns, constraint, relation } of foreignKeys(view)) {
    const target = model.table(constraint.pktable);
    const named = namesOf(constraint.pk_attrs);
    const keys = named.length > 0 ? named : [...(target?.primaryKey ?? [])];
    const own = columnsOf(view);
    for (const [at, name] of columns.entries()) {
      const known = model.table(relation)?.columns.get(name);
      const local = own.find(({ colname }) => colname === name);
      const [place, column] = local ? [view, local] : [known?.view, known?.column];
      const isBytea = column?.typeName && readType(column.typeName).internal === 'bytea';
      if (!isBytea || place === undefined || model.typeOf(constraint.pktable, keys[at] ?? '') !== 'uuid')
        continue;
      const type = place.typeRange(column);
      const message = `foreign key column ${name} is bytea, and ${keys[at]} is uuid`;
      const fix = type && uuidFix(place, type);
      yield {
        rule: 'foreign-key-type',
        message,
        code: '42804',
        fix,
        range: place === view ? type : undefined,
      };
    }
  }
}

/** Before FOR UPDATE locked any rows: an equality for each column of the primary key, where the table is known. */
function* lockRules(view: StatementView, model: SchemaModel): Generator<Found> {
  if (view.profile.accepts('FOR UPDATE on any rows')) return;
  for (const { select } of view.examined.survey?.locks ?? []) {
    const [range, ...others] = rangesOf(select);
    const table = model.table(range);
    const equal = equalColumns(select.whereClause);
    if (table === undefined || others.length > 0 || equal.length === 0) continue;
    if (table.primaryKey.size > 0 && [...table.primaryKey].every((column) => equal.includes(column)))
      continue;
    const message =
      'locking clause such as FOR UPDATE can be applied only on tables with equality predicates on the key';
    yield { rule: 'for-update-rows', message, code: '0A000' };
  }
}

function* functionRules(view: StatementView): Generator<Found> {
  for (const { funcname, location } of view.examined.survey?.functions ?? []) {
    const name = namesOf(funcname).at(-1);
    const first = view.tokenAt(location);
    if (name === undefined || !/^uuid_generate_v\d/.test(name) || first < 0) continue;
    const range = { first, last: endOfName(view.tokens, first) };
    const message = `function ${name}() does not exist`;
    const edits = [view.replace(range, 'gen_random_uuid')];
    const fix: Fix | undefined = name === 'uuid_generate_v4' ? { level: 'safe', edits } : undefined;
    yield { rule: 'extension-function', message, code: '42883', range, fix };
  }
}

const currentRoles: ReadonlySet<string | undefined> = new Set([
  'ROLESPEC_CURRENT_USER',
  'ROLESPEC_CURRENT_ROLE',
  'ROLESPEC_SESSION_USER',
]);

function* ownerRules(view: StatementView, model: SchemaModel): Generator<Found> {
  const owner = view.body('AlterOwnerStmt')?.newowner;
  const owners = bodiesOf(view.body('AlterTableStmt')?.cmds, 'AlterTableCmd')
    .filter(({ subtype }) => subtype === 'AT_ChangeOwner')
    .map(({ newowner }) => newowner);
  for (const role of owner === undefined ? owners : [owner]) {
    const name = role?.rolename ?? '';
    if (currentRoles.has(role?.roletype) || name === 'admin' || model.roles.has(name)) continue;
    const fix: Fix = { level: 'convert', edits: [view.withoutAll()], loses: `the owner ${name}` };
    yield { rule: 'owner-change', message: `role "${name}" is not created in this file`, code: '42704', fix };
  }
}
