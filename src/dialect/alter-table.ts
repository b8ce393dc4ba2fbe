/** ALTER TABLE, subcommand by subcommand. */
import type { AlterTableCmd, AlterTableStmt, AlterTableType, Constraint } from 'libpg-query';
import { Token } from '../sql/tokenizer.js';
import { bigintColumnCheck, finishedIndexCheck, primaryKeyColumnCheck } from './catalog-checks.js';
import { judgeColumnDefinition } from './create-table.js';
import type { Refusal } from './judgement.js';
import { bodiesOf, bodyOf } from './parse-tree.js';
import type { Feature } from './profile.js';
import { unsupported } from './refusal.js';
import { firstRefusal, type Rule, type RuleContext } from './rule.js';
import { judgeIdentity, judgeIdentityChange } from './sequences.js';

interface Subcommand {
  /** As in `unsupported ALTER TABLE <name> statement`. */
  readonly name: string;
  /** Undefined: refused on every day. */
  readonly since: Feature | 'always' | undefined;
}

const column = 'ALTER COLUMN ...';

/** A subcommand that is missing here is refused without a name. */
const subcommands: Readonly<Partial<Record<AlterTableType, Subcommand>>> = {
  AT_AddColumn: { name: 'ADD COLUMN', since: 'always' },
  AT_AddConstraint: { name: 'ADD CONSTRAINT', since: 'always' },
  AT_ChangeOwner: { name: 'OWNER', since: 'always' },
  AT_EnableTrigAll: { name: 'ENABLE TRIGGER', since: 'always' },
  AT_DisableTrigAll: { name: 'DISABLE TRIGGER', since: 'always' },
  AT_EnableTrigUser: { name: 'ENABLE TRIGGER', since: 'always' },
  AT_DisableTrigUser: { name: 'DISABLE TRIGGER', since: 'always' },
  AT_SetIdentity: { name: `${column} SET GENERATED`, since: 'identity columns and sequences' },
  AT_DropIdentity: { name: `${column} DROP IDENTITY`, since: 'identity columns and sequences' },
  AT_ColumnDefault: { name: `${column} SET DEFAULT`, since: 'SET and DROP DEFAULT' },
  AT_DropNotNull: { name: `${column} DROP NOT NULL`, since: 'DROP NOT NULL' },
  AT_DropExpression: { name: `${column} DROP EXPRESSION`, since: 'DROP EXPRESSION' },
  AT_AddIdentity: { name: `${column} ADD GENERATED`, since: 'ADD GENERATED AS IDENTITY' },
  AT_DropConstraint: { name: 'DROP CONSTRAINT', since: 'DROP CONSTRAINT' },
  AT_DropColumn: { name: 'DROP COLUMN', since: 'DROP COLUMN' },
  AT_ValidateConstraint: { name: 'VALIDATE CONSTRAINT', since: 'ALTER TABLE ASYNC' },
  AT_AlterColumnType: { name: `${column} SET DATA TYPE`, since: undefined },
  AT_SetNotNull: { name: `${column} SET NOT NULL`, since: undefined },
  AT_SetStatistics: { name: `${column} SET STATISTICS`, since: undefined },
  AT_SetStorage: { name: `${column} SET STORAGE`, since: 'always' },
  AT_SetCompression: { name: `${column} SET COMPRESSION`, since: undefined },
  AT_SetOptions: { name: `${column} SET`, since: undefined },
  AT_ResetOptions: { name: `${column} RESET`, since: undefined },
  AT_AlterConstraint: { name: 'ALTER CONSTRAINT', since: 'foreign keys' },
  AT_EnableRowSecurity: { name: 'ENABLE ROW LEVEL SECURITY', since: undefined },
  AT_DisableRowSecurity: { name: 'DISABLE ROW LEVEL SECURITY', since: undefined },
  AT_ForceRowSecurity: { name: 'FORCE ROW LEVEL SECURITY', since: undefined },
  AT_NoForceRowSecurity: { name: 'NO FORCE ROW LEVEL SECURITY', since: undefined },
  AT_ReplicaIdentity: { name: 'REPLICA IDENTITY', since: undefined },
  AT_EnableTrig: { name: 'ENABLE TRIGGER', since: undefined },
  AT_DisableTrig: { name: 'DISABLE TRIGGER', since: undefined },
  AT_EnableAlwaysTrig: { name: 'ENABLE ALWAYS TRIGGER', since: undefined },
  AT_EnableReplicaTrig: { name: 'ENABLE REPLICA TRIGGER', since: undefined },
  AT_EnableRule: { name: 'ENABLE RULE', since: undefined },
  AT_DisableRule: { name: 'DISABLE RULE', since: undefined },
  AT_SetRelOptions: { name: 'SET', since: undefined },
  AT_ResetRelOptions: { name: 'RESET', since: undefined },
  AT_SetTableSpace: { name: 'SET TABLESPACE', since: undefined },
  AT_SetLogged: { name: 'SET LOGGED', since: undefined },
  AT_SetUnLogged: { name: 'SET UNLOGGED', since: undefined },
  AT_SetAccessMethod: { name: 'SET ACCESS METHOD', since: undefined },
  AT_ClusterOn: { name: 'CLUSTER ON', since: undefined },
  AT_DropCluster: { name: 'SET WITHOUT CLUSTER', since: undefined },
  AT_AddInherit: { name: 'INHERIT', since: undefined },
  AT_DropInherit: { name: 'NO INHERIT', since: undefined },
  AT_AddOf: { name: 'OF', since: undefined },
  AT_DropOf: { name: 'NOT OF', since: undefined },
  AT_AttachPartition: { name: 'ATTACH PARTITION', since: undefined },
  AT_DetachPartition: { name: 'DETACH PARTITION', since: undefined },
};

/** Objects that share ALTER TABLE's parse node. */
const objectNames: Readonly<Record<string, string>> = {
  OBJECT_TABLE: 'TABLE',
  OBJECT_VIEW: 'VIEW',
  OBJECT_SEQUENCE: 'SEQUENCE',
  OBJECT_INDEX: 'INDEX',
  OBJECT_MATVIEW: 'MATERIALIZED VIEW',
  OBJECT_FOREIGN_TABLE: 'FOREIGN TABLE',
};

/** Subcommands that views and sequences accept. */
const otherObjects: Readonly<Record<string, ReadonlySet<AlterTableType>>> = {
  OBJECT_VIEW: new Set<AlterTableType>(['AT_ChangeOwner', 'AT_ColumnDefault']),
  OBJECT_SEQUENCE: new Set<AlterTableType>(['AT_ChangeOwner']),
};

export const judgeAlterTable: Rule<AlterTableStmt> = (statement, context) => {
  const type = statement.objtype ?? 'OBJECT_TABLE';
  if (type === 'OBJECT_TYPE') return unsupported('ALTER TYPE not supported');
  const commands = bodiesOf(statement.cmds, 'AlterTableCmd');
  if (type !== 'OBJECT_TABLE') {
    const accepted = otherObjects[type];
    const isAccepted = commands.every(({ subtype }) => subtype !== undefined && accepted?.has(subtype));
    return isAccepted ? undefined : unsupported(`unsupported ALTER ${objectNames[type] ?? type} statement`);
  }
  return firstRefusal(commands, context, (command) => judgeSubcommand(command, statement, context));
};

function judgeSubcommand(
  command: AlterTableCmd,
  { relation }: AlterTableStmt,
  context: RuleContext,
): Refusal | undefined {
  const { subtype, name = '', def } = command;
  const subcommand = subtype === undefined ? undefined : subcommands[subtype];
  if (subtype === undefined || subcommand === undefined)
    return unsupported('unsupported ALTER TABLE statement');
  const isValidation = subtype === 'AT_ValidateConstraint';
  const refusal = refuseSubcommand(subcommand, context.isAsync, command);
  if (context.isAsync !== isValidation) return refusal;
  const { since } = subcommand;
  if (since === undefined || (since !== 'always' && !context.profile.accepts(since))) return refusal;
  switch (subtype) {
    case 'AT_AddColumn': {
      const definition = bodyOf(def, 'ColumnDef');
      if (definition?.constraints) return unsupported('ALTER TABLE ADD COLUMN with constraint not supported');
      return definition && judgeColumnDefinition(definition, context);
    }
    case 'AT_AddConstraint':
      return isAddable(bodyOf(def, 'Constraint'), relation, context) ? undefined : refusal;
    case 'AT_AddIdentity': {
      context.checks.push(bigintColumnCheck(relation, name));
      return judgeIdentity(undefined, bodyOf(def, 'Constraint')?.options, context);
    }
    case 'AT_SetIdentity':
      return judgeIdentityChange(bodyOf(def, 'List')?.items);
    case 'AT_EnableTrigAll':
    case 'AT_DisableTrigAll':
      sparingOwnTriggers(context);
      return undefined;
    case 'AT_DropColumn':
      context.checks.push(primaryKeyColumnCheck(relation, name));
      return undefined;
    default:
      return undefined;
  }
}

/** USER instead of ALL: tables have no triggers except those of foreign keys, and the stand-in's own. */
function sparingOwnTriggers({ text }: RuleContext): void {
  const tokens = text.tokens();
  let isBehindTrigger = false;
  while (tokens.next() !== Token.end && tokens.token !== Token.unreadable) {
    const word = tokens.token === Token.word ? tokens.name()?.toLowerCase() : undefined;
    if (isBehindTrigger && word === 'all') {
      text.insert(tokens.start, 'USER /* ');
      text.insert(tokens.end, ' */');
    }
    isBehindTrigger = word === 'trigger';
  }
}

function refuseSubcommand(subcommand: Subcommand, isAsync: boolean, command: AlterTableCmd): Refusal {
  const isDropDefault = command.subtype === 'AT_ColumnDefault' && command.def === undefined;
  const name = isDropDefault ? `${column} DROP DEFAULT` : subcommand.name;
  return unsupported(`unsupported ALTER TABLE ${isAsync ? 'ASYNC ' : ''}${name} statement`);
}

/** A constraint of an existing table is not checked at once, or takes over an index that is there. */
function isAddable(
  constraint: Constraint | undefined,
  relation: AlterTableStmt['relation'],
  { profile, checks }: RuleContext,
): boolean {
  switch (constraint?.contype) {
    case 'CONSTR_CHECK':
      return constraint.skip_validation === true && profile.accepts('CHECK NOT VALID');
    case 'CONSTR_FOREIGN':
      return constraint.skip_validation === true && profile.accepts('foreign keys');
    case 'CONSTR_UNIQUE':
      if (constraint.indexname === undefined || constraint.deferrable) return false;
      checks.push(finishedIndexCheck(relation, constraint.indexname));
      return true;
    default:
      return false;
  }
}
