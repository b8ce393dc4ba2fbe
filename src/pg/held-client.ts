/**
 * Async context of a checked-out client: callbacks of its queries, and events of its cursors, streams and listeners run
 * in the context of the caller's calls. An idle client and its socket have no context.
 */
import { adoptSocket, forgetContext, inPresentContext, withoutContext } from '../runtime/async-context.js';
import { systemClock } from '../runtime/system.js';
import { followTransactions, type PgClient } from './client.js';
import { setOwnMethod } from './own-method.js';
import type { PgConnection } from './pg-connection.js';

type Query = (this: PgClient, ...args: unknown[]) => unknown;

/** Runs without a context what pg's connection sets up for its whole life: above all, a promise for the end of its stream. */
export function prepareClient(client: PgClient): void {
  const { connection } = client;
  followTransactions(client);
  const { attachListeners } = (connection ?? {}) as { readonly attachListeners?: unknown };
  if (typeof attachListeners !== 'function') return;
  setOwnMethod(connection as object, 'attachListeners', (stream: unknown): unknown =>
    withoutContext((of) => attachListeners.call(connection, of) as unknown, stream),
  );
}

/** Call once, when the client is open, which it may have become inside a request. */
export function watchClient(connection: PgConnection): void {
  const { client } = connection;
  const timer: unknown = (client as { readonly connectionTimeoutHandle?: unknown }).connectionTimeoutHandle;
  if (typeof timer === 'object' && timer !== null) forgetContext(timer);
  withoutContext(adoptSocket, client.connection?.stream);
  const answered = (): void => {
    connection.answeredAt = systemClock.coarse();
  };
  client.connection?.on?.('readyForQuery', answered);
  // A query's caller has the error before the server is ready for another.
  client.connection?.on?.('errorMessage', answered);
  const own = Object.hasOwn(client, 'query') ? (client.query as Query) : undefined;
  if (typeof client.query !== 'function') return;
  setOwnMethod(client, 'query', function query(this: PgClient, ...args: unknown[]): unknown {
    if (connection.isHeldByCaller) bindToCaller(connection, args);
    // Looked up each time: a tracer may replace it.
    return (own ?? (Object.getPrototypeOf(client) as { query: Query }).query).apply(this, args);
  });
}

/** The caller that holds the client adds a listener to it: the client's events are its own from now on. */
export function adoptForListener(connection: PgConnection): void {
  if (connection.isHeldByCaller) adopt(connection);
}

/** Queries as promises need no binding: an `await` keeps its context. */
function bindToCaller(connection: PgConnection, args: unknown[]): void {
  const last = args.at(-1);
  if (typeof last === 'function') args[args.length - 1] = inPresentContext(last as () => unknown);
  adoptFor(args[0], connection);
}

/** Until it is given back, the client's events are those of the present caller, if the query emits some of its own. */
export function adoptFor(query: unknown, connection: PgConnection): void {
  if (hasOwnEvents(query)) adopt(connection);
}

/** A cursor, a stream, or a query with a callback inside. */
export function hasOwnEvents(query: unknown): boolean {
  if (typeof query !== 'object') return false;
  const { submit, callback } = (query ?? {}) as { readonly submit?: unknown; readonly callback?: unknown };
  return typeof submit === 'function' || typeof callback === 'function';
}

function adopt(connection: PgConnection): void {
  connection.isAdopted = true;
  adoptSocket(connection.client.connection?.stream);
}

/** The caller gives the client back. */
export function disown(connection: PgConnection): void {
  connection.isHeldByCaller = false;
  if (!connection.isAdopted) return;
  connection.isAdopted = false;
  withoutContext(adoptSocket, connection.client.connection?.stream);
}
