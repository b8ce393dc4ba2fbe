/** The judgement of one statement: its rule, the rules for its expressions, and the details that the session needs. */
import type { Node } from 'libpg-query';
import { judgeExpressions } from './expressions.js';
import type { AsyncJob, IamMapping, JudgedStatement, Refusal, StatementKind } from './judgement.js';
import { bodiesOf, bodyOf, kindOf, namesOf, stringOf } from './parse-tree.js';
import type { Profile } from './profile.js';
import { unsupportedStatement } from './refusal.js';
import { mentionsOf, relationsOf } from './relations.js';
import type { RuleContext } from './rule.js';
import { answerShow } from './settings.js';
import { ruleOf } from './statement-rules.js';
import type { StatementText } from './statement-text.js';
import { type Survey, surveyStatement } from './survey.js';
import { isReadOnly, transactionKind } from './transactions.js';

const nothing = {
  refusal: undefined,
  checks: [],
  relations: [],
  schemaMentions: [],
  locking: 'none',
  isCopyIn: false,
  isReadOnly: false,
  isStart: false,
  isChained: false,
  job: undefined,
  iam: undefined,
  ownAnswer: undefined,
} as const satisfies Partial<JudgedStatement>;

/** A text that is refused without being understood. */
export function refusedText(source: string, refusal: Refusal): JudgedStatement {
  return { ...nothing, source, sql: source, kind: 'session', refusal };
}

export function judgeIamMapping(source: string, iam: IamMapping): JudgedStatement {
  return { ...nothing, source, sql: source, kind: 'ddl', iam };
}

export function judgeStatement(
  node: Node,
  text: StatementText,
  isAsync: boolean,
  profile: Profile,
  judgeInner: RuleContext['judgeInner'],
): JudgedStatement {
  const { source } = text;
  const context: RuleContext = { profile, isAsync, text, checks: [], judgeInner };
  const rule = ruleOf(kindOf(node));
  if ('code' in rule) return refusedText(source, rule);
  const survey = surveyStatement(node);
  const refusal = judgeNode(node, context) ?? judgeExpressions(survey, context);
  const { sql, indexOf } = text.finish();
  const transaction = bodyOf(node, 'TransactionStmt');
  const show = bodyOf(node, 'VariableShowStmt');
  return {
    source,
    sql,
    kind: kindOfStatement(node, rule.kind, survey),
    refusal,
    checks: refusal === undefined ? context.checks : [],
    relations: relationsOf(node, survey),
    schemaMentions: mentionsOf(survey, text, indexOf),
    locking: lockingOf(survey),
    isCopyIn: bodyOf(node, 'CopyStmt')?.is_from === true,
    isReadOnly: transaction !== undefined && isReadOnly(transaction),
    isStart: transaction?.kind === 'TRANS_STMT_START',
    isChained: transaction?.chain === true,
    job: isAsync ? jobOf(node) : undefined,
    iam: undefined,
    ownAnswer: show ? answerShow(show) : answerVersion(node),
  };
}

/** EXPLAIN is judged as the statement that it explains. */
export function judgeNode(node: Node, context: RuleContext): Refusal | undefined {
  const rule = ruleOf(kindOf(node));
  if ('code' in rule) return rule;
  const explained = bodyOf(node, 'ExplainStmt')?.query;
  if (explained) {
    const { kind } = { kind: 'read', ...ruleOf(kindOf(explained)) };
    if (kind !== 'read' && kind !== 'write') return unsupportedStatement(kindOf(explained));
    return judgeNode(explained, context);
  }
  return rule.judge?.(Object.values(node)[0], context);
}

export function kindOfStatement(node: Node, kind: StatementKind, survey: Survey): StatementKind {
  const transaction = bodyOf(node, 'TransactionStmt');
  if (transaction) return transactionKind(transaction) ?? 'session';
  const explain = bodyOf(node, 'ExplainStmt');
  if (explain) return survey.isWrite && isAnalyze(explain.options) ? 'write' : 'read';
  if (bodyOf(node, 'CopyStmt')?.is_from) return 'write';
  return kind === 'read' && survey.isWrite ? 'write' : kind;
}

const falseWords: ReadonlySet<string> = new Set(['false', 'off', '0']);

/** The last ANALYZE of EXPLAIN's options counts; without a value it is true. */
function isAnalyze(options: readonly Node[] | undefined): boolean {
  const option = bodiesOf(options, 'DefElem').findLast(({ defname }) => defname === 'analyze');
  if (option === undefined) return false;
  const word = stringOf(option.arg) ?? bodyOf(option.arg, 'Integer')?.ival ?? (option.arg ? '0' : 'true');
  return !falseWords.has(String(word).toLowerCase());
}

export function lockingOf({ locks }: Survey): JudgedStatement['locking'] {
  if (locks.some(({ clause }) => clause.strength !== 'LCS_FORKEYSHARE')) return 'update';
  return locks.length > 0 ? 'key_share' : 'none';
}

function jobOf(node: Node): AsyncJob | undefined {
  const index = bodyOf(node, 'IndexStmt');
  const alter = bodyOf(node, 'AlterTableStmt');
  const relation = index?.relation ?? alter?.relation;
  if (relation === undefined) return undefined;
  const place = { schema: relation.schemaname, table: relation.relname ?? '' };
  if (index) return { type: 'INDEX_BUILD', tag: 'CREATE INDEX', ...place, object: index.idxname };
  const [command] = bodiesOf(alter?.cmds, 'AlterTableCmd');
  return { type: 'VALIDATE_CONSTRAINT', tag: 'ALTER TABLE', ...place, object: command?.name };
}

/** SELECT version(), and nothing else. */
function answerVersion(node: Node): JudgedStatement['ownAnswer'] {
  const select = bodyOf(node, 'SelectStmt');
  if (select?.targetList?.length !== 1 || select.fromClause || select.whereClause || select.valuesLists)
    return undefined;
  if (select.withClause || select.limitCount || select.limitOffset || select.groupClause) return undefined;
  const target = bodyOf(select.targetList[0], 'ResTarget');
  const call = bodyOf(target?.val, 'FuncCall');
  const names = namesOf(call?.funcname);
  const isVersion =
    names.at(-1) === 'version' && (names.length === 1 || names[0] === 'pg_catalog') && !call?.args;
  return isVersion
    ? { column: target?.name ?? 'version', value: 'PostgreSQL 16', tag: 'SELECT 1' }
    : undefined;
}
