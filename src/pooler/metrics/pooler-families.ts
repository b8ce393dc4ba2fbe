/** Metrics of the pooler: their names, meanings and values. */
import { discardReasons, refillCauses } from '../../core/reasons.js';
import { histogramSamples, type Sample } from '../../observe/metric-family.js';
import type { FamilyHead } from '../../observe/metric-text.js';
import type { TimeHistogram } from '../../observe/time-histogram.js';
import { systemClock } from '../../runtime/system.js';
import { pinReasons } from '../../sql/pin-reasons.js';
import { loginFailures } from '../clients/failure-words.js';
import { memoryLimits } from '../config/memory-options.js';
import type { PoolReading } from './pool-reading.js';
import type { ProcessReading } from './process-reading.js';

/** A metric and its own labels; `words` are a label's possible values where they are few. */
export interface PoolerFamily<Reading> extends FamilyHead {
  readonly labels: readonly string[];
  readonly words: readonly string[] | undefined;
  read(reading: Reading): readonly Sample[];
}

type Counts = Readonly<Record<string, number>>;

const prefix = 'headgate_pooler_';
const secondMs = 1_000;
const serverStates = ['opening', 'idle', 'active', 'checking', 'closing'] as const;
const clientStates = ['active', 'waiting', 'idle'] as const;
const poolerStates = ['active', 'paused', 'suspended', 'shutting_down'] as const;
const memoryKinds = ['resident', 'heap_used', 'heap_total', 'external'] as const;
const classes = ['regular', 'reserved'] as const;
const delayQuantiles = ['0.5', '0.99', '1'] as const;

/** One series per pool, with the labels `database` and `user`. */
export const poolFamilies: readonly PoolerFamily<PoolReading>[] = [
  several(
    'gauge',
    'clients',
    'Clients of the pool by what they do.',
    'state',
    clientStates,
    (of) => of.clients,
  ),
  several(
    'gauge',
    'clients_pinned',
    'Clients that keep their server after a transaction, by the reason.',
    'reason',
    pinReasons,
    (of) => Object.fromEntries(pinReasons.map((reason) => [reason, of.pinned.get(reason) ?? 0])),
  ),
  one('gauge', 'longest_wait_seconds', 'How long the client at the head of the queue has waited.', (of) => {
    return of.longestWaitMs / secondMs;
  }),
  several(
    'gauge',
    'servers',
    'Server connections by what they do; together never more than the limit.',
    'state',
    serverStates,
    ({ servers: { pending, idle, lent, checking, closing } }) => ({
      opening: pending,
      idle,
      active: lent,
      checking,
      closing,
    }),
  ),
  one('gauge', 'server_limit', 'What the server connections never exceed.', ({ pool }) => pool.limit),
  several(
    'gauge',
    'class_demand',
    'Server connections that statements (regular) and transactions (reserved) have or wait for.',
    'class',
    classes,
    ({ pool: { classes: of } }) => ({
      regular: of.regularLent + of.regularWaiting,
      reserved: of.reservedLent + of.reservedWaiting,
    }),
  ),
  several(
    'gauge',
    'class_capacity',
    'Server connections that are the part of each class while both wait.',
    'class',
    classes,
    ({ pool }) => ({
      regular: Math.min(pool.limit, pool.classes.regularPart),
      reserved: Math.min(pool.limit, pool.classes.reservedPart),
    }),
  ),
  several(
    'counter',
    'class_waits_total',
    'Times that a client had to wait for a server, by the class of its work.',
    'class',
    classes,
    ({ pool: { classes: of } }) => ({ regular: of.regularWaits, reserved: of.reservedWaits }),
  ),
  one(
    'gauge',
    'waiting_for_permit',
    'Clients for which no server connection is being opened, because the rate limiter has no permit.',
    ({ pool }) => pool.stats().waitingForPermit,
  ),
  one('counter', 'permit_waits_total', 'Waits for a permit of the rate limiter.', ({ totals }) => {
    return totals.permitWaits;
  }),
  one(
    'counter',
    'permit_wait_seconds_total',
    'How long server connections that were wanted waited for a permit of the rate limiter.',
    ({ totals }) => totals.permitWaitedMs / secondMs,
  ),
  one(
    'gauge',
    'last_answer_time_seconds',
    'When a query was answered last, since 1970; 0 where none was.',
    ({ pool: { tally } }) =>
      tally.answeredAt === undefined ? 0 : (Date.now() - systemClock.now() + tally.answeredAt) / secondMs,
  ),
  one('gauge', 'client_statements', 'Prepared statements that clients have a name for.', (of) => {
    return of.clientStatements;
  }),
  one('gauge', 'server_statements', 'Prepared statements that servers keep.', (of) => of.serverStatements),
  one('counter', 'queries_total', 'Queries that were answered.', ({ pool }) => pool.tally.queryTimes.count),
  one('counter', 'transactions_total', 'Transactions that are over.', ({ pool }) => {
    return pool.tally.transactionTimes.count;
  }),
  one('counter', 'received_bytes_total', 'Bytes from clients.', ({ pool }) => pool.tally.received),
  one('counter', 'sent_bytes_total', 'Bytes for clients.', ({ pool }) => pool.tally.sent),
  one('counter', 'assignments_total', 'Times that a client got a server.', ({ totals }) => totals.acquired),
  one('counter', 'client_parses_total', 'Statements that clients prepared.', ({ pool }) => {
    return pool.tally.clientParses;
  }),
  one('counter', 'server_parses_total', 'Statements that servers were made to prepare.', ({ pool }) => {
    return pool.tally.serverParses;
  }),
  one('counter', 'binds_total', 'Executions of prepared statements that were begun.', ({ pool }) => {
    return pool.tally.binds;
  }),
  one('counter', 'wait_timeouts_total', 'Clients that waited for a server in vain.', ({ totals }) => {
    return totals.timedOut;
  }),
  one(
    'counter',
    'cancels_total',
    'Requests to cancel that were passed on.',
    ({ pool }) => pool.canceller.sent,
  ),
  one('counter', 'cancel_failures_total', 'Those among them that did not reach the server.', ({ pool }) => {
    return pool.canceller.failed;
  }),
  one(
    'counter',
    'cleaned_total',
    'Server connections that were cleaned and kept after a client.',
    ({ pool }) => {
      return pool.tally.cleaned;
    },
  ),
  one('counter', 'not_cleaned_total', 'Those that could not be cleaned and were closed.', ({ pool }) => {
    return pool.tally.notCleaned;
  }),
  one(
    'counter',
    'session_checks_total',
    'Questions to servers what a client has left in the session.',
    ({ pool }) => pool.tally.sessionChecks,
  ),
  one(
    'counter',
    'session_pins_total',
    'Those among them after which the client kept its server connection.',
    ({ pool }) => pool.tally.sessionPins,
  ),
  one(
    'counter',
    'multiplexed_total',
    'Statements that were sent behind those of other clients on one server connection.',
    ({ pool }) => pool.tally.multiplexed,
  ),
  one(
    'counter',
    'multiplexed_again_total',
    'Those among them that were sent once more, on their own.',
    ({ pool }) => pool.tally.multiplexedAgain,
  ),
  one(
    'gauge',
    'multiplexed',
    'Statements that are behind those of other clients now.',
    ({ pool }) => pool.followers,
  ),
  {
    ...head(
      'counter',
      'swallowed_total',
      'Statements that servers would refuse and that were answered in their place, by what they are about.',
    ),
    labels: ['what'],
    words: undefined,
    read: ({ pool }) => Array.from(pool.tally.swallowed, ([what, value]) => sample({ what }, value)),
  },
  several(
    'counter',
    'memory_limits_reached_total',
    'Times that a client or a server met a bound of memory, by the setting.',
    'limit',
    memoryLimits,
    ({ pool }) => pool.tally.limitsReached,
  ),
  one('counter', 'opened_total', 'Server connections that were opened.', ({ totals }) => totals.opened),
  several(
    'counter',
    'open_failures_total',
    'Server connections that were wanted and not opened, by what was in the way.',
    'cause',
    refillCauses,
    ({ totals }) => totals.refillFailures,
  ),
  several(
    'counter',
    'discards_total',
    'Server connections that were discarded, by the reason.',
    'reason',
    discardReasons,
    ({ totals }) => totals.discarded,
  ),
  {
    ...head('counter', 'server_errors_total', 'Errors that servers told clients, by the class of SQLSTATE.'),
    labels: ['class'],
    words: undefined,
    read: ({ pool }) =>
      Array.from(pool.tally.serverErrors, ([word, value]) => sample({ class: word }, value)),
  },
  {
    ...head(
      'counter',
      'own_errors_total',
      'Errors that the pooler told clients by itself, by the class of SQLSTATE and the reason.',
    ),
    labels: ['class', 'reason'],
    words: undefined,
    read: ({ pool }) =>
      Array.from(pool.tally.ownErrors, ([key, value]) => {
        const [sqlClass = '', reason = ''] = key.split(' ');
        return sample({ class: sqlClass, reason }, value);
      }),
  },
  times(
    'wait_seconds',
    'How long clients waited that had to wait for a server, also in vain.',
    ({ pool }) => {
      return pool.tally.waitTimes;
    },
  ),
  times('query_seconds', 'From a query to the end of its answer.', ({ pool }) => pool.tally.queryTimes),
  times('transaction_seconds', 'From the first query of a transaction to its end.', ({ pool }) => {
    return pool.tally.transactionTimes;
  }),
  times('dial_seconds', 'How long connecting to the server and logging in took.', ({ pool }) => {
    return pool.tally.dialTimes;
  }),
];

/** One series for the process. */
export const processFamilies: readonly PoolerFamily<ProcessReading>[] = [
  {
    ...head('gauge', 'info', 'Always 1; the version is a label.'),
    labels: ['version'],
    words: undefined,
    read: ({ version }) => [sample({ version }, 1)],
  },
  several(
    'gauge',
    'state',
    '1 for the state that the pooler is in, and 0 for the others.',
    'state',
    poolerStates,
    ({ state }) => Object.fromEntries(poolerStates.map((word) => [word, Number(word === state)])),
  ),
  one('gauge', 'start_time_seconds', 'When it was started, since 1970.', (of) => of.startedAtMs / secondMs),
  one(
    'gauge',
    'connected_clients',
    'Clients that are let in, those of the console aside.',
    (of) => of.clients,
  ),
  one(
    'gauge',
    'client_limit',
    'What those never exceed (max_client_conn).',
    ({ clientLimit }) => clientLimit,
  ),
  one('gauge', 'login_clients', 'Clients that are logging in.', ({ loggingIn }) => loggingIn),
  one('gauge', 'console_clients', 'Clients at the console.', ({ consoles }) => consoles),
  one('counter', 'logins_total', 'Clients that were let in.', ({ logins }) => logins.succeeded),
  several(
    'counter',
    'login_failures_total',
    'Clients that were refused, by the reason.',
    'reason',
    loginFailures,
    ({ logins }) => logins.failed,
  ),
  several('gauge', 'memory_bytes', 'Memory of the process.', 'kind', memoryKinds, ({ memory }) => ({
    resident: memory.rss,
    heap_used: memory.heapUsed,
    heap_total: memory.heapTotal,
    external: memory.external,
  })),
  one(
    'counter',
    'cpu_seconds_total',
    'Processor time of the process.',
    ({ cpuMicros }) => cpuMicros / 1_000_000,
  ),
  several(
    'gauge',
    'event_loop_delay_seconds',
    'How late the event loop was in the last seconds: the median, the 99th percentile and the most.',
    'quantile',
    delayQuantiles,
    ({ loopDelay }) => loopDelay,
  ),
];

type Type = FamilyHead['type'];

export function head(type: Type, name: string, help: string): FamilyHead {
  return { name: prefix + name, help, type };
}

export function sample(labels: Readonly<Record<string, string>>, value: number): Sample {
  return { suffix: '', labels, value };
}

export function one<R>(type: Type, name: string, help: string, read: (of: R) => number): PoolerFamily<R> {
  return { ...head(type, name, help), labels: [], words: undefined, read: (of) => [sample({}, read(of))] };
}

/** All label values exist from the start, so that rates are correct from the start. */
export function several<R>(
  type: Type,
  name: string,
  help: string,
  label: string,
  words: readonly string[],
  read: (of: R) => Counts,
): PoolerFamily<R> {
  return {
    ...head(type, name, help),
    labels: [label],
    words,
    read: (of) => {
      const counts = read(of);
      return words.map((word) => sample({ [label]: word }, counts[word] ?? 0));
    },
  };
}

function times<R>(name: string, help: string, read: (of: R) => TimeHistogram): PoolerFamily<R> {
  return {
    ...head('histogram', name, help),
    labels: [],
    words: undefined,
    read: (of) => histogramSamples(read(of), secondMs),
  };
}
