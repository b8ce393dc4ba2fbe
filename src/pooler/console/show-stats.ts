/** SHOW STATS and its relatives. */
import { averagesOf, type Counters, sumOf } from './counters.js';
import type { PoolerView, StatsRecord } from './pooler-view.js';
import { numeric, type Show, showEach, text } from './show.js';

/** PgBouncer's names for one counter, which differ between commands. */
interface CounterNames {
  readonly key: keyof Counters;
  readonly total: string;
  readonly average: string;
  /** Names in SHOW STATS_TOTALS and SHOW STATS_AVERAGES. */
  readonly subtotal: string;
  readonly subaverage: string;
  /** Name in SHOW TOTALS, after `total_` and `avg_`. */
  readonly sum: string;
}

const counters: readonly CounterNames[] = [
  alike('serverAssignments', 'server_assignment_count'),
  alike('clientLogins', 'client_login_count'),
  alike('transactions', 'xact_count'),
  alike('queries', 'query_count'),
  {
    key: 'bytesReceived',
    total: 'total_received',
    average: 'avg_recv',
    subtotal: 'bytes_received',
    subaverage: 'bytes_received',
    sum: 'client_bytes',
  },
  {
    key: 'bytesSent',
    total: 'total_sent',
    average: 'avg_sent',
    subtotal: 'bytes_sent',
    subaverage: 'bytes_sent',
    sum: 'server_bytes',
  },
  alike('transactionMicros', 'xact_time'),
  alike('queryMicros', 'query_time'),
  alike('waitMicros', 'wait_time'),
  ofStatements('clientParses', 'client_parse_count'),
  ofStatements('serverParses', 'server_parse_count'),
  ofStatements('binds', 'bind_count'),
];

/** Counters that PgBouncer does not have. They come last. */
const ownCounters: readonly CounterNames[] = [
  alike('sessionChecks', 'session_check_count'),
  alike('sessionPins', 'session_pin_count'),
  alike('swallowed', 'swallowed_count'),
  alike('multiplexed', 'multiplexed_count'),
  alike('multiplexedAgain', 'multiplexed_again_count'),
  alike('longWaits', 'long_wait_count'),
];

function alike(key: keyof Counters, name: string): CounterNames {
  return {
    key,
    total: `total_${name}`,
    average: `avg_${name}`,
    subtotal: name,
    subaverage: name,
    sum: name,
  };
}

function ofStatements(key: keyof Counters, name: string): CounterNames {
  return { ...alike(key, name), subaverage: `avg_${name}`, sum: `ps_${name}` };
}

/** Statistics of one database. */
interface Stats {
  readonly database: string;
  readonly total: Counters;
  readonly average: Counters;
}

function statsOf(view: PoolerView): Stats[] {
  const { databases, windowMs } = view.stats();
  return databases.map(({ database, total, before }) => ({
    database,
    total,
    average: averagesOf(total, before, windowMs),
  }));
}

const database = text<Stats>('database', (stats) => stats.database);

export const stats: Show = showEach<Stats>(
  [
    database,
    ...counters.map(({ key, total }) => numeric<Stats>(total, (of) => of.total[key])),
    ...counters.map(({ key, average }) => numeric<Stats>(average, (of) => of.average[key])),
    ...ownCounters.map(({ key, total }) => numeric<Stats>(total, (of) => of.total[key])),
  ],
  statsOf,
);

export const statsTotals: Show = showEach<Stats>(
  [
    database,
    ...[...counters, ...ownCounters].map(({ key, subtotal }) =>
      numeric<Stats>(subtotal, (of) => of.total[key]),
    ),
  ],
  statsOf,
);

export const statsAverages: Show = showEach<Stats>(
  [database, ...counters.map(({ key, subaverage }) => numeric<Stats>(subaverage, (of) => of.average[key]))],
  statsOf,
);

/** Sums over all databases, one row per number. */
export const totals: Show = showEach<readonly [name: string, value: number]>(
  [text('name', ([name]) => name), numeric('value', ([, value]) => value)],
  (view) => sumsOf(view.stats()),
);

function sumsOf({ databases, windowMs }: StatsRecord): (readonly [name: string, value: number])[] {
  const total = sumOf(databases.map((of) => of.total));
  const before = sumOf(databases.map((of) => of.before));
  const average = averagesOf(total, before, windowMs);
  return [
    ...counters.map(({ key, sum }) => [`total_${sum}`, total[key]] as const),
    ...counters.map(({ key, sum }) => [`avg_${sum}`, average[key]] as const),
  ];
}
