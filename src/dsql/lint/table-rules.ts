/** Rules about the tables of a whole script, as they are at its end. */
import { bodiesOf } from '../../dialect/parse-tree.js';
import { readType } from '../../dialect/type-names.js';
import { uuidFix } from './fixes/columns.js';
import type { RawFinding } from './rule.js';
import type { SchemaModel } from './schema-model.js';

export function* inspectTables(model: SchemaModel): Generator<RawFinding> {
  yield* missingKeys(model);
  yield* references(model);
}

function* missingKeys(model: SchemaModel): Generator<RawFinding> {
  for (const { view, definition, primaryKey } of model.tables.values()) {
    const hasOtherColumns = definition.inhRelations ?? definition.ofTypename ?? definition.partbound;
    const isCopy = bodiesOf(definition.tableElts, 'TableLikeClause').length > 0;
    if (primaryKey.size > 0 || hasOtherColumns !== undefined || isCopy) continue;
    const at = view.tokenAt(definition.relation?.location);
    const place = at < 0 ? view.piece : view.placeOf({ first: at, last: at });
    const message = `table ${view.nameAt(at)} has no primary key`;
    const { start, end } = place;
    yield {
      rule: 'no-primary-key',
      start,
      end,
      statement: view.piece.start,
      message,
      code: undefined,
      fix: undefined,
    };
  }
}

/** Columns that are compared with a key that is, or becomes, a uuid. Names tell. */
function* references(model: SchemaModel): Generator<RawFinding> {
  const keys = new Set<string>();
  for (const { columns, primaryKey } of model.tables.values())
    for (const name of primaryKey) {
      const type = columns.get(name)?.column.typeName;
      if (type && /^(?:bytea|uuid)$/.test(readType(type).internal)) keys.add(name);
    }
  for (const { columns, primaryKey } of model.tables.values())
    for (const [name, { view, column }] of columns) {
      if (!keys.has(name) || primaryKey.has(name)) continue;
      const range = view.typeRange(column);
      if (
        range === undefined ||
        column.typeName === undefined ||
        readType(column.typeName).internal !== 'bytea'
      )
        continue;
      yield {
        rule: 'bytea-reference',
        ...view.placeOf(range),
        statement: view.piece.start,
        message: `${name} is bytea here, and a uuid where it is a key`,
        code: undefined,
        fix: uuidFix(view, range),
      };
    }
}
