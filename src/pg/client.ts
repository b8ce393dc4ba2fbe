/** A node-postgres client as the pool sees it: the subset of pg.Client, or of a class that stands in for it. */

import { setOwnMethod } from './own-method.js';

export interface Stream {
  readonly closed?: boolean;
  readonly remoteAddress?: string;
  destroy(): unknown;
  end(): unknown;
  once(event: 'close', listener: () => void): unknown;
  readonly writableCorked: number;
  cork?(): void;
  uncork?(): void;
}

/** A bare stand-in may have only `connect` and `on`; everything else is optional and checked before use. */
export interface PgClient {
  connect(callback: (error?: Error | null) => void): unknown;
  on(event: string, listener: (...args: never[]) => void): unknown;
  once?(event: string, listener: (...args: never[]) => void): unknown;
  removeListener?(event: string, listener: (...args: never[]) => void): unknown;
  removeAllListeners?(...events: string[]): unknown;
  listenerCount?(event: string, listener?: (...args: never[]) => void): number;
  query?(config: unknown, values: unknown, callback: QueryCallback): unknown;
  end?(callback?: () => void): unknown;
  ref?(): void;
  unref?(): void;
  isConnected?(): boolean;
  getTransactionStatus?(): string | null;
  release?: (error?: unknown) => void;
  /** Absent in the native client. */
  readonly connection?: {
    readonly stream?: Stream;
    parsedStatements?: object;
    on?(
      event: 'readyForQuery' | 'errorMessage',
      listener: (message: { readonly status?: string }) => void,
    ): unknown;
  };
  readonly connectionParameters?: { readonly query_timeout?: unknown };
  /** Send queries without waiting for the answer to the one before. */
  pipeline?: boolean;
  readonly _queryable?: boolean;
  readonly readyForQuery?: boolean;
  readonly _ending?: boolean;
  _poolUseCount?: number;
  /** The process of the server, and the query under way. */
  readonly processID?: number | null;
  readonly activeQuery?: unknown;
  readonly _activeQuery?: unknown;
}

/** Set on an error of `connect`: another dial at once will do better, for example because the credential was too old. One is made. */
export const dialAgain: unique symbol = Symbol('headgate.dialAgain');

/** Set on an error of `connect`: the kind of failure, where that is not the dial itself. */
export const refillCause: unique symbol = Symbol('headgate.refillCause');

export type PgClientClass = new (options: object) => PgClient;

export type QueryCallback = (error: Error | null | undefined, result?: unknown) => void;

/** True if the client can take another query. */
export function isUsable(client: PgClient): boolean {
  return Boolean(client._queryable) && !client._ending;
}

/** True if the server has answered everything that the client has sent. */
export function isAtRest(client: PgClient): boolean {
  return isUsable(client) && client.readyForQuery === true;
}

/** Older versions of pg keep to themselves what the server says of the transaction. */
export function followTransactions(client: PgClient): void {
  const { connection } = client;
  if (client.getTransactionStatus !== undefined || typeof connection?.on !== 'function') return;
  let now: string | null = null;
  connection.on('readyForQuery', ({ status }) => {
    now = status ?? null;
  });
  setOwnMethod(client, 'getTransactionStatus', () => now);
}

/** True if the client is inside a transaction, as far as it reports that. */
export function isInTransaction(client: PgClient): boolean {
  return (client.getTransactionStatus?.() ?? 'I') !== 'I';
}

/** Text for a warning: the server's process, and what the client is doing, as far as it reports that. */
export function describeClient(client: PgClient): string {
  const { processID } = client;
  // The public name is deprecated where the other one is there.
  const query = '_activeQuery' in client ? client._activeQuery : client.activeQuery;
  const isBusy = query !== undefined && query !== null;
  const doing = isBusy ? 'running a query' : isInTransaction(client) ? 'idle in a transaction' : 'idle';
  return typeof processID === 'number' ? `server process ${processID}, ${doing}` : doing;
}

/** Closes the socket now, whatever is going on. */
export function destroySocket(client: PgClient): void {
  const stream = client.connection?.stream;
  if (stream !== undefined) stream.destroy();
  else client.end?.();
}
