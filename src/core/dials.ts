/** The dials under way, and abandoned dials without an answer yet. Each holds its slot until it is answered or lost. */
import { InvariantError } from '../kernel/errors.js';
import { LinkedList } from '../kernel/linked-list.js';
import { Dial } from './dialer.js';
import type { Approval } from './ledger.js';

/** A dial that is under way for longer may never arrive: it is given up when others have a better use for its place. */
export const hangsAfterMs = 1_000;

export class Dials<C> {
  readonly #timeout: number;
  readonly #graceAfterAbandoning: number;
  // Deadlines are all equally far away, so each list is in the order of its deadlines.
  readonly #underWay = new LinkedList<Dial<C>>();
  readonly #abandoned = new LinkedList<Dial<C>>();

  constructor(timeout: number, graceAfterAbandoning: number) {
    this.#timeout = timeout;
    this.#graceAfterAbandoning = graceAfterAbandoning;
  }

  get underWay(): number {
    return this.#underWay.size;
  }

  /** The one that is under way for longest. */
  get oldest(): Dial<C> | undefined {
    return this.#underWay.head;
  }

  get nextDeadline(): number {
    return Math.min(this.#underWay.head?.deadline ?? Infinity, this.#abandoned.head?.deadline ?? Infinity);
  }

  begin(approval: Approval, now: number): Dial<C> {
    const dial = new Dial<C>(approval, now, now + this.#timeout);
    this.#underWay.pushTail(dial);
    return dial;
  }

  /** Records the one answer of a dial and returns the state the dial had when it came. */
  answered(dial: Dial<C>): 'dialing' | 'abandoned' | 'lost' {
    const { state } = dial;
    if (state === 'answered') throw new InvariantError('A dial was answered twice.');
    if (state === 'dialing') this.#underWay.remove(dial);
    if (state === 'abandoned') this.#abandoned.remove(dial);
    dial.state = 'answered';
    return state;
  }

  /** Ends the attempt for the pool. Its socket may exist: from now on it counts as closing. */
  abandon(dial: Dial<C>, now: number): void {
    this.#underWay.remove(dial);
    dial.state = 'abandoned';
    dial.slot = dial.approval.commit();
    dial.slot.beginClosing();
    dial.deadline = now + this.#graceAfterAbandoning;
    this.#abandoned.pushTail(dial);
  }

  nextOverdue(now: number): Dial<C> | undefined {
    const dial = this.#underWay.head;
    return dial !== undefined && dial.deadline <= now ? dial : undefined;
  }

  /** No caller wants the dials under way any more. They end by `deadline`, or by their own if that is sooner. */
  hurry(deadline: number): void {
    for (const dial of this.#underWay) {
      if (dial.deadline <= deadline) continue;
      dial.deadline = deadline;
      dial.isUnwanted = true;
    }
  }

  /** Frees the slots of dials that were never answered. */
  loseOverdue(now: number): void {
    for (
      let dial = this.#abandoned.head;
      dial !== undefined && dial.deadline <= now;
      dial = this.#abandoned.head
    ) {
      this.#abandoned.remove(dial);
      dial.state = 'lost';
      dial.slot?.free();
      dial.slot = undefined;
    }
  }
}
