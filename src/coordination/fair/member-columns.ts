/**
 * Members as columns, noted once for all budgets when shares are computed. A member has the same place in every column
 * as long as it has seats. The shares of many users are computed from these numbers, since visiting every member's
 * objects for each budget takes longer than all arithmetic.
 */
import type { Member } from './fair-seats.js';
import type { SilentServers } from './silent-servers.js';

export class MemberColumns {
  /** The highest demand since the shares were last computed. */
  peaks = new Float64Array(0);
  held = new Float64Array(0);
  /** NaN for one that does not wait. */
  waitingSince = new Float64Array(0);
  /** The most that each can use: no more than the budgets give it that were shared out before. */
  usable = new Float64Array(0);
  /** The smallest share that any budget gave in this round, and the smallest demand of its user there. */
  shares = new Float64Array(0);
  demands = new Float64Array(0);
  hadClients = new Uint8Array(0);
  readonly #members: (Member | undefined)[] = [];
  readonly #freePlaces: number[] = [];

  /** Takes a place. */
  add(member: Member): void {
    member.place = this.#freePlaces.pop() ?? this.#members.length;
    this.#members[member.place] = member;
  }

  remove(member: Member): void {
    this.#members[member.place] = undefined;
    this.#freePlaces.push(member.place);
  }

  /** Number of held leases that a limit counts. */
  note(silent: SilentServers): void {
    this.#makeRoom();
    const isSilent = silent.size > 0;
    for (let place = 0; place < this.#members.length; place++) {
      const member = this.#members[place];
      if (member?.isLimited !== true) continue;
      this.peaks[place] = member.takePeak();
      this.held[place] = member.held;
      this.waitingSince[place] = member.waitingSince;
      this.usable[place] = isSilent ? silent.mostOf(member) : Number.POSITIVE_INFINITY;
      this.shares[place] = this.demands[place] = Number.POSITIVE_INFINITY;
      this.hadClients[place] = member.hasClients ? 1 : 0;
    }
  }

  /** Notes that a budget gives a member `share` of the `demand` of its user. Leases that it holds remain usable. */
  give(place: number, share: number, demand: number): void {
    const given = Math.max(share, this.held[place] as number);
    if (given < (this.usable[place] as number)) this.usable[place] = given;
    if (share < (this.shares[place] as number)) this.shares[place] = share;
    if (demand < (this.demands[place] as number)) this.demands[place] = demand;
  }

  /** Forgets which members a limit counts; that is computed again. */
  forgetLimits(): void {
    for (const member of this.#members) member?.forgetLimits();
  }

  /** Keeps no values: every computation notes all of them anew. */
  #makeRoom(): void {
    if (this.peaks.length >= this.#members.length) return;
    const room = Math.max(16, 2 * this.#members.length);
    this.peaks = new Float64Array(room);
    this.held = new Float64Array(room);
    this.waitingSince = new Float64Array(room);
    this.usable = new Float64Array(room);
    this.shares = new Float64Array(room);
    this.demands = new Float64Array(room);
    this.hadClients = new Uint8Array(room);
  }
}
