// A coordinator that counts leases, and the network in between, which delays and loses what it likes.
import type { LeaseCall, LeasesFromOptions } from '../../src/coordination/lease-functions.js';
import type { VirtualCoordination } from './virtual-coordination.js';

export type Fate =
  | 'answered'
  /** Fails before it has arrived. */
  | 'request_lost'
  /** Fails after it took effect. */
  | 'answer_lost'
  /** Never arrives, and nobody says so. */
  | 'silent_before'
  /** Takes effect, and nobody says so. */
  | 'silent_after';

export interface Manner {
  readonly fate: Fate;
  readonly requestMs: number;
  readonly answerMs: number;
}

export type Operation = 'acquire' | 'release' | 'cancel';

export class FakeCoordinator {
  readonly #world: VirtualCoordination;
  /** How many this process may have. */
  limit: number;
  /** The leases that are taken, as it counts them. */
  counted = 0;
  readonly calls: { readonly operation: Operation; readonly count: number; readonly id: string }[] = [];
  manner: (operation: Operation) => Manner = () => ({ fate: 'answered', requestMs: 1, answerMs: 1 });
  readonly #granted = new Map<string, number>();
  readonly #cancelled = new Set<string>();
  readonly #released = new Set<string>();

  constructor(world: VirtualCoordination, limit: number) {
    this.#world = world;
    this.limit = limit;
  }

  readonly functions: Required<Pick<LeasesFromOptions, Operation>> = {
    acquire: (count, call) => this.#carry('acquire', count, call, () => this.#acquire(count, call.id)),
    release: (count, call) => this.#carry('release', count, call, () => this.#release(count, call.id)),
    cancel: (count, call) => this.#carry('cancel', count, call, () => this.#cancel(call.id)),
  };

  /** The leases belong to another process from now on. */
  takeAway(count: number): void {
    this.counted -= count;
    this.limit -= count;
  }

  #carry<T>(operation: Operation, count: number, { id }: LeaseCall, effect: () => T): Promise<T> {
    this.calls.push({ operation, count, id });
    const { fate, requestMs, answerMs } = this.manner(operation);
    const arrives = fate !== 'request_lost' && fate !== 'silent_before';
    return new Promise((resolve, reject) => {
      this.#world.plan(requestMs, () => {
        const answer = arrives ? effect() : undefined;
        if (fate === 'silent_before' || fate === 'silent_after') return;
        this.#world.plan(answerMs, () => {
          if (fate === 'answered') resolve(answer as T);
          else reject(new Error(`${operation}: ${fate}`));
        });
      });
    });
  }

  #acquire(count: number, id: string): boolean {
    if (this.#cancelled.has(id) || this.counted + count > this.limit) return false;
    this.#granted.set(id, count);
    this.counted += count;
    return true;
  }

  #release(count: number, id: string): void {
    if (this.#released.has(id)) return;
    this.#released.add(id);
    this.counted -= count;
  }

  #cancel(id: string): void {
    if (this.#cancelled.has(id)) return;
    this.#cancelled.add(id);
    this.counted -= this.#granted.get(id) ?? 0;
  }
}
