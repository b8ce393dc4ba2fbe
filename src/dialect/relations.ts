/** Relations that a statement names, and where their schemas stand in its text. */
import type { Node, ObjectType } from 'libpg-query';
import type { RelationUse, SchemaMention } from './judgement.js';
import { bodyOf, namesOf } from './parse-tree.js';
import type { StatementText } from './statement-text.js';
import type { Survey } from './survey.js';

/** A schema by the byte offset of the first name. */
interface Found {
  readonly location: number;
  readonly schema: string;
  readonly relation: string;
  /** Names before the schema: a database. */
  readonly before: number;
}

export function relationsOf(node: Node, survey: Survey): RelationUse[] {
  const ranges = [...survey.relations].sort((a, b) => (a.location ?? 0) - (b.location ?? 0));
  const uses = ranges.map((range) => ({
    schema: range.schemaname,
    name: range.relname ?? '',
    isChanged: survey.targets.has(range) || survey.locked.has(range),
  }));
  return [...uses, ...objectsOf(node)];
}

const relationTypes: ReadonlySet<ObjectType | undefined> = new Set<ObjectType>([
  'OBJECT_TABLE',
  'OBJECT_VIEW',
  'OBJECT_SEQUENCE',
  'OBJECT_INDEX',
]);

/** DROP and COMMENT name relations in plain lists. */
function objectsOf(node: Node): RelationUse[] {
  const drop = bodyOf(node, 'DropStmt');
  const comment = bodyOf(node, 'CommentStmt');
  const type = drop?.removeType ?? comment?.objtype;
  if (!relationTypes.has(type)) return [];
  const lists = drop?.objects ?? (comment?.object ? [comment.object] : []);
  return lists.map((list) => {
    const names = namesOf(bodyOf(list, 'List')?.items);
    return { schema: names.at(-2), name: names.at(-1) ?? '', isChanged: false };
  });
}

export function mentionsOf(
  survey: Survey,
  text: StatementText,
  indexOf: (byte: number) => number,
): SchemaMention[] {
  const found: Found[] = [];
  for (const { schemaname, relname = '', catalogname, location } of survey.relations)
    if (schemaname !== undefined && location !== undefined)
      found.push({
        location,
        schema: schemaname,
        relation: relname,
        before: catalogname === undefined ? 0 : 1,
      });
  for (const { fields, location } of survey.qualifiedColumns) {
    const names = namesOf(fields);
    // `schema.table.*` has a star, which is no name, in the last place.
    const isDatabase = (fields?.length ?? 0) > 3;
    const [schema, relation] = isDatabase ? [names[1], names[2]] : names;
    if (schema !== undefined && relation !== undefined && location !== undefined)
      found.push({ location, schema, relation, before: isDatabase ? 1 : 0 });
  }
  found.sort((a, b) => a.location - b.location);
  return found.map(({ location, schema, relation, before }) => {
    const tokens = text.tokensFrom(location);
    tokens.next();
    // A name, a dot.
    for (let step = 0; step < before * 2; step++) tokens.next();
    return { schema, relation, start: indexOf(tokens.start), end: indexOf(tokens.end) };
  });
}
