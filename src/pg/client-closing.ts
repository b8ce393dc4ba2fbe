/**
 * The end of a client. A client that is not trusted any more says goodbye all the same, and its server gets as long to
 * close it as its state allows; then its socket is destroyed.
 */
import type { PooledConnection } from '../core/pooled-connection.js';
import { ProgramTimer } from '../runtime/time-source.js';
import { isAtRest } from './client.js';
import type { PgConnection } from './pg-connection.js';

/** Calls `closed` when the client's socket is gone; the engine itself sees to `closeTimeoutMillis`. */
export function closeClient(pooled: PooledConnection<PgConnection>, closed: () => void): void {
  const { client, isEndedByServer } = pooled.connection;
  const stream = client.connection?.stream;
  const patienceMs = isEndedByServer ? Number.POSITIVE_INFINITY : patienceWith(pooled);
  if (patienceMs < Number.POSITIVE_INFINITY && stream !== undefined && !stream.closed) {
    const timer = patienceMs > 0 ? new ProgramTimer(() => stream.destroy(), patienceMs) : undefined;
    stream.once('close', () => {
      timer?.clear();
      closed();
    });
    client.end?.(() => {});
    if (timer === undefined) stream.destroy();
  } else if (isEndedByServer && stream !== undefined && !stream.closed) {
    // pg would destroy the socket at once. The server closes its side only when its session has ended.
    stream.once('close', closed);
    stream.end();
  } else if (client.end === undefined) closed();
  else client.end(closed);
}

/** Milliseconds after the goodbye until the socket is destroyed; Infinity: `closeTimeoutMillis` alone decides. */
function patienceWith({ reason, connection }: PooledConnection<PgConnection>): number {
  if (reason === 'broken' || reason === 'failed_check') return 0;
  if (reason !== 'released_with_error') return Number.POSITIVE_INFINITY;
  const { client, patienceMs } = connection;
  return patienceMs === Number.POSITIVE_INFINITY || isAtRest(client) ? patienceMs : 0;
}
