/** Definitions of roles, schemas, views, domains, functions and statistics. */
import type {
  AlterFunctionStmt,
  AlterRoleSetStmt,
  AlterStatsStmt,
  CreateDomainStmt,
  CreateFunctionStmt,
  CreateRoleStmt,
  CreateSchemaStmt,
  DefineStmt,
  ViewStmt,
} from 'libpg-query';
import { judgeColumnType } from './column-types.js';
import { judgeConstraint } from './constraints.js';
import { judgeCollation, judgeCreateTable } from './create-table.js';
import { bodiesOf, bodyOf, integerOf, kindOf, namesOf, stringOf } from './parse-tree.js';
import { refuse, unsupported, unsupportedStatement } from './refusal.js';
import { firstRefusal, type Rule } from './rule.js';

/** Uses the names of PostgreSQL's options; a role of DSQL has neither a password nor attributes. */
const roleOptions: ReadonlySet<string> = new Set(['canlogin', 'inherit', 'addroleto', 'rolemembers']);

export const judgeCreateRole: Rule<CreateRoleStmt> = ({ stmt_type, options }, context) => {
  if ((stmt_type ?? 'ROLESTMT_ROLE') !== 'ROLESTMT_ROLE') return unsupportedStatement('CreateRoleStmt');
  return firstRefusal(bodiesOf(options, 'DefElem'), context, ({ defname = '' }) =>
    roleOptions.has(defname)
      ? undefined
      : unsupported(`option ${defname.toUpperCase()} not supported for CREATE ROLE`),
  );
};

export const judgeAlterRoleSet: Rule<AlterRoleSetStmt> = ({ setstmt }) =>
  setstmt?.kind === 'VAR_RESET_ALL' ? undefined : unsupportedStatement('AlterRoleSetStmt');

export const judgeCreateSchema: Rule<CreateSchemaStmt> = ({ schemaElts }, context) => {
  if (schemaElts && !context.profile.accepts('schema elements in CREATE SCHEMA'))
    return unsupported('schema elements not supported for CREATE SCHEMA');
  return firstRefusal(schemaElts ?? [], context, (element) => {
    const table = bodyOf(element, 'CreateStmt');
    if (table) return judgeCreateTable(table, context);
    const view = bodyOf(element, 'ViewStmt');
    return view ? judgeView(view, context) : unsupportedStatement(kindOf(element));
  });
};

const longestViewBytes = 2 * 1024 * 1024;

export const judgeView: Rule<ViewStmt> = ({ view }, { text }) => {
  if (view?.relpersistence === 't')
    return unsupported('TEMPORARY or TEMP view not supported for CREATE VIEW');
  return text.byteLength > longestViewBytes ? refuse('54000', 'view definition too large') : undefined;
};

export const judgeCreateDomain: Rule<CreateDomainStmt> = ({ typeName, collClause, constraints }, context) =>
  (typeName && judgeColumnType(typeName, context)) ??
  judgeCollation(collClause) ??
  firstRefusal(bodiesOf(constraints, 'Constraint'), context, (constraint) =>
    judgeConstraint(constraint, undefined, new Map(), context),
  );

export const judgeCreateFunction: Rule<CreateFunctionStmt> = ({ is_procedure, options }, context) => {
  if (is_procedure) return unsupported('PROCEDURE is not supported');
  const option = (name: string) => bodiesOf(options, 'DefElem').find(({ defname }) => defname === name)?.arg;
  const language = stringOf(option('language'));
  // A body without quotes is always SQL; PostgreSQL refuses a quoted one without a language.
  if (language !== undefined && language.toLowerCase() !== 'sql')
    return unsupported(`CREATE FUNCTION with language ${language} not supported`);
  const [body] = namesOf(bodyOf(option('as'), 'List')?.items);
  return body === undefined ? undefined : context.judgeInner(body);
};

export const judgeAlterFunction: Rule<AlterFunctionStmt> = ({ objtype }) =>
  objtype === 'OBJECT_PROCEDURE'
    ? unsupported('PROCEDURE is not supported')
    : unsupportedStatement('AlterFunctionStmt');

export const judgeDefine: Rule<DefineStmt> = ({ kind }) =>
  kind === 'OBJECT_TYPE' ? unsupported('CREATE TYPE not supported') : unsupportedStatement('DefineStmt');

const largestStatisticsTarget = 100;

export const judgeAlterStatistics: Rule<AlterStatsStmt> = ({ stxstattarget }, { profile }) => {
  if (!profile.accepts('extended statistics')) return unsupportedStatement('AlterStatsStmt');
  const target = typeof stxstattarget === 'number' ? stxstattarget : (integerOf(stxstattarget) ?? 0);
  return target > largestStatisticsTarget
    ? refuse(
        '22023',
        `statistics target ${target} exceeds maximum allowed value of ${largestStatisticsTarget}`,
      )
    : undefined;
};
