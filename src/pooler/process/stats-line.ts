/** Numbers of the last period, for the log. */
import { averagesOf, sumOf } from '../console/counters.js';
import type { StatsRecord } from '../console/pooler-view.js';
import type { LogDetails } from '../log.js';

/** Rates per second, and average times. */
export function statsDetails({ databases, windowMs }: StatsRecord): LogDetails {
  const average = averagesOf(
    sumOf(databases.map(({ total }) => total)),
    sumOf(databases.map(({ before }) => before)),
    windowMs,
  );
  return {
    transactions_per_s: average.transactions,
    queries_per_s: average.queries,
    received_bytes_per_s: average.bytesReceived,
    sent_bytes_per_s: average.bytesSent,
    transaction_us: average.transactionMicros,
    query_us: average.queryMicros,
    wait_us: average.waitMicros,
  };
}
