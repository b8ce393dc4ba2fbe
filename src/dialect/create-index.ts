/** CREATE INDEX: always ASYNC, on plain columns and expressions. */
import type { IndexElem, IndexStmt } from 'libpg-query';
import { Token } from '../sql/tokenizer.js';
import { indexCountCheck, keySizeCheck, keyTypeCheck } from './catalog-checks.js';
import { mostKeyColumns, tooManyKeyColumns } from './constraints.js';
import { judgeCollation } from './create-table.js';
import type { Refusal } from './judgement.js';
import { bodiesOf } from './parse-tree.js';
import { unsupported } from './refusal.js';
import { firstRefusal, type Rule, type RuleContext } from './rule.js';

export const judgeCreateIndex: Rule<IndexStmt> = (index, context) => {
  const { profile } = context;
  if (index.concurrent) return unsupported('CONCURRENTLY not supported for CREATE INDEX');
  if (!context.isAsync) return unsupported('unsupported mode. please use CREATE INDEX ASYNC.');
  if (hasMethod(index, context)) return unsupported('USING not supported for CREATE INDEX');
  if (index.options) return unsupported('storage parameters not supported for CREATE INDEX');
  if (index.tableSpace) return unsupported('TABLESPACE not supported for CREATE INDEX');
  if (index.whereClause && !profile.accepts('partial indexes'))
    return unsupported('WHERE not supported for CREATE INDEX');
  const keys = bodiesOf(index.indexParams, 'IndexElem');
  const refusal = firstRefusal(keys, context, (key) => judgeKey(key, context));
  if (refusal !== undefined) return refusal;
  if (keys.length > mostKeyColumns) return tooManyKeyColumns;
  const columns = keys.map((key) => key.name).filter((name) => name !== undefined);
  if (columns.length > 0) {
    context.checks.push(keyTypeCheck(index.relation, columns, profile));
    context.checks.push(keySizeCheck(index.relation, columns));
  }
  context.checks.push(indexCountCheck(index.relation));
  return undefined;
};

function judgeKey(key: IndexElem, context: RuleContext): Refusal | undefined {
  if ((key.ordering ?? 'SORTBY_DEFAULT') !== 'SORTBY_DEFAULT')
    return unsupported('specifying sort order not supported for index keys');
  if (key.opclass) return unsupported('opclass not supported for index keys');
  if (key.expr && !context.profile.accepts('expression indexes'))
    return unsupported('expressions not supported for index keys');
  return key.collation ? judgeCollation({ collname: key.collation }) : undefined;
}

/** The parser names btree when the text names no method, so the tokens behind the table tell. */
function hasMethod(index: IndexStmt, context: RuleContext): boolean {
  const tokens = context.text.tokensFrom(index.relation?.location ?? 0);
  while (tokens.next() !== Token.open) {
    if (tokens.token === Token.end || tokens.token === Token.unreadable) return false;
    if (tokens.token === Token.word && tokens.name() === 'using') return true;
  }
  return false;
}
