/**
 * Help for each tile. A tile that shows metrics says what normal and bad values are in the words of their declarations; the
 * others have words of their own.
 */
import { leaseMetricTable } from '../../src/observe/lease-metric-table.ts';
import { type MetricDeclaration, type MetricTable, unitText } from '../../src/observe/metric-declaration.ts';
import { poolMetricTable as programTable } from '../../src/observe/pool-metric-table.ts';
import { poolMetricTable } from '../../src/pooler/metrics/pool-metric-table.ts';
import { processMetricTable, shareMetricTable } from '../../src/pooler/metrics/process-metric-table.ts';

export type SubjectKind = 'pooler' | 'pool';

const tables = {
  pooler: { ...poolMetricTable, ...processMetricTable, ...shareMetricTable, ...leaseMetricTable },
  pool: { ...programTable, ...leaseMetricTable },
} satisfies Readonly<Record<SubjectKind, MetricTable>>;

export interface Judgement {
  readonly normal: string;
  readonly bad?: string | undefined;
  readonly action?: string | undefined;
}

/** The metrics that a tile shows, of a pooler and of a pool inside a program. */
type TileMetrics = { readonly [Kind in SubjectKind]: readonly (keyof (typeof tables)[Kind])[] };

type TileText = { readonly what: string } & ({ readonly own: Judgement } | { readonly metrics: TileMetrics });

const leaseMetrics = [
  'headgate_coordinator_state',
  'headgate_lease_instances',
  'dsql_distributed_conn_lease_active',
  'dsql_distributed_conn_lease_limit',
  'headgate_lease_owned',
  'headgate_lease_held',
  'headgate_lease_waiting',
] as const;

const tileTexts = {
  budget: {
    what: 'Server connections that may be open at once, and who holds them. The line at the top is the hard cap, the dashed line is what all need together.',
    metrics: {
      pooler: [
        'headgate_pooler_budget_capacity',
        'headgate_pooler_budget_held',
        'headgate_pooler_budget_waiting',
        'headgate_pooler_budget_exceeded_total',
      ],
      pool: [
        'headgate_pool_limit',
        'headgate_pool_connections',
        'headgate_pool_peak',
        'headgate_pool_waiting',
      ],
    },
  },
  figures: {
    what: 'Numbers of the last 10 seconds, with the last 5 minutes as a line.',
    metrics: {
      pooler: [
        'headgate_pooler_queries_total',
        'headgate_pooler_query_seconds',
        'headgate_pooler_wait_seconds',
        'headgate_pooler_clients',
        'headgate_pooler_longest_wait_seconds',
        'headgate_pooler_wait_timeouts_total',
        'headgate_pooler_servers',
        'headgate_pooler_opened_total',
      ],
      pool: [
        'headgate_pool_checkouts_total',
        'headgate_pool_use_seconds',
        'headgate_pool_wait_seconds',
        'headgate_pool_waiting',
        'headgate_pool_timeouts_total',
        'headgate_pool_connections',
        'headgate_pool_opened_total',
      ],
    },
  },
  shares: {
    what: 'What fairness gives each user of the budget (share), what it holds, and what it needs (demand). Shares follow weights. Asks for: for how long the user has asked for one more than it holds; its callers may be served meanwhile.',
    metrics: {
      pooler: [
        'headgate_pooler_user_held',
        'headgate_pooler_user_share',
        'headgate_pooler_user_demand',
        'headgate_pooler_user_wait_seconds',
      ],
      pool: [],
    },
  },
  pools: {
    what: 'The busiest pools, one for each user and database: clients by state, waits and query times of the last 10 seconds. The word under the name says what the pool lacks.',
    metrics: {
      pooler: [
        'headgate_pooler_clients',
        'headgate_pooler_servers',
        'headgate_pooler_server_limit',
        'headgate_pooler_longest_wait_seconds',
        'headgate_pooler_query_seconds',
        'headgate_pooler_wait_seconds',
      ],
      pool: [
        'headgate_pool_connections',
        'headgate_pool_limit',
        'headgate_pool_waiting',
        'headgate_pool_use_seconds',
        'headgate_pool_wait_seconds',
      ],
    },
  },
  rebalances: {
    what: 'Each time that a share changed: who gained, who lost, and why.',
    metrics: { pooler: ['headgate_pooler_share_changes_total'], pool: [] },
  },
  pins: {
    what: 'Clients that keep their server connection beyond a transaction, because something in their session can not move.',
    metrics: { pooler: ['headgate_pooler_clients_pinned'], pool: [] },
  },
  reservoir: {
    what: 'Connections kept ready ahead of need.',
    metrics: {
      pooler: ['headgate_pooler_servers', 'headgate_pooler_open_failures_total'],
      pool: [
        'headgate_pool_min_idle',
        'headgate_pool_low_watermark',
        'headgate_pool_filled',
        'headgate_pool_found_empty_total',
      ],
    },
  },
  lives: {
    what: 'How old connections are, and when the present ones reach the end of their life.',
    own: {
      normal: 'Ends are spread evenly.',
      bad: 'Many end at the same time: they all have to be opened again at once.',
      action: 'Raise the jitter of the lifetime.',
    },
  },
  rates: {
    what: 'How fast connections to each server may be opened: what the bucket holds, and how it fills.',
    metrics: {
      pooler: ['headgate_pooler_waiting_for_permit', 'headgate_pooler_permit_waits_total'],
      pool: ['headgate_pool_waiting_for_permit', 'headgate_pool_permit_waits_total'],
    },
  },
  running: {
    what: 'Callers that have a connection now, the longest first.',
    own: {
      normal: 'Milliseconds.',
      bad: 'Minutes: a transaction that was left open, or a query that needs an index.',
      action: 'Find the client by its application and address below. An operator can end it.',
    },
  },
  statements: {
    what: 'Statements by the time all their calls took, or by their longest call; values left out.',
    own: {
      normal: 'A few statements take most of the time.',
      bad: 'One takes nearly all of it, its longest call takes seconds, or its wait is longer than its time.',
      action: 'Look at its plan with EXPLAIN.',
    },
  },
  errors: {
    what: 'Warnings and errors of the log, the same ones counted; and errors that callers were told, by class. docs/errors.md explains each code.',
    metrics: {
      pooler: ['headgate_pooler_server_errors_total', 'headgate_pooler_own_errors_total'],
      pool: [
        'headgate_pool_timeouts_total',
        'headgate_pool_dial_failures_total',
        'headgate_pool_leaks_total',
      ],
    },
  },
  connections: {
    what: 'All clients and server connections. The search looks at every column.',
    own: {
      normal: 'More clients than servers.',
      bad: 'Clients that wait for long; servers that stay "tested".',
      action: 'An operator can end a client here.',
    },
  },
  fleet: {
    what: 'The processes of this pooler, and what it shares with others. The log says why a process ended.',
    metrics: {
      pooler: [
        'headgate_pooler_start_time_seconds',
        'headgate_pooler_cpu_seconds_total',
        'headgate_pooler_memory_bytes',
        ...leaseMetrics,
      ],
      pool: leaseMetrics,
    },
  },
  audit: {
    what: 'Logins and actions on this page, also those that were refused.',
    own: {
      normal: 'What you and your colleagues did.',
      bad: 'Wrong logins that nobody of you made.',
      action: 'Change the password, and serve the page on the loopback only.',
    },
  },
} satisfies Readonly<Record<string, TileText>>;

export type TileId = keyof typeof tileTexts;

export interface MetricHelp extends Judgement {
  readonly name: string;
  readonly unit: string;
  readonly help: string;
}

export interface TileHelp {
  readonly what: string;
  readonly own: Judgement | undefined;
  readonly metrics: readonly MetricHelp[];
}

export function helpOf(tile: TileId, kind: SubjectKind): TileHelp {
  const text: TileText = tileTexts[tile];
  if ('own' in text) return { what: text.what, own: text.own, metrics: [] };
  const table: MetricTable = tables[kind];
  const metrics = text.metrics[kind].map((name) => {
    const { unit, help, normal, bad, action } = table[name] as MetricDeclaration;
    return { name, unit: unitText(unit), help, normal, bad, action };
  });
  return { what: text.what, own: undefined, metrics };
}
