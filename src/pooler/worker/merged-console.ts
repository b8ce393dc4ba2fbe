/** Console of a worker: it shows all workers, and its commands apply to all of them. */

import type { Endpoint } from '../../net/endpoint.js';
import type { PoolerControls, PoolerView } from '../console/pooler-view.js';
import { AllWorkersControls } from '../messages/all-workers-controls.js';
import type { Calls } from '../messages/calls.js';
import { MergedView } from '../messages/merged-view.js';
import type { SnapshotRequest, WorkerSnapshots } from '../messages/worker-snapshot.js';

/** Timeout of the supervisor's answer; the supervisor gives each worker less. */
const snapshotTimeoutMs = 10_000;

export class MergedConsole {
  /** Commands for all workers. */
  readonly controls: PoolerControls;
  readonly #calls: Calls;
  readonly #endpoints: readonly Endpoint[];

  constructor(calls: Calls, endpoints: readonly Endpoint[]) {
    this.controls = new AllWorkersControls((control, signal) => calls.ask('control', control, { signal }));
    this.#calls = calls;
    this.#endpoints = endpoints;
  }

  /** Merges snapshots of all workers. */
  async gather(local: PoolerView, wanted: SnapshotRequest): Promise<PoolerView> {
    const looks = (await this.#calls.ask('snapshot', wanted, {
      timeoutMs: snapshotTimeoutMs,
    })) as WorkerSnapshots;
    return new MergedView(local, looks, this.#endpoints);
  }
}
