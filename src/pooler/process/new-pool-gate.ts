/**
 * Lets few pools be tried at once that no server has let in yet. Whoever invents names of databases or users makes a pool with each of
 * them, until the server has refused it: those who come with a name that is known do not wait for that.
 */
import { type Linked, LinkedList } from '../../kernel/linked-list.js';
import { SqlState } from '../../wire/sql-states.js';
import { Refusal } from '../clients/refusal.js';
import { fatal } from '../clients/session-errors.js';
import { serverOf } from '../config/fleet-settings.js';
import type { DatabaseConfig } from '../config/pooler-config.js';

/** More than these are refused at once. */
const mostWaiting = 5_000;

class Comer implements Linked<Comer> {
  previous: Comer | undefined;
  next: Comer | undefined;
  readonly enter: () => void;

  constructor(enter: () => void) {
    this.enter = enter;
  }
}

export class NewPoolGate {
  readonly #most: () => number;
  readonly #waiting = new LinkedList<Comer>();
  #inside = 0;

  constructor(most: () => number) {
    this.#most = most;
  }

  get inside(): number {
    return this.#inside;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves with what is to be called once afterwards. Rejects when the signal fires, or with a `Refusal`. */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#inside < this.#most()) this.#inside++;
    else await this.#wait(signal);
    let isInside = true;
    return () => {
      if (isInside) this.#leave();
      isInside = false;
    };
  }

  #wait(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= mostWaiting) throw tooManyNew(mostWaiting);
    return new Promise((resolve, reject) => {
      const comer = new Comer(() => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      });
      this.#waiting.pushTail(comer);
      const giveUp = (): void => {
        this.#waiting.remove(comer);
        reject(signal.reason);
      };
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** The place goes to who waits for longest. */
  #leave(): void {
    const next = this.#inside > this.#most() ? undefined : this.#waiting.head;
    if (next === undefined) this.#inside--;
    else {
      this.#waiting.remove(next);
      next.enter();
    }
  }
}

function tooManyNew(count: number): Refusal {
  return new Refusal(
    fatal(
      SqlState.cannotConnectNow,
      `${count} clients wait already for databases and users that no server has been asked about yet`,
      'Connect again later.',
    ),
  );
}

/** One gate for each server: another that does not answer keeps nobody waiting. */
export class NewPoolGates {
  readonly #isUnproven: (database: DatabaseConfig, user: string) => boolean;
  readonly #most: () => number;
  readonly #byServer = new Map<string, NewPoolGate>();

  constructor(isUnproven: (database: DatabaseConfig, user: string) => boolean, most: () => number) {
    this.#isUnproven = isUnproven;
    this.#most = most;
  }

  /** Undefined, and at once, where a server has let in that pool before. */
  async enter(
    database: DatabaseConfig,
    user: string,
    scope: { readonly signal: AbortSignal },
  ): Promise<(() => void) | undefined> {
    if (!this.#isUnproven(database, user)) return undefined;
    const server = serverOf(database);
    const gate = this.#byServer.get(server) ?? new NewPoolGate(this.#most);
    this.#byServer.set(server, gate);
    const leave = await gate.enter(scope.signal);
    if (this.#isUnproven(database, user)) return leave;
    // While it waited, somebody else was let in.
    leave();
    return undefined;
  }
}
