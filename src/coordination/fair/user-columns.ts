/** The users of one budget as columns: their recent needs, and the place of their pools. */
import { DemandColumns } from '../../core/demand-columns.js';
import { intervalsIn } from '../../core/demand-tracker.js';
import { Forecaster } from '../../core/forecaster.js';
import { formerPlaces } from '../../core/former-places.js';
import { checkUser } from '../../core/share-request.js';
import type { FairPolicy } from './fair-policy.js';
import type { FairUser } from './fair-seats.js';
import type { MemberColumns } from './member-columns.js';

/** One computation of the shares. */
export interface ShareLook {
  readonly policy: FairPolicy;
  readonly now: number;
  /** True at the end of an interval; false for a computation in between. */
  readonly isRound: boolean;
  readonly members: MemberColumns;
}

/** The place of a user's pool where it has several. */
export const several = -1;

export class UserColumns {
  users: readonly FairUser[] = [];
  /** The place of a user's only pool among the members. */
  members = new Int32Array(0);
  /** The highest recent or expected need. */
  demands = new Float64Array(0);
  /** The share of each that other budgets have decided; NaN where that is not known. */
  followed = new Float64Array(0);
  weights = new Float64Array(0);
  promises = new Float64Array(0);
  maximums = new Float64Array(0);
  /** Time since which a user has no clients; NaN while it has some. */
  #desertedSince = new Float64Array(0);
  #windows: DemandColumns | undefined;
  /** Remembers the demand of users, while forecasts are on. */
  #forecaster: Forecaster | undefined;

  /** Gives users their new places. Newcomers must be noted. */
  arrange(users: readonly FairUser[]): void {
    const from = formerPlaces(this.users, users);
    this.users = users;
    this.members = moved(this.members, from, new Int32Array(from.length));
    this.demands = moved(this.demands, from, new Float64Array(from.length));
    this.followed = moved(this.followed, from, new Float64Array(from.length));
    this.weights = moved(this.weights, from, new Float64Array(from.length));
    this.promises = moved(this.promises, from, new Float64Array(from.length));
    this.maximums = moved(this.maximums, from, new Float64Array(from.length));
    this.#desertedSince = moved(this.#desertedSince, from, new Float64Array(from.length).fill(Number.NaN));
    this.#windows?.move(from);
  }

  places(): readonly number[] {
    return this.users.map((_, place) => place);
  }

  /** The pools of a user, or its terms, may be others than before. */
  note(place: number): void {
    const { name: key, seats, terms } = this.users[place] as FairUser;
    checkUser({ key, demand: 0, isActive: true, ...terms });
    this.followed[place] = Number.NaN;
    this.weights[place] = terms.weight;
    this.promises[place] = terms.minimum;
    this.maximums[place] = terms.maximum;
    const [only] = seats;
    this.members[place] = only !== undefined && seats.length === 1 ? only.member.place : several;
  }

  /** Sets the demand of the user from the column, whatever it was before. */
  tellDemand(place: number): void {
    (this.users[place] as FairUser).demand = this.demands[place] as number;
  }

  /** Forgets all demand, because the window changes its length. */
  forgetDemand(): void {
    this.#windows = undefined;
  }

  /** Finds the demand of every user. */
  lookAtDemand(look: ShareLook): void {
    const windows = this.#windowsFor(look.policy);
    const { users, members } = this;
    const { peaks, usable, hadClients } = look.members;
    for (let place = 0; place < users.length; place++) {
      const member = members[place] as number;
      if (member !== several)
        this.#note(place, look, peaks[member] as number, usable[member] as number, hadClients[member] === 1);
      else this.#noteSeveral(place, look);
    }
    if (look.isRound) windows.endInterval();
  }

  #noteSeveral(place: number, look: ShareLook): void {
    const { peaks, usable, hadClients } = look.members;
    let [peak, most, hasClients] = [0, 0, false];
    for (const { member } of (this.users[place] as FairUser).seats) {
      peak += peaks[member.place] as number;
      most += usable[member.place] as number;
      hasClients ||= hadClients[member.place] === 1;
    }
    this.#note(place, look, peak, most, hasClients);
  }

  #note(place: number, look: ShareLook, peak: number, most: number, hasClients: boolean): void {
    const windows = this.#windows as DemandColumns;
    const { policy } = look;
    let present = windows.presentOf(place);
    if (this.#isDeserted(place, hasClients, look) && peak === 0) windows.reset(place);
    else {
      windows.note(place, peak);
      present = windows.presentOf(place);
    }
    const measured = Math.min(windows.peaks[place] as number, most);
    const demand = policy.foresees ? this.#foreseen(place, look, measured, most, present) : measured;
    if (demand === this.demands[place]) return;
    this.demands[place] = demand;
    (this.users[place] as FairUser).demand = demand;
  }

  /** A user without clients needs nothing, after a moment in which they may come back. */
  #isDeserted(place: number, hasClients: boolean, { now, policy }: ShareLook): boolean {
    const desertedSince = this.#desertedSince;
    if (hasClients) {
      desertedSince[place] = Number.NaN;
      return false;
    }
    if (Number.isNaN(desertedSince[place])) desertedSince[place] = now;
    return now - (desertedSince[place] as number) >= policy.clientGrace;
  }

  /** `present`: the peak of the present interval. */
  #foreseen(place: number, look: ShareLook, measured: number, most: number, present: number): number {
    this.#forecaster ??= new Forecaster();
    const { name, terms } = this.users[place] as FairUser;
    if (look.isRound) this.#forecaster.record(name, present, look.now);
    const { demand } = this.#forecaster.estimate(name, measured, look.now, terms.maximum);
    return Math.min(demand, most);
  }

  #windowsFor({ demandWindow: window, rebalanceInterval: interval }: FairPolicy): DemandColumns {
    if (this.#windows === undefined) {
      this.#windows = new DemandColumns(intervalsIn({ window, interval }));
      this.#windows.move(new Int32Array(this.users.length).fill(-1));
    }
    return this.#windows;
  }
}

/** The values of newcomers are in `to` already. */
function moved<Column extends Float64Array | Int32Array>(
  column: Column,
  from: Int32Array,
  to: Column,
): Column {
  for (let place = 0; place < from.length; place++) {
    const former = from[place] as number;
    if (former !== -1) to[place] = column[former] as number;
  }
  return to;
}
