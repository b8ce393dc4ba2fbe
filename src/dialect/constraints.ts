/** Constraints of tables, columns and domains. */
import type { Constraint, TypeName } from 'libpg-query';
import { declaredKeyBytes, judgeKeyType } from './column-types.js';
import type { Refusal } from './judgement.js';
import { namesOf } from './parse-tree.js';
import { refuse, unsupported } from './refusal.js';
import { firstRefusal, type RuleContext } from './rule.js';
import { judgeIdentity } from './sequences.js';

export const mostKeyColumns = 8;
export const mostKeyBytes = 2000;
export const tooManyKeyColumns = refuse(
  '54011',
  `more than ${mostKeyColumns} column keys in an index are not supported`,
);
export const keyTooLarge = refuse('54000', `key size greater than ${mostKeyBytes} bytes not supported`);

/** Types of the columns that the statement itself defines. */
export type ColumnTypes = ReadonlyMap<string, TypeName>;

/** `column` is the column that holds the constraint; undefined for one of the table. */
export function judgeConstraint(
  constraint: Constraint,
  column: string | undefined,
  types: ColumnTypes,
  context: RuleContext,
): Refusal | undefined {
  switch (constraint.contype) {
    case 'CONSTR_EXCLUSION':
      return unsupported('EXCLUDE constraint not supported');
    case 'CONSTR_FOREIGN':
      return context.profile.accepts('foreign keys')
        ? undefined
        : unsupported('FOREIGN KEY constraint not supported');
    case 'CONSTR_PRIMARY':
    case 'CONSTR_UNIQUE':
      return judgeKey(constraint, column, types, context);
    case 'CONSTR_IDENTITY':
      return judgeIdentity(column === undefined ? undefined : types.get(column), constraint.options, context);
    case 'CONSTR_ATTR_DEFERRABLE':
    case 'CONSTR_ATTR_DEFERRED':
    case 'CONSTR_NULL':
    case 'CONSTR_NOTNULL':
    case 'CONSTR_DEFAULT':
    case 'CONSTR_CHECK':
    case 'CONSTR_GENERATED':
    case 'CONSTR_ATTR_NOT_DEFERRABLE':
    case 'CONSTR_ATTR_IMMEDIATE':
      return undefined;
    default:
      return unsupported(`constraint ${constraint.contype} not supported`);
  }
}

function judgeKey(
  constraint: Constraint,
  column: string | undefined,
  types: ColumnTypes,
  context: RuleContext,
): Refusal | undefined {
  const what = constraint.contype === 'CONSTR_PRIMARY' ? 'PRIMARY KEY' : 'UNIQUE';
  if (constraint.deferrable) return unsupported(`DEFERRABLE not supported for ${what} constraint`);
  if (constraint.options) return unsupported(`storage parameters not supported for ${what} constraint`);
  if (constraint.indexspace) return unsupported(`TABLESPACE not supported for ${what} constraint`);
  const keys = column === undefined ? namesOf(constraint.keys) : [column];
  if (keys.length > mostKeyColumns) return tooManyKeyColumns;
  const keyTypes = keys.map((key) => types.get(key)).filter((type) => type !== undefined);
  const refusal = firstRefusal(keyTypes, context, (type) => judgeKeyType(type, context));
  if (refusal !== undefined) return refusal;
  const bytes = keyTypes.reduce((sum, type) => sum + declaredKeyBytes(type), 0);
  return bytes > mostKeyBytes ? keyTooLarge : undefined;
}
