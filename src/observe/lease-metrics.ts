/** Leases in DynamoDB as Prometheus metrics: what the fleet has, what this instance has, and how the table is doing. */
import type { TableLeasesStats } from '../coordination/dynamodb/table-leases.js';
import type { MetricReading, MetricRegistry, RegisteredMetric } from './metric-registry.js';

/** What leases tell of themselves: `DynamoLeases` is one. */
export interface ObservedLeases {
  stats(): TableLeasesStats;
}

/** A metric of leases, with the label that it has of its own and the words of that. */
export interface LeaseFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  readonly labels: readonly string[];
  readonly words: readonly string[] | undefined;
  /** By the word of its label; without one, by the empty word. */
  read(stats: TableLeasesStats): Readonly<Record<string, number>>;
}

const denials = ['limit', 'gone', 'conflict', 'throttled', 'misconfigured', 'unavailable'] as const;
const failures = ['conflict', 'throttled', 'misconfigured', 'unavailable'] as const;
const states = ['unused', 'ok', 'failing', 'lost', 'ended'] as const;

/** The first two have the names that alerts for Aurora DSQL ask for. */
export const leaseFamilies: readonly LeaseFamily[] = [
  one('gauge', 'dsql_distributed_conn_lease_active', 'Slots that all instances hold.', (of) => of.active),
  one('gauge', 'dsql_distributed_conn_lease_limit', 'Slots that there are for all.', (of) => of.limit),
  one('gauge', 'headgate_lease_owned', 'Slots of this instance.', (of) => of.owned),
  one('gauge', 'headgate_lease_held', 'Slots of this instance that have connections.', (of) => of.held),
  one('gauge', 'headgate_lease_waiting', 'Pools of this instance that wait for a lease.', (of) => of.waiting),
  one('gauge', 'headgate_lease_instances', 'Instances that share the limit.', (of) => of.instances),
  one('gauge', 'headgate_lease_waiting_instances', 'Instances that want more than they have.', (of) => {
    return of.waitingInstances;
  }),
  one('counter', 'headgate_lease_reclaimed_total', 'Slots taken back from instances that are gone.', (of) => {
    return of.reclaimed;
  }),
  one(
    'counter',
    'headgate_lease_repaired_total',
    'By how much the counter was found wrong.',
    (of) => of.repaired,
  ),
  several(
    'counter',
    'headgate_lease_denied_total',
    'Slots wanted and not had.',
    'reason',
    denials,
    (of) => of.denied,
  ),
  several(
    'gauge',
    'headgate_coordinator_state',
    'How the leases are doing: 1 for the present state.',
    'state',
    states,
    (of) => {
      return Object.fromEntries(states.map((state) => [state, of.state === state ? 1 : 0]));
    },
  ),
  one('counter', 'headgate_coordinator_calls_total', 'Calls of the table.', (of) => of.calls.calls),
  one(
    'counter',
    'headgate_coordinator_writes_total',
    'Items that calls were to write.',
    (of) => of.calls.writes,
  ),
  several(
    'counter',
    'headgate_coordinator_failures_total',
    'Calls that failed.',
    'reason',
    failures,
    (of) => {
      return of.calls.failures;
    },
  ),
  one(
    'counter',
    'headgate_coordinator_answers_total',
    'Calls that were answered.',
    (of) => of.calls.answered,
  ),
  one(
    'counter',
    'headgate_coordinator_answer_seconds_total',
    'How long answers took, all together.',
    (of) => {
      return of.calls.answeredMs / 1_000;
    },
  ),
];

function one(
  type: LeaseFamily['type'],
  name: string,
  help: string,
  read: (stats: TableLeasesStats) => number,
): LeaseFamily {
  return { type, name, help, labels: [], words: undefined, read: (stats) => ({ '': read(stats) }) };
}

function several(
  type: LeaseFamily['type'],
  name: string,
  help: string,
  label: string,
  words: readonly string[],
  read: LeaseFamily['read'],
): LeaseFamily {
  return { type, name, help, labels: [label], words, read };
}

/** Leases that are read through one registry. */
export class ExposedLeases {
  readonly #registry: MetricRegistry;
  readonly #sources = new Map<ObservedLeases, Readonly<Record<string, string>>>();
  readonly #metrics: readonly LeaseMetric[];

  constructor(registry: MetricRegistry) {
    this.#registry = registry;
    this.#metrics = leaseFamilies.map((family) => new LeaseMetric(family, this.#sources));
  }

  has(leases: ObservedLeases): boolean {
    return this.#sources.has(leases);
  }

  /** Answers the function that ends it. */
  add(leases: ObservedLeases, labels: Readonly<Record<string, string>>): () => void {
    if (this.#sources.size === 0) for (const metric of this.#metrics) this.#registry.registerMetric(metric);
    this.#sources.set(leases, labels);
    return () => {
      if (!this.#sources.delete(leases) || this.#sources.size > 0) return;
      for (const { name } of this.#metrics) this.#registry.removeSingleMetric(name);
    };
  }
}

class LeaseMetric implements RegisteredMetric {
  readonly name: string;
  readonly type: string;
  readonly #family: LeaseFamily;
  readonly #sources: ReadonlyMap<ObservedLeases, Readonly<Record<string, string>>>;

  constructor(family: LeaseFamily, sources: ReadonlyMap<ObservedLeases, Readonly<Record<string, string>>>) {
    this.name = family.name;
    this.type = family.type;
    this.#family = family;
    this.#sources = sources;
  }

  async get(): Promise<MetricReading> {
    const { name, help, type, labels, read } = this.#family;
    const [label] = labels;
    const values = [...this.#sources].flatMap(([leases, common]) =>
      Object.entries(read(leases.stats())).map(([word, value]) => ({
        labels: { ...common, ...(label !== undefined && { [label]: word }) },
        value,
      })),
    );
    // What is about all instances is the same in each process.
    return { name, help, type, aggregator: name.startsWith('dsql_') ? 'max' : 'sum', values };
  }

  reset(): void {}
}
