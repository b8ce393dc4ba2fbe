/** Console controls that send commands to all workers. */

import type { PoolerConfig } from '../config/pooler-config.js';
import type { PoolerControls, ShutdownMode } from '../console/pooler-view.js';
import { encodeConfig } from './config-codec.js';
import type { ControlMessage } from './control-message.js';

/** Runs a command. */
export type Obey = (control: ControlMessage, signal?: AbortSignal) => Promise<unknown>;

export class AllWorkersControls implements PoolerControls {
  readonly #obey: Obey;

  constructor(obey: Obey) {
    this.#obey = obey;
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
    return (await this.#obey({ verb: 'killClient', id })) === true;
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
    await this.#obey(control, signal);
  }
}
