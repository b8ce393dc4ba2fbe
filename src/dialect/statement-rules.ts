/** The table of statements, by PostgreSQL's parse nodes. A node that is not in it is refused. */
import type { CopyStmt, DeallocateStmt, VacuumStmt } from 'libpg-query';
import { judgeAlterTable } from './alter-table.js';
import { judgeCreateIndex } from './create-index.js';
import { judgeCreateTable } from './create-table.js';
import {
  judgeAlterFunction,
  judgeAlterRoleSet,
  judgeAlterStatistics,
  judgeCreateDomain,
  judgeCreateFunction,
  judgeCreateRole,
  judgeCreateSchema,
  judgeDefine,
  judgeView,
} from './definitions.js';
import type { Refusal } from './judgement.js';
import { judgeDrop, judgeOwner, judgeRename, judgeSetSchema } from './object-kinds.js';
import type { Body, NodeKind } from './parse-tree.js';
import type { Feature } from './profile.js';
import { unsupported, unsupportedStatement } from './refusal.js';
import type { Rule, RuleContext, StatementRule } from './rule.js';
import { judgeAlterSequence, judgeCreateSequence } from './sequences.js';
import { judgeSet, judgeShow } from './settings.js';
import { judgeTransaction } from './transactions.js';

type StatementRules = { readonly [K in NodeKind]?: StatementRule<Body<K>> };

/** Refused with a text of their own, whatever is in them. Kinds are of no use for them. */
const refusedStatements: Readonly<Partial<Record<NodeKind, string>>> = {
  CreateTrigStmt: 'CREATE TRIGGER not supported',
  CreateEnumStmt: 'CREATE TYPE not supported',
  AlterEnumStmt: 'ALTER TYPE not supported',
  AlterTypeStmt: 'ALTER TYPE not supported',
  MergeStmt: 'unsupported statement type: MERGE',
};

const statementRules: StatementRules = {
  SelectStmt: { kind: 'read' },
  InsertStmt: { kind: 'write' },
  UpdateStmt: { kind: 'write' },
  DeleteStmt: { kind: 'write' },
  CopyStmt: { kind: 'read', judge: judgeCopy },
  ExplainStmt: { kind: 'read' },
  VariableShowStmt: { kind: 'read', judge: judgeShow },
  VariableSetStmt: { kind: 'session', judge: judgeSet },
  ConstraintsSetStmt: { kind: 'session' },
  DeallocateStmt: { kind: 'session', judge: judgeDeallocate },
  TransactionStmt: { kind: 'begin', judge: judgeTransaction },
  VacuumStmt: { kind: 'analyze', judge: judgeVacuum },
  CallStmt: { kind: 'call' },
  CreateStmt: { kind: 'ddl', judge: judgeCreateTable },
  AlterTableStmt: { kind: 'ddl', judge: judgeAlterTable },
  IndexStmt: { kind: 'ddl', judge: judgeCreateIndex },
  ViewStmt: { kind: 'ddl', judge: judgeView },
  CreateSeqStmt: { kind: 'ddl', judge: judgeCreateSequence },
  AlterSeqStmt: { kind: 'ddl', judge: judgeAlterSequence },
  CreateDomainStmt: { kind: 'ddl', judge: judgeCreateDomain },
  AlterDomainStmt: { kind: 'ddl' },
  CreateFunctionStmt: { kind: 'ddl', judge: judgeCreateFunction },
  AlterFunctionStmt: { kind: 'ddl', judge: judgeAlterFunction },
  AlterObjectDependsStmt: { kind: 'ddl' },
  DefineStmt: { kind: 'ddl', judge: judgeDefine },
  CreateSchemaStmt: { kind: 'ddl', judge: judgeCreateSchema },
  CreateRoleStmt: { kind: 'ddl', judge: judgeCreateRole },
  AlterRoleSetStmt: { kind: 'ddl', judge: judgeAlterRoleSet },
  DropRoleStmt: { kind: 'ddl' },
  CreateStatsStmt: { kind: 'ddl', judge: needs('extended statistics', 'CreateStatsStmt') },
  AlterStatsStmt: { kind: 'ddl', judge: judgeAlterStatistics },
  DropStmt: { kind: 'ddl', judge: judgeDrop },
  RenameStmt: { kind: 'ddl', judge: judgeRename },
  AlterOwnerStmt: { kind: 'ddl', judge: judgeOwner },
  AlterObjectSchemaStmt: { kind: 'ddl', judge: judgeSetSchema },
  CommentStmt: { kind: 'ddl' },
  GrantStmt: { kind: 'ddl' },
  GrantRoleStmt: { kind: 'ddl' },
  AlterDefaultPrivilegesStmt: {
    kind: 'ddl',
    judge: needs('ALTER DEFAULT PRIVILEGES', 'AlterDefaultPrivilegesStmt'),
  },
};

/** The rule of a statement, or its refusal. */
export function ruleOf(kind: NodeKind): StatementRule<unknown> | Refusal {
  const text = refusedStatements[kind];
  if (text !== undefined) return unsupported(text);
  const rule = Object.hasOwn(statementRules, kind) ? statementRules[kind] : undefined;
  return (rule as StatementRule<unknown> | undefined) ?? unsupportedStatement(kind);
}

function needs(feature: Feature, kind: NodeKind): Rule<unknown> {
  return (_body, { profile }) => (profile.accepts(feature) ? undefined : unsupportedStatement(kind));
}

function judgeCopy({ filename, is_program, is_from }: CopyStmt): Refusal | undefined {
  if (filename === undefined) return undefined;
  return unsupported(`COPY ${is_from ? 'FROM' : 'TO'} ${is_program ? 'PROGRAM' : 'file'} not supported`);
}

/** DEALLOCATE ALL has no name. */
function judgeDeallocate({ name }: DeallocateStmt): Refusal | undefined {
  return name === undefined ? undefined : unsupportedStatement('DeallocateStmt');
}

/** ANALYZE shares VACUUM's node. */
function judgeVacuum({ is_vacuumcmd, rels }: VacuumStmt, _context: RuleContext): Refusal | undefined {
  if (is_vacuumcmd) return unsupported('unsupported VACUUM statement');
  return rels === undefined ? unsupported('unsupported ANALYZE statement') : undefined;
}
