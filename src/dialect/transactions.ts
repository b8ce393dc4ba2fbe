/** BEGIN, COMMIT, ROLLBACK, and features that DSQL lacks: savepoints, prepared transactions, other isolation levels. */
import type { Node, TransactionStmt, TransactionStmtKind } from 'libpg-query';
import type { Refusal, StatementKind } from './judgement.js';
import { bodiesOf, integerOf, stringOf } from './parse-tree.js';
import { unsupported } from './refusal.js';

const onlyIsolation = 'repeatable read';

/** Statements that begin and end a transaction, by PostgreSQL's names. */
const kinds: Readonly<Partial<Record<TransactionStmtKind, StatementKind>>> = {
  TRANS_STMT_BEGIN: 'begin',
  TRANS_STMT_START: 'begin',
  TRANS_STMT_COMMIT: 'commit',
  TRANS_STMT_ROLLBACK: 'rollback',
};

const refusedTransactionStatements: Readonly<Partial<Record<TransactionStmtKind, string>>> = {
  TRANS_STMT_SAVEPOINT: 'SAVEPOINT',
  TRANS_STMT_RELEASE: 'RELEASE',
  TRANS_STMT_ROLLBACK_TO: 'ROLLBACK TO',
  TRANS_STMT_PREPARE: 'PREPARE TRANSACTION',
  TRANS_STMT_COMMIT_PREPARED: 'COMMIT PREPARED',
  TRANS_STMT_ROLLBACK_PREPARED: 'ROLLBACK PREPARED',
};

/** Undefined for one that is refused. */
export function transactionKind(statement: TransactionStmt): StatementKind | undefined {
  return kinds[statement.kind ?? ('TRANSACTION_STMT_KIND_UNDEFINED' as TransactionStmtKind)];
}

export function judgeTransaction(statement: TransactionStmt): Refusal | undefined {
  if (transactionKind(statement) !== undefined) return judgeIsolation(statement.options);
  const name = (statement.kind && refusedTransactionStatements[statement.kind]) ?? String(statement.kind);
  return unsupported(`unsupported transaction statement: ${name}`);
}

/** Modes of BEGIN and SET TRANSACTION. */
export function judgeIsolation(modes: readonly Node[] | undefined): Refusal | undefined {
  const mode = bodiesOf(modes, 'DefElem').find(({ defname }) => defname === 'transaction_isolation');
  const level = stringOf(mode?.arg);
  return level === undefined || level === onlyIsolation
    ? undefined
    : unsupported(`Unsupported isolation level: ${level.toUpperCase()}`);
}

export function isReadOnly(statement: TransactionStmt): boolean {
  const modes = bodiesOf(statement.options, 'DefElem').filter(
    ({ defname }) => defname === 'transaction_read_only',
  );
  return integerOf(modes.at(-1)?.arg) === 1;
}
