/** Names of tables as a statement has them, for PostgreSQL and for the transaction. */

import type { JudgedStatement } from '../../dialect/judgement.js';
import { quoteName } from '../../sql/quote.js';
import type { Transaction } from '../conflicts/transaction.js';

/** Tables that the statement changes or locks, as they can be looked up. */
export function changedNames({ relations }: JudgedStatement): string[] {
  return relations.filter(({ isChanged }) => isChanged).map(({ schema, name }) => qualified(schema, name));
}

/** Remembers that rows of these tables may be locked. */
export function noteLocked({ relations }: JudgedStatement, { lockedTables }: Transaction): void {
  for (const { isChanged, schema, name } of relations)
    if (isChanged) lockedTables.set(`${schema ?? ''} ${name}`, { schema, name });
}

export function qualified(schema: string | undefined, name: string): string {
  return schema === undefined ? quoteName(name) : `${quoteName(schema)}.${quoteName(name)}`;
}
