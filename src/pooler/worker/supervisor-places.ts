/** Places of a worker's clients: the supervisor counts those of all workers, and is asked before a client is accepted. */
import type { Calls } from '../messages/calls.js';
import type { FromWorker } from '../messages/messages.js';

/** A supervisor that does not answer in this time is in trouble; the client gets an error. */
const timeoutMs = 10_000;

export class SupervisorPlaces {
  readonly #calls: Calls;
  readonly #send: (message: FromWorker) => void;

  constructor(calls: Calls, send: (message: FromWorker) => void) {
    this.#calls = calls;
    this.#send = send;
  }

  /** Takes a place, or rejects with a `Refusal`. The returned function gives the place back and must be called once. */
  async take(user: string, database: string): Promise<() => void> {
    const place = (await this.#calls.ask('place', { user, database }, { timeoutMs })) as number;
    return () => this.#send({ kind: 'left', place });
  }
}
