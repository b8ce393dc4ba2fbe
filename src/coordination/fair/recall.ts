/** One lease that was asked back: of whom, and for whom. */
import type { FairHolder } from './fair-holder.js';
import type { FairMember } from './fair-member.js';

export class Recall {
  readonly of: FairMember;
  readonly holder: FairHolder;
  readonly at: number;
  /** For a connection to another server: a dial that hangs may be given up for it. */
  readonly isOfHanging: boolean;
  #for: FairMember | undefined;

  constructor(of: FairMember, holder: FairHolder, at: number, isOfHanging: boolean) {
    this.of = of;
    this.holder = holder;
    this.at = at;
    this.isOfHanging = isOfHanging;
    this.#for = undefined;
  }

  /** The member that is to have it when it comes; undefined where a budget has become smaller, or for whoever is next. */
  get for(): FairMember | undefined {
    return this.#for;
  }

  set for(whom: FairMember | undefined) {
    this.#for?.awaits(this, false);
    this.#for = whom;
    whom?.awaits(this, true);
  }
}
