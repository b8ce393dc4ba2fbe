/** DROP, RENAME, OWNER TO and SET SCHEMA, by the kind of object. */
import type { AlterObjectSchemaStmt, AlterOwnerStmt, DropStmt, ObjectType, RenameStmt } from 'libpg-query';
import type { Feature } from './profile.js';
import { unsupported } from './refusal.js';
import type { Rule, RuleContext } from './rule.js';

type Accepted = Readonly<Partial<Record<ObjectType, Feature | 'always'>>>;

const droppable: Accepted = {
  OBJECT_TABLE: 'always',
  OBJECT_VIEW: 'always',
  OBJECT_INDEX: 'always',
  OBJECT_SCHEMA: 'always',
  OBJECT_DOMAIN: 'always',
  OBJECT_FUNCTION: 'always',
  OBJECT_ROUTINE: 'ALTER ROUTINE',
  OBJECT_SEQUENCE: 'identity columns and sequences',
  OBJECT_STATISTIC_EXT: 'extended statistics',
};

const renamable: Accepted = {
  OBJECT_TABLE: 'always',
  OBJECT_COLUMN: 'always',
  OBJECT_VIEW: 'always',
  OBJECT_SCHEMA: 'always',
  OBJECT_DOMAIN: 'always',
  OBJECT_DOMCONSTRAINT: 'always',
  OBJECT_TABCONSTRAINT: 'always',
  OBJECT_FUNCTION: 'always',
  OBJECT_ROUTINE: 'ALTER ROUTINE',
  OBJECT_ROLE: 'ALTER ROLE RENAME',
  OBJECT_SEQUENCE: 'identity columns and sequences',
  OBJECT_STATISTIC_EXT: 'extended statistics',
};

const ownable: Accepted = {
  OBJECT_SCHEMA: 'always',
  OBJECT_DOMAIN: 'always',
  OBJECT_FUNCTION: 'always',
  OBJECT_ROUTINE: 'ALTER ROUTINE',
  OBJECT_STATISTIC_EXT: 'extended statistics',
};

const movable: Accepted = {
  OBJECT_TABLE: 'always',
  OBJECT_VIEW: 'always',
  OBJECT_DOMAIN: 'always',
  OBJECT_FUNCTION: 'always',
  OBJECT_ROUTINE: 'ALTER ROUTINE',
  OBJECT_SEQUENCE: 'identity columns and sequences',
  OBJECT_STATISTIC_EXT: 'extended statistics',
};

function isAccepted(type: ObjectType | undefined, accepted: Accepted, { profile }: RuleContext): boolean {
  const since = type && accepted[type];
  return since !== undefined && (since === 'always' || profile.accepts(since));
}

export const judgeDrop: Rule<DropStmt> = (statement, context) => {
  if (!isAccepted(statement.removeType, droppable, context))
    return unsupported('unsupported object in DROP statement');
  return statement.concurrent ? unsupported('CONCURRENTLY not supported for DROP INDEX') : undefined;
};

export const judgeRename: Rule<RenameStmt> = (statement, context) =>
  isAccepted(statement.renameType, renamable, context)
    ? undefined
    : unsupported('unsupported object in RENAME statement');

export const judgeOwner: Rule<AlterOwnerStmt> = (statement, context) => {
  if (isAccepted(statement.objectType, ownable, context)) return undefined;
  return statement.objectType === 'OBJECT_TYPE'
    ? unsupported('ALTER TYPE not supported')
    : unsupported('unsupported object in OWNER TO statement');
};

export const judgeSetSchema: Rule<AlterObjectSchemaStmt> = (statement, context) => {
  if (isAccepted(statement.objectType, movable, context)) return undefined;
  return statement.objectType === 'OBJECT_TYPE'
    ? unsupported('ALTER TYPE not supported')
    : unsupported('unsupported object in SET SCHEMA statement');
};
