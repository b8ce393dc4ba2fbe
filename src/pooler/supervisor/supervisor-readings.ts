/** Numbers of all processes together, for the metrics and the page. */

import { Pauses } from '../../runtime/pauses.js';
import { systemClock } from '../../runtime/system.js';
import type { LocalRates } from '../budgets/connection-rates.js';
import type { ShareLog } from '../budgets/share-log.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { FamilyReading } from '../metrics/family-reading.js';
import { joinReadings, readShares } from '../metrics/family-readings.js';
import { fleetReadings } from '../metrics/fleet-families.js';
import { readHost } from '../metrics/host-families.js';
import type { Digest } from '../process/page-digest.js';
import type { PoolerHost } from '../process/pooler.js';
import { mostQuietUsers, type PoolerFacts } from '../process/pooler-source.js';
import type { ConsoleCommands } from './console-commands.js';
import type { SlotBroker } from './slot-broker.js';
import type { WorkerSet } from './worker-set.js';

const metricsTimeoutMs = 5_000;

export interface ReadingParts {
  readonly config: () => PoolerConfig;
  readonly host: PoolerHost;
  readonly workers: () => WorkerSet;
  readonly controls: ConsoleCommands;
  readonly slots: SlotBroker;
  readonly rates: LocalRates;
  readonly shareLog: ShareLog;
}

export class SupervisorReadings {
  readonly #parts: ReadingParts;

  constructor(parts: ReadingParts) {
    this.#parts = parts;
  }

  /** Digests of the workers. One that does not answer is left out. */
  async digests(top: number): Promise<Digest[]> {
    const answers = await Promise.allSettled(
      this.#parts
        .workers()
        .serving.map(
          async ({ calls }) =>
            (await calls.ask('digest', { top }, { timeoutMs: metricsTimeoutMs })) as Digest,
        ),
    );
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  }

  facts(): PoolerFacts {
    return {
      state: this.#parts.workers().isEnding ? 'draining' : this.#parts.controls.state,
      pausedDatabases: [...this.#parts.controls.paused],
      budgets: this.#parts.slots.budgets.busyStats(mostQuietUsers),
      rebalances: this.#parts.shareLog.changes,
      fleet: this.#parts.host.fleet?.stats() ?? [],
      rates: this.#parts.rates.stats(systemClock.now()),
      workers: this.#parts.workers().all.map((worker) => worker.stateForPeople()),
    };
  }

  /** Metrics of the workers. One that does not answer is left out. */
  async metrics(): Promise<FamilyReading[]> {
    const readings = await Promise.allSettled(
      this.#parts.workers().serving.map(async ({ calls, number }) => ({
        worker: String(number),
        families: (await calls.ask('metrics', {}, { timeoutMs: metricsTimeoutMs })) as FamilyReading[],
      })),
    );
    const ofWorkers = readings.flatMap((reading) => (reading.status === 'fulfilled' ? [reading.value] : []));
    const most = this.#parts.config().observability.metricsMaxPools;
    const { slots, shareLog } = this.#parts;
    const ofShares = { budgets: slots.budgets.stats(most), changes: shareLog.counts, most };
    const shares = await readShares(ofShares, new Pauses());
    const fleet = fleetReadings(this.#parts.host.fleet?.stats() ?? []);
    const host = readHost({ lostLogLines: this.#parts.host.lostLogLines?.() ?? 0 });
    return [...joinReadings(ofWorkers), ...shares, ...fleet, ...host];
  }
}
