/** The metrics of the pooler, and what they are read from. */
import { systemClock } from '../../runtime/system.js';
import { ownErrorLabels } from '../clients/failure-words.js';
import { swallowedKinds } from '../clients/relay/swallower.js';
import { FamilyReaders, type PoolerFamily, sample } from './family-readers.js';
import { poolMetricTable } from './pool-metric-table.js';
import type { PoolReading } from './pool-reading.js';
import { poolerStates, processMetricTable } from './process-metric-table.js';
import type { ProcessReading } from './process-reading.js';

const secondMs = 1_000;
const ofPool = new FamilyReaders(poolMetricTable);
/** Classes of the errors that PostgreSQL tells clients, beside rare ones, which have a series once they have come. */
const serverErrorClasses = '08 0A 22 23 25 26 28 34 3D 40 42 53 54 55 57 58 XX'.split(' ');
const serverErrorBase = serverErrorClasses.map((word) => sample({ class: word }, 0));
const ownErrorBase = ownErrorLabels.map((labels) => sample({ ...labels }, 0));
const swallowedBase = swallowedKinds.map((what) => sample({ what }, 0));
const noBase: typeof swallowedBase = [];
const ofProcess = new FamilyReaders(processMetricTable);

/** One series per pool, with the labels `database` and `user`. */
export const poolFamilies: readonly PoolerFamily<PoolReading>[] = [
  ofPool.several('headgate_pooler_clients', ({ clients }) => clients.states),
  ofPool.several('headgate_pooler_clients_pinned', ({ clients }) => clients.pinned),
  ofPool.one('headgate_pooler_longest_wait_seconds', ({ clients }) => clients.longestWaitMs / secondMs),
  ofPool.several('headgate_pooler_servers', ({ servers: { pending, idle, inUse, checking, closing } }) => ({
    opening: pending,
    idle,
    active: inUse,
    checking,
    closing,
  })),
  ofPool.one('headgate_pooler_server_limit', ({ pool }) => pool.limit),
  ofPool.several('headgate_pooler_class_demand', ({ pool: { classes: of } }) => ({
    regular: of.regularInUse + of.regularWaiting,
    reserved: of.reservedInUse + of.reservedWaiting,
  })),
  ofPool.several('headgate_pooler_class_in_use', ({ pool: { classes: of } }) => ({
    regular: of.regularInUse,
    reserved: of.reservedInUse,
  })),
  ofPool.several('headgate_pooler_class_capacity', ({ pool }) => ({
    regular: Math.min(pool.limit, pool.classes.regularPart),
    reserved: Math.min(pool.limit, pool.classes.reservedPart),
  })),
  ofPool.several('headgate_pooler_class_waits_total', ({ pool: { classes: of } }) => ({
    regular: of.regularWaits,
    reserved: of.reservedWaits,
  })),
  ofPool.one('headgate_pooler_waiting_for_permit', ({ pool }) => pool.waitingForPermit),
  ofPool.one('headgate_pooler_permit_waits_total', ({ totals }) => totals.permitWaits),
  ofPool.one('headgate_pooler_permit_wait_seconds_total', ({ totals }) => totals.permitWaitedMs / secondMs),
  ofPool.one('headgate_pooler_last_answer_time_seconds', ({ pool: { tally } }) =>
    tally.answeredAt === undefined ? 0 : (Date.now() - systemClock.now() + tally.answeredAt) / secondMs,
  ),
  ofPool.one('headgate_pooler_client_statements', ({ clients }) => clients.statements),
  ofPool.one('headgate_pooler_server_statements', (of) => of.serverStatements),
  ofPool.one('headgate_pooler_queries_total', ({ pool }) => pool.tally.queryTimes.count),
  ofPool.one('headgate_pooler_transactions_total', ({ pool }) => pool.tally.transactionTimes.count),
  ofPool.one('headgate_pooler_received_bytes_total', ({ pool }) => pool.tally.received),
  ofPool.one('headgate_pooler_sent_bytes_total', ({ pool }) => pool.tally.sent),
  ofPool.one('headgate_pooler_assignments_total', ({ totals }) => totals.acquired),
  ofPool.one('headgate_pooler_client_parses_total', ({ pool }) => pool.tally.clientParses),
  ofPool.one('headgate_pooler_server_parses_total', ({ pool }) => pool.tally.serverParses),
  ofPool.one('headgate_pooler_binds_total', ({ pool }) => pool.tally.binds),
  ofPool.one('headgate_pooler_wait_timeouts_total', ({ totals }) => totals.timedOut),
  ofPool.one('headgate_pooler_cancels_total', ({ pool }) => pool.canceller.sent),
  ofPool.one('headgate_pooler_cancel_failures_total', ({ pool }) => pool.canceller.failed),
  ofPool.one('headgate_pooler_cleaned_total', ({ pool }) => pool.tally.cleaned),
  ofPool.one('headgate_pooler_not_cleaned_total', ({ pool }) => pool.tally.notCleaned),
  ofPool.one('headgate_pooler_session_checks_total', ({ pool }) => pool.tally.sessionChecks),
  ofPool.one('headgate_pooler_session_pins_total', ({ pool }) => pool.tally.sessionPins),
  ofPool.one('headgate_pooler_multiplexed_total', ({ pool }) => pool.tally.multiplexed),
  ofPool.one('headgate_pooler_multiplexed_again_total', ({ pool }) => pool.tally.multiplexedAgain),
  ofPool.one('headgate_pooler_long_waits_total', ({ pool }) => pool.tally.longWaits),
  ofPool.one('headgate_pooler_multiplexed', ({ pool }) => pool.followers),
  ofPool.counted(
    'headgate_pooler_swallowed_total',
    ({ pool }) => pool.tally.swallowed,
    (what) => ({ what }),
    ({ pool }) => (pool.plan.keepsSettings ? swallowedBase : noBase),
  ),
  ofPool.several('headgate_pooler_memory_limits_reached_total', ({ pool }) => pool.tally.limitsReached),
  ofPool.one('headgate_pooler_opened_total', ({ totals }) => totals.opened),
  ofPool.several('headgate_pooler_open_failures_total', ({ totals }) => totals.refillFailures),
  ofPool.several('headgate_pooler_discards_total', ({ totals }) => totals.discarded),
  ofPool.counted(
    'headgate_pooler_server_errors_total',
    ({ pool }) => pool.tally.serverErrors,
    (sqlClass) => ({ class: sqlClass }),
    () => serverErrorBase,
  ),
  ofPool.counted(
    'headgate_pooler_own_errors_total',
    ({ pool }) => pool.tally.ownErrors,
    (key) => {
      const [sqlClass = '', reason = ''] = key.split(' ');
      return { class: sqlClass, reason };
    },
    () => ownErrorBase,
  ),
  ofPool.times('headgate_pooler_wait_seconds', ({ pool }) => pool.tally.waitTimes),
  ofPool.times('headgate_pooler_query_seconds', ({ pool }) => pool.tally.queryTimes),
  ofPool.times('headgate_pooler_transaction_seconds', ({ pool }) => pool.tally.transactionTimes),
  ofPool.times('headgate_pooler_dial_seconds', ({ pool }) => pool.tally.dialTimes),
];

/** One series for the process. */
export const processFamilies: readonly PoolerFamily<ProcessReading>[] = [
  ofProcess.samples('headgate_pooler_info', ({ version }) => [sample({ version }, 1)]),
  ofProcess.several('headgate_pooler_state', ({ state }) =>
    Object.fromEntries(poolerStates.map((word) => [word, Number(word === state)])),
  ),
  ofProcess.one('headgate_pooler_start_time_seconds', (of) => of.startedAtMs / secondMs),
  ofProcess.one('headgate_pooler_connected_clients', (of) => of.clients),
  ofProcess.one('headgate_pooler_client_limit', ({ clientLimit }) => clientLimit),
  ofProcess.one('headgate_pooler_login_clients', ({ loggingIn }) => loggingIn),
  ofProcess.one('headgate_pooler_console_clients', ({ consoles }) => consoles),
  ofProcess.one('headgate_pooler_pools', ({ pools }) => pools),
  ofProcess.one('headgate_pooler_logins_total', ({ logins }) => logins.succeeded),
  ofProcess.several('headgate_pooler_login_failures_total', ({ logins }) => logins.failed),
  ofProcess.several('headgate_pooler_memory_bytes', ({ memory }) => ({
    resident: memory.rss,
    heap_used: memory.heapUsed,
    heap_total: memory.heapTotal,
    external: memory.external,
  })),
  ofProcess.one('headgate_pooler_cpu_seconds_total', ({ cpuMicros }) => cpuMicros / 1_000_000),
  ofProcess.several('headgate_pooler_event_loop_delay_seconds', ({ loopDelay }) => loopDelay),
];
