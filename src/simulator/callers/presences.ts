/** Callers of one tenant in one service. */
import type { ServiceProcess } from '../process/service-process.js';
import type { Presence } from './caller.js';

/** How many of a tenant are in a service: those of an earlier process do not count. */
export class Presences {
  #process: ServiceProcess | undefined;
  #presence: Presence = { count: 0, served: 0 };

  in(process: ServiceProcess): Presence {
    if (process !== this.#process) {
      this.#process = process;
      this.#presence = { count: 0, served: 0 };
    }
    return this.#presence;
  }

  /** How many of them had a connection until now. */
  endServed(process: ServiceProcess): number {
    if (process !== this.#process) return 0;
    const { served } = this.#presence;
    this.#presence.served = 0;
    return served;
  }
}
