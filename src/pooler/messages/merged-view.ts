/** Merges all workers into one view: lists all connections, and adds up pools and counts. */

import type { Endpoint } from '../../net/endpoint.js';
import type { FleetStats } from '../budgets/fleet.js';
import { mergeFleet } from '../budgets/fleet-merge.js';
import { databaseFor, type PoolerConfig } from '../config/pooler-config.js';
import { type Counters, noCounters, sumOf } from '../console/counters.js';
import type {
  ActiveQueryRecord,
  ClassRecord,
  ClientRecord,
  DatabaseRecord,
  ListeningRecord,
  PoolerView,
  PoolRecord,
  QueryRecord,
  RebalanceRecord,
  RunState,
  ServerRecord,
  ShareRecord,
  StatsRecord,
  UserRecord,
  WorkerRecord,
} from '../console/pooler-view.js';
import type { DatabaseSnapshot, WorkerSnapshots } from '../messages/worker-snapshot.js';

type Counts = Readonly<Partial<Record<string, number>>>;

export class MergedView implements PoolerView {
  readonly version: string;
  readonly config: PoolerConfig;
  readonly state: RunState;
  readonly isShuttingDown: boolean;
  readonly #looks: WorkerSnapshots;
  readonly #endpoints: readonly Endpoint[];

  constructor(
    local: Pick<PoolerView, 'version' | 'config' | 'isShuttingDown'>,
    looks: WorkerSnapshots,
    endpoints: readonly Endpoint[],
  ) {
    this.version = local.version;
    this.config = local.config;
    this.state = looks.state;
    this.isShuttingDown = local.isShuttingDown;
    this.#looks = looks;
    this.#endpoints = endpoints;
  }

  listening(): readonly ListeningRecord[] {
    return this.#endpoints.map((endpoint) => ({
      address: endpoint.kind === 'unix' ? 'unix' : endpoint.host,
      port: endpoint.port,
    }));
  }

  databases(): readonly DatabaseRecord[] {
    const all = this.#looks.snapshots.flatMap(({ databases }) => databases);
    return merged(
      all,
      ({ settings }) => settings.name,
      (same) => this.#databaseRecord(same),
    );
  }

  #databaseRecord(same: readonly [DatabaseSnapshot, ...DatabaseSnapshot[]]): DatabaseRecord {
    const [{ settings }] = same;
    return {
      settings:
        databaseFor(this.config, settings.name) ?? Object.freeze({ ...settings, password: undefined }),
      isPaused: this.#looks.paused.includes(settings.name),
      isDisabled: same.some(({ isDisabled }) => isDisabled),
      servers: sum(same, ({ servers }) => servers),
      clients: sum(same, ({ clients }) => clients),
    };
  }

  users(): readonly UserRecord[] {
    const all = this.#looks.snapshots.flatMap(({ users }) => users);
    return merged(
      all,
      ({ name }) => name,
      (same) => ({
        name: same[0].name,
        servers: sum(same, ({ servers }) => servers),
        clients: sum(same, ({ clients }) => clients),
      }),
    );
  }

  pools(): readonly PoolRecord[] {
    const all = this.#looks.snapshots.flatMap(({ pools }) => pools);
    return merged(
      all,
      ({ database, user }) => JSON.stringify([database, user]),
      (same) => this.#poolRecord(same),
    );
  }

  #poolRecord(same: readonly [PoolRecord, ...PoolRecord[]]): PoolRecord {
    const [first] = same;
    const { database, user } = first;
    const known = this.#looks.peaks.find((one) => one.database === database && one.user === user);
    const live = sum(same, ({ ledger }) => ledger.live);
    return {
      ...first,
      clients: summedCounts(same.map(({ clients }) => clients)),
      servers: summedCounts(same.map(({ servers }) => servers)),
      longestWaitMs: Math.max(...same.map(({ longestWaitMs }) => longestWaitMs)),
      shortage: same.find(({ shortage }) => shortage !== undefined)?.shortage,
      waitCause: same.find(({ waitCause }) => waitCause !== undefined)?.waitCause,
      dialFailure: same.find(({ dialFailure }) => dialFailure !== undefined)?.dialFailure,
      ledger: {
        // The size applies to all workers together.
        limit: Math.max(...same.map(({ ledger }) => ledger.limit)),
        pending: sum(same, ({ ledger }) => ledger.pending),
        live,
        closing: sum(same, ({ ledger }) => ledger.closing),
        peak: known?.peak ?? live,
      },
      discarded: summedCounts(same.map(({ discarded }) => discarded)) as Record<string, number>,
    };
  }

  clients(): readonly ClientRecord[] {
    return this.#looks.snapshots.flatMap(({ clients }) => clients);
  }

  servers(): readonly ServerRecord[] {
    return this.#looks.snapshots.flatMap(({ servers }) => servers);
  }

  stats(): StatsRecord {
    const all = [...this.#looks.snapshots.flatMap(({ stats }) => stats.databases), ...this.#looks.absent];
    return {
      windowMs: Math.max(0, ...this.#looks.snapshots.map(({ stats }) => stats.windowMs)),
      databases: merged(
        all,
        ({ database }) => database,
        (same) => ({
          database: same[0].database,
          total: countersOf(same.map(({ total }) => total)),
          before: countersOf(same.map(({ before }) => before)),
        }),
      ),
    };
  }

  queries(): readonly QueryRecord[] {
    return merged(
      this.#looks.snapshots.flatMap(({ queries }) => queries),
      ({ database, user, text }) => JSON.stringify([database, user, text]),
      (same) => ({
        ...same[0],
        calls: sum(same, ({ calls }) => calls),
        errors: sum(same, ({ errors }) => errors),
        rows: sum(same, ({ rows }) => rows),
        bytes: sum(same, ({ bytes }) => bytes),
        totalMs: sum(same, ({ totalMs }) => totalMs),
        longestMs: Math.max(...same.map(({ longestMs }) => longestMs)),
        waitMs: sum(same, ({ waitMs }) => waitMs),
        buckets: Array.from(same[0].buckets, (_, at) => sum(same, ({ buckets }) => buckets[at] ?? 0)),
      }),
    );
  }

  activeQueries(): readonly ActiveQueryRecord[] {
    return this.#looks.snapshots.flatMap(({ activeQueries }) => activeQueries);
  }

  shares(): readonly ShareRecord[] {
    return this.#looks.shares;
  }

  rebalances(): readonly RebalanceRecord[] {
    return this.#looks.rebalances;
  }

  fleet(): readonly FleetStats[] {
    return mergeFleet(this.#looks.fleet);
  }

  classes(): readonly ClassRecord[] {
    return merged(
      this.#looks.snapshots.flatMap(({ classes }) => classes),
      (of) => JSON.stringify([of.database, of.user, of.class]),
      (same) => ({
        ...same[0],
        part: sum(same, ({ part }) => part),
        inUse: sum(same, ({ inUse }) => inUse),
        waiting: sum(same, ({ waiting }) => waiting),
      }),
    );
  }

  memory(): NodeJS.MemoryUsage {
    const all = this.#looks.snapshots.map(({ memory }) => memory);
    return {
      rss: sum(all, ({ rss }) => rss),
      heapTotal: sum(all, ({ heapTotal }) => heapTotal),
      heapUsed: sum(all, ({ heapUsed }) => heapUsed),
      external: sum(all, ({ external }) => external),
      arrayBuffers: sum(all, ({ arrayBuffers }) => arrayBuffers),
    };
  }

  workers(): readonly WorkerRecord[] {
    return this.#looks.workers.map((worker) => {
      const look = this.#looks.snapshots.find(({ number }) => number === worker.number);
      return {
        ...worker,
        clients: look?.clientCount ?? 0,
        servers: look?.serverCount ?? 0,
        cpuMs: look?.cpuMs ?? 0,
        memoryBytes: look?.memory.rss ?? 0,
      };
    });
  }
}

/** Merges records with the same key, in the order of their first occurrence. */
function merged<One, Result>(
  all: readonly One[],
  keyOf: (one: One) => string,
  merge: (same: readonly [One, ...One[]]) => Result,
): Result[] {
  const groups = new Map<string, [One, ...One[]]>();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return Array.from(groups.values(), merge);
}

function sum<One>(all: readonly One[], count: (one: One) => number): number {
  return all.reduce((before, one) => before + count(one), 0);
}

function summedCounts(all: readonly Counts[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of all)
    for (const [key, count = 0] of Object.entries(one)) counts[key] = (counts[key] ?? 0) + count;
  return counts;
}

function countersOf(all: readonly Counters[]): Counters {
  return all.length === 0 ? noCounters : sumOf(all);
}
