/** The console of a worker: it shows all workers, and what is done on it is done in all of them. */

import type { Endpoint } from '../../net/endpoint.js';
import type { PoolerConfig } from '../config/pooler-config.js';
import type { PoolerControls, PoolerView, ShutdownMode } from '../console/pooler-view.js';
import type { Calls } from '../messages/calls.js';
import { encodeConfig } from '../messages/config-codec.js';
import type { ControlMessage } from '../messages/control-message.js';
import type { SnapshotRequest, WorkerSnapshots } from '../messages/worker-snapshot.js';
import { MergedView } from './merged-view.js';

/** Of the supervisor, which gives each worker less. */
const lookTimeoutMs = 10_000;

export class MergedConsole implements PoolerControls {
  readonly #calls: Calls;
  readonly #endpoints: readonly Endpoint[];

  constructor(calls: Calls, endpoints: readonly Endpoint[]) {
    this.#calls = calls;
    this.#endpoints = endpoints;
  }

  /** All workers as they are now. */
  async gather(local: PoolerView, wanted: SnapshotRequest): Promise<PoolerView> {
    const looks = (await this.#calls.ask('look', wanted, { timeoutMs: lookTimeoutMs })) as WorkerSnapshots;
    return new MergedView(local, looks, this.#endpoints);
  }

  pause(database: string | undefined, signal: AbortSignal): Promise<void> {
    return this.#tell({ verb: 'pause', database }, signal);
  }

  resume(database: string | undefined): Promise<void> {
    return this.#tell({ verb: 'resume', database });
  }

  disable(database: string): Promise<void> {
    return this.#tell({ verb: 'disable', database });
  }

  enable(database: string): Promise<void> {
    return this.#tell({ verb: 'enable', database });
  }

  reconnect(database: string | undefined): Promise<void> {
    return this.#tell({ verb: 'reconnect', database });
  }

  kill(database: string | undefined): Promise<void> {
    return this.#tell({ verb: 'kill', database });
  }

  async killClient(id: number): Promise<boolean> {
    return (await this.#calls.ask('control', { verb: 'killClient', id })) === true;
  }

  waitClose(database: string | undefined, signal: AbortSignal): Promise<void> {
    return this.#tell({ verb: 'waitClose', database }, signal);
  }

  suspend(signal: AbortSignal): Promise<void> {
    return this.#tell({ verb: 'suspend' }, signal);
  }

  reload(): Promise<void> {
    return this.#tell({ verb: 'reload' });
  }

  applyConfig(config: PoolerConfig): Promise<void> {
    return this.#tell({ verb: 'applyConfig', config: encodeConfig(config) });
  }

  shutdown(mode: ShutdownMode, signal: AbortSignal): Promise<void> {
    return this.#tell({ verb: 'shutdown', mode }, signal);
  }

  async #tell(control: ControlMessage, signal?: AbortSignal): Promise<void> {
    await this.#calls.ask('control', control, { signal });
  }
}
