/** Digest of one process for the page: sums over all pools, and the busiest of them. Plain data that can be sent to another process. */

import { discardReasons } from '../../core/reasons.js';
import { countLife, type Lives, noLives } from '../../dashboard/lives.js';
import type { PinRecord, PoolRecord, RunningRecord } from '../../dashboard/observation.js';
import { addTimes, timesOf } from '../../dashboard/time-window.js';
import { FirstFew } from '../../kernel/first-few.js';
import { timeBounds } from '../../observe/time-histogram.js';
import { Pauses } from '../../runtime/pauses.js';
import { systemClock } from '../../runtime/system.js';
import type { ConnectedClient } from '../clients/relay/connected-client.js';
import type { BackendPool } from '../servers/backend-pool.js';
import { clientStateOf } from './console-records.js';
import { pageText, type StatementDigest, shownStatements } from './page-statements.js';
import type { PoolerState } from './pooler-state.js';

/** Digest of one process. */
export interface Digest {
  /** Number of the worker, from 1. */
  readonly worker: number;
  readonly cpuMs: number;
  readonly memoryBytes: number;
  readonly callers: { active: number; waiting: number; idle: number };
  readonly loggingIn: number;
  readonly longestWaitMs: number;
  readonly connections: { opening: number; idle: number; active: number; checking: number; closing: number };
  readonly counters: DigestCounters;
  readonly pools: readonly PoolRecord[];
  readonly poolCount: number;
  readonly pinCount: number;
  readonly pinsByReason: Readonly<Record<string, number>>;
  readonly longestPins: readonly PinRecord[];
  readonly running: readonly RunningRecord[];
  /** The costliest; undefined where there are no statistics. */
  readonly statements: readonly StatementDigest[] | undefined;
  readonly lives: Lives;
  readonly dialError: string | undefined;
}

export interface DigestCounters {
  queries: number;
  transactions: number;
  opened: number;
  openFailures: number;
  waitTimeouts: number;
  receivedBytes: number;
  sentBytes: number;
  readonly errors: Record<string, number>;
  readonly discards: Record<string, number>;
  readonly queryTimes: number[];
  readonly waitTimes: number[];
}

/** Numbers that sessions add to their pool. */
interface PoolCallers {
  active: number;
  waiting: number;
  idle: number;
  longestWaitMs: number;
}

const noTimes: readonly number[] = Object.freeze(new Array(timeBounds.length + 1).fill(0));

export class DigestReader {
  readonly #state: PoolerState;
  /** Queries of each pool at the last digest, to find the busiest pools. */
  readonly #queries = new WeakMap<BackendPool, number>();

  constructor(state: PoolerState) {
    this.#state = state;
  }

  /** `top`: number of rows of each list. Clients are served meanwhile. */
  async read(top: number): Promise<Digest> {
    const pauses = new Pauses();
    const state = this.#state;
    const callers = { active: 0, waiting: 0, idle: 0 };
    const byPool = new Map<BackendPool, PoolCallers>();
    const pins = new FirstFew<ConnectedClient>(top, ({ pinnedAt }) => pinnedAt);
    const running = new FirstFew<ConnectedClient>(top, ({ times }) => times.askedAt);
    const pinsByReason: Record<string, number> = {};
    let pinCount = 0;
    let longestWaitMs = 0;
    const now = systemClock.now();
    const wait = (pool: BackendPool, ms: number): void => {
      const of = callersOf(byPool, pool);
      callers.waiting++;
      of.waiting++;
      of.longestWaitMs = Math.max(of.longestWaitMs, ms);
      longestWaitMs = Math.max(longestWaitMs, ms);
    };
    for (const session of state.sessions) {
      const pause = pauses.afterStep();
      if (pause !== undefined) await pause;
      const doing = clientStateOf(session);
      const { pin, pool } = session;
      if (doing === 'waiting') wait(pool, Math.max(0, now - session.times.waitingSince));
      else {
        const known = doing === 'active' ? 'active' : 'idle';
        callers[known]++;
        callersOf(byPool, pool)[known]++;
        // A pinned client that asks nothing is among the pinned ones.
        if (session.state !== 'idle') running.add(session);
      }
      if (pin === undefined) continue;
      pinCount++;
      pinsByReason[pin] = (pinsByReason[pin] ?? 0) + 1;
      pins.add(session);
    }
    let loggingIn = 0;
    for (const { waitsFor } of state.pendingClients) {
      if (waitsFor === undefined) loggingIn++;
      else wait(waitsFor.pool, Math.max(0, now - waitsFor.since));
    }
    const pools = await this.#readPools(byPool, top, pauses);
    const { user, system } = process.cpuUsage();
    return {
      ...{ worker: 1, cpuMs: Math.round((user + system) / 1_000), memoryBytes: process.memoryUsage.rss() },
      ...{ callers, loggingIn, longestWaitMs, pinCount, pinsByReason },
      ...pools,
      longestPins: pins.list.map(pinRecord),
      running: running.list.map(runningRecord),
      statements: shownStatements(state.queries, top),
    };
  }

  async #readPools(
    byPool: ReadonlyMap<BackendPool, PoolCallers>,
    top: number,
    pauses: Pauses,
  ): Promise<Pick<Digest, 'connections' | 'counters' | 'pools' | 'poolCount' | 'lives' | 'dialError'>> {
    const state = this.#state;
    const connections = { opening: 0, idle: 0, active: 0, checking: 0, closing: 0 };
    const counters = noCounters();
    for (const { queries, transactions, bytesReceived, bytesSent } of state.departed.databases.values()) {
      counters.queries += queries;
      counters.transactions += transactions;
      counters.receivedBytes += bytesReceived;
      counters.sentBytes += bytesSent;
    }
    const lives = noLives();
    const busiest = new FirstFew<BackendPool>(top, (pool) => -this.#busyness(pool, byPool.get(pool)));
    const asked: BackendPool[] = [];
    const errors = { server: new Map<string, number>(), pooler: new Map<string, number>() };
    let poolCount = 0;
    let dialError: string | undefined;
    const now = systemClock.now();
    for (const pool of [...state.pools.pools()]) {
      const pause = pauses.afterStep();
      if (pause !== undefined) await pause;
      poolCount++;
      const counts = pool.counts();
      connections.opening += counts.pending;
      connections.idle += counts.idle;
      connections.active += counts.inUse;
      connections.checking += counts.checking;
      connections.closing += counts.closing;
      addPool(counters, pool);
      addErrors(errors.server, pool.tally.serverErrors);
      addErrors(errors.pooler, pool.tally.ownErrors);
      if (!pool.isUnconnected)
        for (const { pooled } of pool.backends())
          if (pooled !== undefined) countLife(lives, now - pooled.bornAt, pooled.expiresAt - now);
      busiest.add(pool);
      const queries = pool.tally.queryTimes.count;
      // Most pools of thousands are quiet, and need no new entry.
      if (this.#queries.get(pool) !== queries) asked.push(pool);
      dialError ??= pool.dialError?.message;
    }
    for (const pool of asked) this.#queries.set(pool, pool.tally.queryTimes.count);
    nameErrors(counters.errors, errors);
    const pools = busiest.list.map((pool) => poolRecord(pool, byPool.get(pool)));
    return { connections, counters, pools, poolCount, lives, dialError };
  }

  /** Pools with waiting clients rank first, then those with active ones. */
  #busyness(pool: BackendPool, callers: PoolCallers | undefined): number {
    const queries = pool.tally.queryTimes.count;
    const lately = queries - (this.#queries.get(pool) ?? queries);
    return (callers?.waiting ?? 0) * 1e6 + (callers?.active ?? 0) * 1e3 + lately + queries / 1e12;
  }
}

function callersOf(byPool: Map<BackendPool, PoolCallers>, pool: BackendPool): PoolCallers {
  let callers = byPool.get(pool);
  if (callers === undefined) {
    callers = { active: 0, waiting: 0, idle: 0, longestWaitMs: 0 };
    byPool.set(pool, callers);
  }
  return callers;
}

function noCounters(): DigestCounters {
  return {
    ...{
      queries: 0,
      transactions: 0,
      opened: 0,
      openFailures: 0,
      waitTimeouts: 0,
      receivedBytes: 0,
      sentBytes: 0,
    },
    ...{ errors: {}, discards: {}, queryTimes: [...noTimes], waitTimes: [...noTimes] },
  };
}

function addPool(to: DigestCounters, pool: BackendPool): void {
  const { tally } = pool;
  const { opened, dialsFailed, timedOut, discarded } = pool.totals();
  to.queries += tally.queryTimes.count;
  to.transactions += tally.transactionTimes.count;
  to.receivedBytes += tally.received;
  to.sentBytes += tally.sent;
  to.opened += opened;
  to.openFailures += dialsFailed;
  to.waitTimeouts += timedOut;
  for (const reason of discardReasons)
    if (discarded[reason] > 0) to.discards[reason] = (to.discards[reason] ?? 0) + discarded[reason];
  addTimes(to.queryTimes, tally.queryTimes);
  addTimes(to.waitTimes, tally.waitTimes);
}

/** By the words of the tallies: thousands of pools have the same few. */
function addErrors(to: Map<string, number>, counts: ReadonlyMap<string, number>): void {
  for (const [word, count] of counts) {
    const before = to.get(word);
    if (before === undefined || count > 0) to.set(word, (before ?? 0) + count);
  }
}

function nameErrors(
  to: Record<string, number>,
  { server, pooler }: Readonly<Record<'server' | 'pooler', ReadonlyMap<string, number>>>,
): void {
  for (const [sqlClass, count] of server) to[`server ${sqlClass}`] = count;
  for (const [word, count] of pooler) {
    const key = `pooler ${word.slice(word.indexOf(' ') + 1)}`;
    to[key] = (to[key] ?? 0) + count;
  }
}

function poolRecord(pool: BackendPool, callers: PoolCallers | undefined): PoolRecord {
  const { pending, idle, inUse, checking, closing } = pool.counts();
  const { tally } = pool;
  return {
    user: pool.user,
    database: pool.database,
    active: callers?.active ?? 0,
    waiting: callers?.waiting ?? 0,
    idle: callers?.idle ?? 0,
    connections: pending + idle + inUse + checking + closing,
    limit: pool.limit,
    longestWaitMs: Math.round(callers?.longestWaitMs ?? 0),
    isPaused: pool.isPaused,
    shortage: pool.shortage,
    queries: tally.queryTimes.count,
    errors: sumOfCounts(tally.serverErrors) + sumOfCounts(tally.ownErrors),
    queryTimes: timesOf(tally.queryTimes),
    waitTimes: timesOf(tally.waitTimes),
  };
}

function sumOfCounts(counts: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const count of counts.values()) sum += count;
  return sum;
}

function pinRecord({ identity, pin, pinnedAt, told }: ConnectedClient): PinRecord {
  const { id, user, database } = identity;
  const application = told.get('application_name') ?? '';
  return { client: id, user, database, application, reason: pin ?? '', since: pinnedAt };
}

function runningRecord({ identity, times, backend, told, running, state }: ConnectedClient): RunningRecord {
  const { id, user, database } = identity;
  const text = running?.current?.text;
  return {
    client: id,
    user,
    database,
    application: told.get('application_name') ?? '',
    server: backend?.id,
    isIdle: state === 'idle in transaction',
    text: text === undefined ? undefined : pageText(text),
    since: Date.now() - Math.max(0, systemClock.now() - times.askedAt),
  };
}
