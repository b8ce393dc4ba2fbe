/**
 * The end of a client. Each says goodbye. Whether its place waits until the server has closed its side depends on what is
 * known of the server: one that has just answered does so within milliseconds, and only then may its place be taken without
 * one session too many; one that may have gone silent must not hold up the next caller, and the socket is destroyed at once.
 */
import type { PooledConnection } from '../core/pooled-connection.js';
import { systemClock } from '../runtime/system.js';
import { ProgramTimer } from '../runtime/time-source.js';
import { isAtRest } from './client.js';
import type { PgConnection } from './pg-connection.js';

/** An answer shows for this long that the server is there. */
const answerHoldsMs = 100;
/** How long a server that was there a moment ago may take to close its side. */
const patienceMs = 250;

/** Calls `closed` when the client's socket is gone; the engine itself sees to `closeTimeoutMillis`. */
export function closeClient(pooled: PooledConnection<PgConnection>, closed: () => void): void {
  const { client, isEndedByServer } = pooled.connection;
  const stream = client.connection?.stream;
  const patience = patienceWith(pooled);
  if (patience === Infinity || stream === undefined || stream.closed) {
    if (client.end === undefined) closed();
    else client.end(closed);
    return;
  }
  const timer = patience > 0 ? new ProgramTimer(() => stream.destroy(), patience) : undefined;
  stream.once('close', () => {
    timer?.clear();
    closed();
  });
  // pg would destroy the socket of a session that the server has ended, before the server has closed its side.
  if (isEndedByServer) stream.end();
  else client.end?.(() => {});
  if (timer === undefined) stream.destroy();
}

/** Milliseconds after the goodbye until the socket is destroyed; Infinity: `closeTimeoutMillis` alone decides. */
function patienceWith({ reason, connection }: PooledConnection<PgConnection>): number {
  if (connection.isEndedByServer) return patienceMs;
  if (reason === 'broken' || reason === 'failed_check') return 0;
  if (reason !== 'released_with_error') return Infinity;
  if (!isAtRest(connection.client) && !connection.isRefused) return 0;
  return systemClock.now() - connection.answeredAt <= answerHoldsMs ? patienceMs : 0;
}
