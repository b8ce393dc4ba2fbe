/** SHOW QUERY_STATS and ACTIVE_QUERIES: statistics of statements, and running queries. Times are microseconds. */
import { quantileOf } from '../servers/query-stats.js';
import type { ActiveQueryRecord, QueryRecord } from './pooler-view.js';
import { int4, numeric, type Show, showEach, text, timeText } from './show.js';

function micros(milliseconds: number): number {
  return Math.round(milliseconds * 1_000);
}

/** Statements that took the most time come first. */
export const queryStats: Show = showEach<QueryRecord>(
  [
    text('database', ({ database }) => database),
    text('user', ({ user }) => user),
    numeric('calls', ({ calls }) => calls),
    numeric('errors', ({ errors }) => errors),
    numeric('rows', ({ rows }) => rows),
    numeric('bytes', ({ bytes }) => bytes),
    numeric('total_time', ({ totalMs }) => micros(totalMs)),
    numeric('mean_time', ({ totalMs, calls }) => micros(totalMs / Math.max(1, calls))),
    numeric('p99_time', ({ buckets, longestMs }) => micros(Math.min(longestMs, quantileOf(buckets, 0.99)))),
    numeric('max_time', ({ longestMs }) => micros(longestMs)),
    numeric('wait_time', ({ waitMs }) => micros(waitMs)),
    text('query', (of) => of.text),
  ],
  (view) =>
    view
      .queries()
      .filter(({ calls }) => calls > 0)
      .sort((one, other) => other.totalMs - one.totalMs),
);

/** The longest running or waiting queries come first. */
export const activeQueries: Show = showEach<ActiveQueryRecord>(
  [
    text('database', ({ database }) => database),
    text('user', ({ user }) => user),
    text('state', ({ state }) => state),
    int4('client', ({ clientId }) => clientId),
    int4('server', ({ serverId }) => serverId),
    int4('remote_pid', ({ processId }) => processId),
    text('application_name', ({ applicationName }) => applicationName),
    text('start_time', ({ startedAt }) => timeText(startedAt)),
    numeric('time', ({ ms }) => micros(ms)),
    numeric('wait_time', ({ waitedMs }) => micros(waitedMs)),
    text('query', (of) => of.text),
  ],
  (view) => [...view.activeQueries()].sort((one, other) => other.ms - one.ms),
);
