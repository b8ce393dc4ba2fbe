/** The rule of a refusal, by DSQL's message and the parse node. */
import type { AlterTableCmd, Node } from 'libpg-query';
import type { Problem } from '../../dialect/examiner.js';
import { bodyOf, kindOf } from '../../dialect/parse-tree.js';
import type { RuleId } from './rules.js';

/** Tried in this order. */
const byMessage: readonly (readonly [message: RegExp, rule: RuleId])[] = [
  [/^stack depth limit exceeded|^invalid byte sequence/, 'nested-too-deep'],
  [/^unsupported transaction statement: .*PREPARED?/, 'prepared-transaction'],
  [/^unsupported transaction statement/, 'savepoint'],
  [/^Unsupported isolation level/, 'isolation-level'],
  [/^setting configuration parameter "(?:TRANSACTION|SESSION CHARACTERISTICS)"/, 'set-transaction'],
  [/^setting configuration parameter|^unrecognized configuration parameter/, 'session-parameter'],
  [/^unsupported statement: AlterRoleSet|^unsupported statement: AlterDatabaseSet/, 'session-parameter'],
  [/^function set_config /, 'set-config'],
  [/^function \w+ not supported/, 'unsupported-function'],
  [/^text search configuration/, 'text-search'],
  [/^unsupported statement: Truncate/, 'truncate'],
  [/^unsupported statement: (?:Create|Alter)Extension/, 'extension'],
  [/^unsupported statement: (?:Createdb|Dropdb|AlterDatabase)/, 'database'],
  [
    /TABLESPACE not supported|unsupported statement: (?:Create|Drop|Alter)TableSpace|SET TABLESPACE statement/,
    'tablespace',
  ],
  [/^storage parameters not supported|^unsupported ALTER TABLE (?:RE)?SET statement/, 'storage-parameters'],
  [/^unsupported statement: .*(?:Foreign|Fdw|UserMapping)/, 'foreign-data'],
  [/^unsupported statement: RefreshMatView/, 'materialized-view'],
  [
    /^CREATE TRIGGER|EventTrig|(?:ENABLE|DISABLE).* (?:TRIGGER|RULE) statement|^unsupported statement: Rule/,
    'trigger',
  ],
  [/^unsupported statement: (?:Create|Alter)Policy|ROW LEVEL SECURITY statement/, 'row-level-security'],
  [/^unsupported statement: Do$/, 'do-block'],
  [/^CREATE FUNCTION with language/, 'function-language'],
  [/^PROCEDURE is not supported/, 'procedure'],
  [/^unsupported statement type: MERGE/, 'merge'],
  [
    /^unsupported (?:VACUUM|ANALYZE) statement|^unsupported statement: (?:Reindex|Cluster|CheckPoint|Load)$/,
    'maintenance',
  ],
  [/^unsupported statement: (?:Listen|Notify|Unlisten)/, 'listen-notify'],
  [/^unsupported statement: Lock/, 'lock-table'],
  [/^unsupported statement: (?:Prepare|Execute|Deallocate|Discard)/, 'prepared-statement'],
  [/^unsupported statement: (?:DeclareCursor|Fetch|ClosePortal)/, 'cursor'],
  [/^COPY (?:FROM|TO) (?:file|PROGRAM)/, 'copy-file'],
  [/^TEMPORARY or TEMP|^ON COMMIT/, 'temporary-object'],
  [/^UNLOGGED/, 'unlogged-object'],
  [/PARTITION/, 'partition'],
  [/^(?:INHERITS|OF type) not supported|(?:INHERIT|NO INHERIT|OF|NOT OF) statement$/, 'inheritance'],
  [/^USING access method|SET ACCESS METHOD statement/, 'access-method'],
  [
    /^COMPRESSION not supported|(?:SET STATISTICS|SET COMPRESSION|REPLICA IDENTITY|CLUSTER ON|SET WITHOUT CLUSTER|SET LOGGED|SET UNLOGGED|ALTER COLUMN \.\.\. (?:RE)?SET) statement$/,
    'table-option',
  ],
  [/^COLLATE clause/, 'collation'],
  [/^EXCLUDE constraint/, 'exclusion-constraint'],
  [/^DEFERRABLE not supported/, 'deferrable-key'],
  [/^FOREIGN KEY constraint/, 'foreign-key'],
  [/^type ".*" does not exist/, 'serial'],
  [/^datatype bytea is not supported in a key/, 'bytea-key'],
  [/^datatype numeric is not supported in a key/, 'numeric-key'],
  [/ is not supported in a key/, 'key-type'],
  [/(?:identity column|sequence) type must be bigint/, 'identity-type'],
  [/without an explicit cache size/, 'identity-cache'],
  [/^identity column is not supported|^unsupported statement: (?:Create|Alter)Seq/, 'identity-column'],
  [/^datatype .*\[\] not supported/, 'array-type'],
  [/^datatype .* not supported/, 'unsupported-type'],
  [/^CREATE TYPE|^ALTER TYPE|^unsupported statement: (?:CompositeType|CreateRange)/, 'user-type'],
  [/^Datatype limit/, 'type-length'],
  [/^NUMERIC (?:precision|scale)/, 'numeric-precision'],
  [/^more than 8 column keys/, 'key-columns'],
  [/^key size greater/, 'key-size'],
  [/at most 255 columns|more than 256 columns|^statistics target|^view definition too large/, 'table-limit'],
  [/^unsupported mode/, 'index-async'],
  [/^CONCURRENTLY/, 'index-concurrently'],
  [/^USING not supported for CREATE INDEX/, 'index-method'],
  [/^specifying sort order/, 'index-sort-order'],
  [/^opclass/, 'index-operator-class'],
  [/^expressions not supported for index/, 'index-expression'],
  [/^WHERE not supported for CREATE INDEX/, 'index-partial'],
  [/^unsupported ALTER INDEX/, 'alter-index'],
  [/^ALTER TABLE ADD COLUMN with constraint/, 'add-column-constraint'],
  [/VALIDATE CONSTRAINT statement/, 'validate-constraint'],
  [/SET DATA TYPE statement/, 'alter-column-type'],
  [/SET NOT NULL statement/, 'set-not-null'],
  [/^unsupported ALTER (?:TABLE|VIEW|SEQUENCE|MATERIALIZED VIEW)/, 'alter-table'],
  [/^unsupported object in/, 'unsupported-object'],
  [/^option .* not supported for CREATE ROLE/, 'role-option'],
  [/^unsupported statement: CreateRole/, 'create-user'],
  [/^locking clauses other/, 'locking-clause'],
  [/^locking clause such as/, 'for-update-rows'],
  [/^TABLESAMPLE/, 'table-sample'],
];

export function classify(node: Node | undefined, { refusal, about }: Problem): RuleId {
  const byNode = node && classifyNode(node, refusal.message, about);
  if (byNode !== undefined) return byNode;
  return byMessage.find(([message]) => message.test(refusal.message))?.[1] ?? 'unsupported-statement';
}

function classifyNode(node: Node, message: string, about: unknown): RuleId | undefined {
  if (message === 'unsupported ALTER TABLE ADD CONSTRAINT statement') return addedConstraint(about);
  if (message === 'unsupported object in RENAME statement' && isIndexRename(node)) return 'alter-index';
  if (message === 'unsupported object in DROP statement') return droppedObject(node);
  if (message === 'unsupported statement: CreateTableAs')
    return isMaterializedView(node) ? 'materialized-view' : 'create-table-as';
  if (kindOf(node) === 'CreateEnumStmt') return 'enum-type';
  if (kindOf(node) === 'RenameStmt' && bodyOf(node, 'RenameStmt')?.renameType === 'OBJECT_TYPE')
    return 'user-type';
  return undefined;
}

function addedConstraint(about: unknown): RuleId {
  const { def } = about as AlterTableCmd;
  switch (bodyOf(def, 'Constraint')?.contype) {
    case 'CONSTR_PRIMARY':
      return 'add-primary-key';
    case 'CONSTR_UNIQUE':
      return 'add-unique';
    case 'CONSTR_CHECK':
      return 'add-check';
    case 'CONSTR_FOREIGN':
      return 'add-foreign-key';
    case 'CONSTR_EXCLUSION':
      return 'exclusion-constraint';
    default:
      return 'alter-table';
  }
}

function isIndexRename(node: Node): boolean {
  return bodyOf(node, 'RenameStmt')?.renameType === 'OBJECT_INDEX';
}

function isMaterializedView(node: Node): boolean {
  return bodyOf(node, 'CreateTableAsStmt')?.objtype === 'OBJECT_MATVIEW';
}

function droppedObject(node: Node): RuleId | undefined {
  switch (bodyOf(node, 'DropStmt')?.removeType) {
    case 'OBJECT_TYPE':
      return 'user-type';
    case 'OBJECT_EXTENSION':
      return 'extension';
    case 'OBJECT_MATVIEW':
      return 'materialized-view';
    case 'OBJECT_TRIGGER':
    case 'OBJECT_RULE':
    case 'OBJECT_EVENT_TRIGGER':
      return 'trigger';
    case 'OBJECT_POLICY':
      return 'row-level-security';
    case 'OBJECT_PROCEDURE':
      return 'procedure';
    default:
      return undefined;
  }
}
