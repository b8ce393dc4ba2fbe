/**
 * Limits how many unproven pools are tried at once: pools that no server has accepted yet. A client that invents names of
 * databases or users makes a pool with each, until the server refuses it. Clients with known names do not wait for these.
 */
import { type Linked, LinkedList } from '../../kernel/linked-list.js';
import { SqlState } from '../../wire/sql-states.js';
import { Refusal } from '../clients/refusal.js';
import { fatal } from '../clients/session-errors.js';
import { serverOf } from '../config/fleet-settings.js';
import type { DatabaseConfig } from '../config/pooler-config.js';

/** Limit of waiters; more are refused at once. */
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

  /** Resolves with a function to call once afterwards. Rejects when the signal fires, or with a `Refusal`. */
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

  /** Hands the place to the longest waiter. */
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

/** One gate per server: a server that does not answer delays no other. */
export class NewPoolGates {
  readonly #isUnproven: (database: DatabaseConfig, user: string) => boolean;
  readonly #most: () => number;
  readonly #byServer = new Map<string, NewPoolGate>();

  constructor(isUnproven: (database: DatabaseConfig, user: string) => boolean, most: () => number) {
    this.#isUnproven = isUnproven;
    this.#most = most;
  }

  /** Undefined, and at once, where a server has accepted that pool before. */
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
    // Another login was accepted while this one waited.
    leave();
    return undefined;
  }
}
