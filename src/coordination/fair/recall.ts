/** One recalled lease: who must release it, and for whom. */
import type { FairHolder } from './fair-holder.js';
import type { FairMember } from './fair-member.js';

export class Recall {
  readonly of: FairMember;
  readonly holder: FairHolder;
  readonly at: number;
  /** For a connection to another server: a hanging dial may be given up for it. */
  readonly isOfHanging: boolean;
  #for: FairMember | undefined;

  constructor(of: FairMember, holder: FairHolder, at: number, isOfHanging: boolean) {
    this.of = of;
    this.holder = holder;
    this.at = at;
    this.isOfHanging = isOfHanging;
    this.#for = undefined;
  }

  /** The member that gets the lease when it comes back; undefined if a budget has shrunk, or for the next claimant. */
  get for(): FairMember | undefined {
    return this.#for;
  }

  set for(whom: FairMember | undefined) {
    this.#for?.awaits(this, false);
    this.#for = whom;
    whom?.awaits(this, true);
  }
}
