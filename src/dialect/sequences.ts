/** Identity columns and sequences: bigint, with a CACHE that is 1 or large. */
import type { AlterSeqStmt, CreateSeqStmt, Node, TypeName } from 'libpg-query';
import type { Refusal } from './judgement.js';
import { bodiesOf, bodyOf, integerOf } from './parse-tree.js';
import { unsupported, unsupportedStatement } from './refusal.js';
import type { Rule, RuleContext } from './rule.js';
import { readType } from './type-names.js';

const smallestLargeCache = 65_536;
const cacheAdvice =
  'without an explicit cache size. please define CACHE greater than or equal to 65536 or equal to 1';

export function judgeIdentity(
  type: TypeName | undefined,
  options: readonly Node[] | undefined,
  context: RuleContext,
): Refusal | undefined {
  if (!context.profile.accepts('identity columns and sequences'))
    return unsupported('identity column is not supported');
  const named = type && readType(type);
  if (named && named.internal !== 'int8')
    return unsupported(`datatype ${named.canonical} not supported, identity column type must be bigint`);
  return hasGoodCache(options) ? undefined : unsupported(`identity column is not supported ${cacheAdvice}`);
}

/** ALTER COLUMN ... SET CACHE. */
export function judgeIdentityChange(options: readonly Node[] | undefined): Refusal | undefined {
  return cacheOf(options) === undefined || hasGoodCache(options)
    ? undefined
    : unsupported(`identity column is not supported ${cacheAdvice}`);
}

export const judgeCreateSequence: Rule<CreateSeqStmt> = (statement, context) => {
  if (!context.profile.accepts('identity columns and sequences'))
    return unsupportedStatement('CreateSeqStmt');
  const persistence = statement.sequence?.relpersistence;
  if (persistence === 't') return unsupported('TEMPORARY or TEMP sequence not supported for CREATE SEQUENCE');
  if (persistence === 'u') return unsupported('UNLOGGED sequence not supported for CREATE SEQUENCE');
  const refusal = judgeSequenceType(statement.options);
  if (refusal !== undefined) return refusal;
  return hasGoodCache(statement.options)
    ? undefined
    : unsupported(`CREATE SEQUENCE is not supported ${cacheAdvice}`);
};

export const judgeAlterSequence: Rule<AlterSeqStmt> = (statement, context) => {
  if (!context.profile.accepts('identity columns and sequences')) return unsupportedStatement('AlterSeqStmt');
  const refusal = judgeSequenceType(statement.options);
  if (refusal !== undefined) return refusal;
  return cacheOf(statement.options) === undefined || hasGoodCache(statement.options)
    ? undefined
    : unsupported(`ALTER SEQUENCE is not supported ${cacheAdvice}`);
};

function judgeSequenceType(options: readonly Node[] | undefined): Refusal | undefined {
  const type = bodyOf(
    bodiesOf(options, 'DefElem').find((option) => option.defname === 'as')?.arg,
    'TypeName',
  );
  const named = type && readType(type);
  return named && named.internal !== 'int8'
    ? unsupported(`datatype ${named.canonical} not supported, sequence type must be bigint`)
    : undefined;
}

function cacheOf(options: readonly Node[] | undefined): number | undefined {
  return integerOf(bodiesOf(options, 'DefElem').find((option) => option.defname === 'cache')?.arg);
}

function hasGoodCache(options: readonly Node[] | undefined): boolean {
  const cache = cacheOf(options);
  return cache === 1 || (cache !== undefined && cache >= smallestLargeCache);
}
