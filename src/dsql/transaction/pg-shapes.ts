/** Pools and clients as transactions need them: the part of node-postgres that stand-ins have, too. */
import type { PoolClient } from 'pg';

/** `pg.Pool`, Headgate's `Pool`, `DsqlPool`, or what works as they do. */
export interface TransactionPool {
  connect(): Promise<PoolClient>;
}

/**
 * The client of a transaction. All of it works but `release()`, `end()`, `connect()` and statements that begin or end
 * transactions, which are refused.
 */
export interface TransactionClient extends PoolClient {}

/** A checked-out client as the code here uses it; what a stand-in may lack is optional. */
export interface CheckedOutClient {
  query(text: string): Promise<{ readonly command?: string | undefined }>;
  release(error?: Error | boolean): void;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  removeListener?(event: 'error', listener: (error: Error) => void): unknown;
  /** `I`: idle, `T`: in a transaction, `E`: in one that has failed. */
  getTransactionStatus?(): string | null;
}

/** Waits for a client. When the signal fires, Headgate's pools end the wait; others' clients are given back when they come. */
export async function checkOut(pool: TransactionPool, signal: AbortSignal): Promise<CheckedOutClient> {
  const takesSignal = 'tryConnect' in pool;
  const connect = pool.connect as (options?: { readonly signal: AbortSignal }) => Promise<PoolClient>;
  const client = await (takesSignal ? connect.call(pool, { signal }) : connect.call(pool));
  if (signal.aborted) {
    client.release();
    throw signal.reason;
  }
  return client as unknown as CheckedOutClient;
}
