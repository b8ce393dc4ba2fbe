/** A client that comes back inside an open transaction: `onOpenTransaction` says what becomes of it before anyone else has it. */
import { withoutContext } from '../runtime/async-context.js';
import { asError } from '../runtime/promise-dialer.js';
import { ProgramTimer } from '../runtime/time-source.js';
import { isInTransaction } from './client.js';
import type { PgConnection } from './pg-connection.js';

export type OnOpenTransaction = 'rollback' | 'discard' | 'warn' | 'keep';

export const openTransactionChoices: readonly OnOpenTransaction[] = ['rollback', 'discard', 'warn', 'keep'];

/** Rolls back, and says how it went; no caller has the client meanwhile. One that does not answer in time has failed. */
export function rollBackFirst(
  connection: PgConnection,
  timeoutMs: number,
  done: (failure: Error | undefined) => void,
): void {
  withoutContext(rollBack, { connection, timeoutMs, done });
}

interface Rollback {
  readonly connection: PgConnection;
  readonly timeoutMs: number;
  readonly done: (failure: Error | undefined) => void;
}

function rollBack({ connection, timeoutMs, done }: Rollback): void {
  const { client } = connection;
  connection.isRollingBack = true;
  const finish = (error: Error | null | undefined): void => {
    if (!connection.isRollingBack) return;
    timer.clear();
    connection.isRollingBack = false;
    const failure = isInTransaction(client) ? new Error('The transaction is still open.') : undefined;
    done(error ?? failure);
  };
  const timer = new ProgramTimer(() => finish(new Error('ROLLBACK was not answered in time.')), timeoutMs);
  try {
    client.query?.('ROLLBACK', undefined, finish);
  } catch (error) {
    finish(asError(error));
  }
}
