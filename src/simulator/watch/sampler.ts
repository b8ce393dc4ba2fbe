/** Writes down, at regular times, how everything stands. Memory is taken once, and its size is known in advance. */
import { type DiscardReason, discardReasons, refillCauses } from '../../core/reasons.js';
import type { Workload } from '../callers/workload.js';
import { TenantSeries } from '../measures/tenant-series.js';
import { toMicroseconds } from '../measures/wait-histogram.js';
import { zeros } from '../process/process-tally.js';
import type { Service } from '../process/service.js';
import type { Samples, TenantSamples } from '../result.js';
import type { Server } from '../server/server.js';
import type { Timeline } from '../time/timeline.js';

const columnNames = [
  'timeMs',
  'ready',
  'inUse',
  'pending',
  'closing',
  'waiting',
  'target',
  'connectsPerSec',
  'checkouts',
  'emptyEvents',
  'refills',
  'refillFailures',
  'limiterDenies',
  'workStarted',
  'workCompleted',
  'waitP99Ms',
] as const satisfies readonly Exclude<keyof Samples, 'discards'>[];

type Column = (typeof columnNames)[number];

type Row = { [Name in Column]: number } & { readonly discards: Record<DiscardReason, number> };

/** The samples of one service, or of all. */
class SampleTable {
  readonly #columns: readonly Float64Array[];
  readonly #discards: readonly Float64Array[];
  #rows = 0;

  constructor(rows: number) {
    this.#columns = columnNames.map(() => new Float64Array(rows));
    this.#discards = discardReasons.map(() => new Float64Array(rows));
  }

  add(row: Row): void {
    const index = this.#rows++;
    for (let i = 0; i < columnNames.length; i++)
      (this.#columns[i] as Float64Array)[index] = row[columnNames[i] as Column];
    for (let i = 0; i < discardReasons.length; i++)
      (this.#discards[i] as Float64Array)[index] = row.discards[discardReasons[i] as DiscardReason];
  }

  result(): Samples {
    const plain = (column: Float64Array): number[] => Array.from(column.subarray(0, this.#rows));
    const columns = columnNames.map((name, i) => [name, plain(this.#columns[i] as Float64Array)]);
    const discards = discardReasons.map((reason, i) => [reason, plain(this.#discards[i] as Float64Array)]);
    return { ...Object.fromEntries(columns), discards: Object.fromEntries(discards) } as Samples;
  }
}

export class Sampler {
  readonly #timeline: Timeline;
  readonly #server: Server;
  readonly #workload: Workload;
  readonly #all: SampleTable;
  readonly #tables: Map<Service, SampleTable>;
  readonly #tenants: TenantSeries;
  readonly #shares: (() => ReadonlyMap<string, number>) | undefined;
  readonly #sampleMs: number;
  readonly #rows: number;

  constructor(
    timeline: Timeline,
    server: Server,
    workload: Workload,
    services: readonly Service[],
    durationMs: number,
    sampleMs: number,
    shares?: () => ReadonlyMap<string, number>,
  ) {
    this.#timeline = timeline;
    this.#server = server;
    this.#workload = workload;
    this.#sampleMs = sampleMs;
    this.#rows = Math.floor(durationMs / sampleMs) + 1;
    this.#all = new SampleTable(this.#rows);
    this.#tables = new Map(services.map((service) => [service, new SampleTable(this.#rows)]));
    this.#tenants = new TenantSeries(workload.tenants, this.#rows, shares !== undefined);
    this.#shares = shares;
  }

  /** The first sample is of the beginning, before anything has happened. */
  begin(): void {
    this.#plan(0);
  }

  #plan(row: number): void {
    if (row >= this.#rows) return;
    this.#timeline.plan(row * this.#sampleMs, () => {
      this.#sample();
      this.#plan(row + 1);
    });
  }

  #sample(): void {
    const all = emptyRow(this.#timeline.now);
    for (const [service, table] of this.#tables) {
      const row = rowOf(service, this.#timeline.now);
      table.add(row);
      addUp(all, row);
    }
    all.connectsPerSec = this.#server.acceptedPerSecond;
    all.waitP99Ms = this.#workload.recentWaits.takeP99();
    this.#all.add(all);
    this.#tenants.sample(this.#timeline.now, this.#shares?.());
  }

  get all(): Samples {
    return this.#all.result();
  }

  get tenants(): TenantSamples[] {
    return this.#tenants.result();
  }

  of(service: Service): Samples {
    return (this.#tables.get(service) as SampleTable).result();
  }
}

function emptyRow(now: number): Row {
  return { ...zeros(columnNames), timeMs: toMicroseconds(now), discards: zeros(discardReasons) };
}

function addUp(all: Row, row: Row): void {
  for (const name of columnNames) if (name !== 'timeMs') all[name] += row[name];
  for (const reason of discardReasons) all.discards[reason] += row.discards[reason];
}

function rowOf(service: Service, now: number): Row {
  const { work, accepts, wanted, process } = service;
  const counts = process?.pool.counts();
  const totals = service.totals();
  let refillFailures = 0;
  for (const cause of refillCauses) refillFailures += totals.refillFailures[cause];
  return {
    timeMs: toMicroseconds(now),
    ready: counts?.idle ?? 0,
    inUse: counts?.inUse ?? 0,
    pending: counts?.pending ?? 0,
    closing: counts?.closing ?? 0,
    waiting: counts?.waiting ?? 0,
    target: wanted,
    connectsPerSec: accepts.count(now),
    checkouts: totals.checkouts,
    emptyEvents: totals.emptyEvents,
    refills: totals.refills,
    refillFailures,
    limiterDenies: totals.limiterDenies,
    workStarted: work.started,
    workCompleted: work.completed,
    waitP99Ms: work.recentWaits.takeP99(),
    discards: totals.discards,
  };
}
