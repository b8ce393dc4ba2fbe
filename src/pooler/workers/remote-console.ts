/** The console of a worker: it shows all workers, and what is done on it is done in all of them. */

import type { Endpoint } from '../../net/endpoint.js';
import type { PoolerView } from '../admin/pooler-view.js';
import type { Calls } from './calls.js';
import type { LookRequest, Looks } from './look.js';
import { MergedView } from './merged-view.js';
import { SupervisorControls } from './supervisor-controls.js';

/** Of the supervisor, which gives each worker less. */
const lookTimeoutMs = 10_000;

export class RemoteConsole extends SupervisorControls {
  readonly #calls: Calls;
  readonly #endpoints: readonly Endpoint[];

  constructor(calls: Calls, endpoints: readonly Endpoint[]) {
    super((control, signal) => calls.ask('control', control, { signal }));
    this.#calls = calls;
    this.#endpoints = endpoints;
  }

  /** All workers as they are now. */
  async gather(local: PoolerView, wanted: LookRequest): Promise<PoolerView> {
    const looks = (await this.#calls.ask('look', wanted, { timeoutMs: lookTimeoutMs })) as Looks;
    return new MergedView(local, looks, this.#endpoints);
  }
}
