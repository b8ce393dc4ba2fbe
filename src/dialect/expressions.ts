/** Rules for the parts of statements: functions, types, sampling, locking clauses. */
import type { FuncCall, Node, SelectStmt } from 'libpg-query';
import { lockedByKeyCheck } from './catalog-checks.js';
import type { Refusal } from './judgement.js';
import { bodyOf, namesOf, stringOf } from './parse-tree.js';
import { refuse, unsupported, unsupportedStatement } from './refusal.js';
import { firstRefusal, type RuleContext } from './rule.js';
import { type Lock, rangesOf, type Survey } from './survey.js';
import { geometricTypes, readType } from './type-names.js';

/** Refused with `function <name> not supported`. */
export const refusedFunctions: ReadonlySet<string> = new Set([
  ...['pg_advisory_lock', 'pg_advisory_lock_shared', 'pg_advisory_xact_lock', 'pg_advisory_xact_lock_shared'],
  ...['pg_try_advisory_lock', 'pg_try_advisory_lock_shared', 'pg_try_advisory_xact_lock'],
  ...['pg_try_advisory_xact_lock_shared', 'pg_advisory_unlock', 'pg_advisory_unlock_shared'],
  ...['pg_advisory_unlock_all', 'pg_backend_pid', 'pg_stat_get_activity', 'set_config', 'lastval'],
  ...['pg_table_size', 'pg_relation_size', 'pg_total_relation_size', 'pg_indexes_size', 'pg_database_size'],
  ...[
    'pg_tablespace_size',
    'pg_cancel_backend',
    'pg_terminate_backend',
    'pg_notify',
    'pg_listening_channels',
  ],
  ...[
    'pg_reload_conf',
    'pg_rotate_logfile',
    'pg_read_file',
    'pg_read_binary_file',
    'pg_stat_file',
    'pg_ls_dir',
  ],
  ...['lo_create', 'lo_creat', 'lo_open', 'lo_import', 'lo_export', 'lo_unlink', 'lo_from_bytea', 'lo_get'],
  ...['lo_put', 'pg_export_snapshot', 'pg_blocking_pids', 'pg_switch_wal', 'pg_create_restore_point'],
]);

/** Views that are made of refused functions. */
const refusedViews: Readonly<Record<string, string>> = { pg_stat_activity: 'pg_stat_get_activity' };

/** Functions whose first of two arguments, or whose default, is a text search configuration. */
const textSearchFunctions: ReadonlySet<string> = new Set([
  ...[
    'to_tsvector',
    'to_tsquery',
    'plainto_tsquery',
    'phraseto_tsquery',
    'websearch_to_tsquery',
    'ts_headline',
  ],
]);
const hiddenSchema = 'dsql_local';
const defaultConfiguration = 'english';
/** The only configuration that needs no dictionary. */
const simpleConfiguration = 'simple';

export function judgeExpressions(survey: Survey, context: RuleContext): Refusal | undefined {
  if (survey.hasMerge) return unsupported('unsupported statement type: MERGE');
  if (survey.hasInto) return unsupportedStatement('CreateTableAsStmt');
  if (survey.hasTableSample) return unsupported('TABLESAMPLE clause not supported');
  return (
    firstRefusal(survey.functions, context, judgeFunction) ??
    firstRefusal(survey.relations, context, ({ schemaname }) => judgeSchema(schemaname)) ??
    firstRefusal(survey.relations, context, ({ schemaname, relname = '' }) =>
      (schemaname ?? 'pg_catalog') === 'pg_catalog' && Object.hasOwn(refusedViews, relname)
        ? unsupported(`function ${refusedViews[relname]} not supported`)
        : undefined,
    ) ??
    firstRefusal(survey.castTypes, context, (type) => {
      const { internal, canonical, isBuiltIn } = readType(type);
      return isBuiltIn && geometricTypes.has(internal)
        ? unsupported(`datatype ${canonical} not supported`)
        : undefined;
    }) ??
    firstRefusal(survey.locks, context, (lock) => judgeLock(lock, context))
  );
}

/** The stand-in's own schema does not exist for clients. */
function judgeSchema(schema: string | undefined): Refusal | undefined {
  return schema === hiddenSchema ? refuse('3F000', `schema "${schema}" does not exist`) : undefined;
}

function judgeFunction(call: FuncCall): Refusal | undefined {
  const names = namesOf(call.funcname);
  const name = names.at(-1) ?? '';
  if (names.length > 1 && names[0] !== 'pg_catalog') return judgeSchema(names[0]);
  if (refusedFunctions.has(name)) return unsupported(`function ${name} not supported`);
  if (geometricTypes.has(name)) return unsupported(`datatype ${name} not supported`);
  if (!textSearchFunctions.has(name)) return undefined;
  const configuration = configurationOf(call);
  return configuration === undefined || configuration === simpleConfiguration
    ? undefined
    : refuse('42704', `text search configuration "${configuration}" does not exist`);
}

/** Undefined where the text does not tell. */
function configurationOf(call: FuncCall): string | undefined {
  const args = call.args ?? [];
  const cast = bodyOf(args[0], 'TypeCast');
  const isRegconfig = cast?.typeName !== undefined && readType(cast.typeName).internal === 'regconfig';
  const takesConfiguration = isRegconfig || args.length > 1;
  const named = takesConfiguration ? stringOf(isRegconfig ? cast?.arg : args[0]) : defaultConfiguration;
  return named?.startsWith('pg_catalog.') ? named.slice('pg_catalog.'.length) : named;
}

function judgeLock({ clause, select }: Lock, context: RuleContext): Refusal | undefined {
  const { profile } = context;
  const hasKeyShare = profile.accepts('FOR KEY SHARE');
  const isKeyShare = clause.strength === 'LCS_FORKEYSHARE';
  if (clause.strength !== 'LCS_FORUPDATE' && !(isKeyShare && hasKeyShare))
    return unsupported(
      `locking clauses other than FOR UPDATE${hasKeyShare ? '/FOR KEY SHARE' : ''} are not supported`,
    );
  return isKeyShare || profile.accepts('FOR UPDATE on any rows')
    ? undefined
    : judgeOlderLock(select, context);
}

/** Before 2026-08-24: one table, and an equality for each column of its primary key. */
function judgeOlderLock(select: SelectStmt, context: RuleContext): Refusal | undefined {
  const start = 'locking clause such as FOR UPDATE can be applied';
  const [range, ...others] = rangesOf(select);
  if (range === undefined || others.length > 0 || select.fromClause?.length !== 1)
    return unsupported(`${start} on a single table`);
  const withoutKey = `${start} only on tables with equality predicates on the key`;
  const columns = equalColumns(select.whereClause);
  if (columns.length === 0) return unsupported(withoutKey);
  context.checks.push(lockedByKeyCheck(range, columns, withoutKey));
  return undefined;
}

/** Columns that a conjunction compares with `=`. */
export function equalColumns(condition: Node | undefined): string[] {
  const columns: string[] = [];
  const conditions = [condition];
  for (let next = conditions.pop(); next !== undefined; next = conditions.pop()) {
    const conjunction = bodyOf(next, 'BoolExpr');
    if (conjunction?.boolop === 'AND_EXPR') conditions.push(...(conjunction.args ?? []));
    const comparison = bodyOf(next, 'A_Expr');
    if (comparison?.kind !== 'AEXPR_OP' || namesOf(comparison.name).at(-1) !== '=') continue;
    for (const side of [comparison.lexpr, comparison.rexpr]) {
      const column = namesOf(bodyOf(side, 'ColumnRef')?.fields).at(-1);
      if (column !== undefined) columns.push(column);
    }
  }
  return columns;
}
