// The laws that hold in a town whatever happens in it, checked after every event.
import { expect } from 'vitest';
import type { Budget, FairUser } from '../../../src/coordination/fair/fair-seats.js';
import { Rank } from '../../../src/coordination/fair/rank.js';
import type { House, Town } from './town.js';

/** More than it takes to look at the budgets once more. */
const leftForMs = 60;

/** All that is missing for the first could be had of the other. A pool that has asked for more than it needs by now lacks nothing. */
function lacksOnly({ member }: House, other: House): boolean {
  if (member === other.member) return false;
  const missing = member.seats.filter(({ budget }) => budget.free < 1).map(({ budget }) => budget);
  const given = other.member.seats.map(({ budget }) => budget);
  return missing.length > 0 && missing.every((budget) => given.includes(budget));
}

export class Laws {
  readonly #town: Town;
  /** Since when someone waits although a lease is free. */
  #idleSince = Number.NaN;
  /** Since when something is idle of a user who has left, while others wait. */
  readonly #leftSince = new Map<House, number>();
  #looks = 0;

  constructor(town: Town) {
    this.#town = town;
    town.onEvent = () => this.judge();
  }

  judge(): void {
    const { houses, connections, line } = this.#town;
    const held = new Map<FairUser | Budget, number>();
    const recalled = new Map<FairUser, number>();
    let seen = 0;
    for (const { user, member, connections: ofHouse } of houses) {
      seen += ofHouse;
      if (member.held < ofHouse || member.recalled > member.held || member.recalled < 0)
        expect.fail(`${user}: ${ofHouse} connections, ${member.held} held, ${member.recalled} recalled`);
      for (const { user: of, budget } of member.seats) {
        recalled.set(of, (recalled.get(of) ?? 0) + member.recalled);
        for (const one of [of, budget]) held.set(one, (held.get(one) ?? 0) + member.held);
      }
    }
    for (const [user, count] of recalled)
      if (user.recalled !== count) expect.fail(`${user.recalled} of ${user.name} are recalled, not ${count}`);
    for (const [one, count] of held)
      if (one.held !== count) expect.fail(`${one.name} holds ${one.held}, and members hold ${count}`);
    if (connections > seen) expect.fail(`the server sees ${connections} connections, the pools ${seen}`);
    if (this.#town.openedAbove !== undefined) expect.fail(`one was opened with ${this.#town.openedAbove}`);
    this.#judgeIdleness(held, line.now);
    this.#judgeLeftovers(line.now);
    // Reading all numbers takes longer than everything above.
    this.#looks++;
    if (this.#looks % 32 === 0) this.#judgeStats();
  }

  /** Statistics count all that wait, and list who is busy in any case. */
  #judgeStats(): void {
    for (const budget of this.#town.budgets.values()) {
      const { users, waiting } = budget.stats();
      const some = budget.busyStats(1);
      const listed = users.filter(({ user }, n) => n === 0 || budget.users.get(user)?.isBusy);
      if (JSON.stringify(some.users) !== JSON.stringify(listed)) expect.fail('someone busy is not listed');
      if (some.unlisted.count !== users.length - listed.length) expect.fail('a user is not counted');
      const share = users.reduce((sum, user) => sum + user.share, 0);
      const known = some.users.reduce((sum, user) => sum + user.share, some.unlisted.share);
      if (Math.abs(share - known) > 1e-6) expect.fail(`shares of ${known} are counted, not of ${share}`);
      const waits = [...budget.users.values()].reduce((sum, user) => sum + user.waiting, 0);
      if (waiting !== waits) expect.fail(`${waiting} waiters are counted, and ${waits} wait`);
    }
  }

  /** A waiting pool lacks a lease of some budget, unless that is kept for a user below its share, or another pool probes the server. */
  #judgeIdleness(held: ReadonlyMap<unknown, number>, now: number): void {
    if (!Number.isNaN(this.#idleSince) && now > this.#idleSince)
      expect.fail(`someone waits for what is free since ${this.#idleSince}`);
    const { houses, silent } = this.#town;
    const isKept = houses.some(({ member }) => member.isDue);
    const isOwed = ({ member }: House): boolean =>
      member.isWaiting && member.seats.every(({ budget }) => (held.get(budget) ?? 0) < budget.capacity);
    const isIdle = !isKept && silent.size === 0 && !this.#town.hasBeenSilent && houses.some(isOwed);
    this.#idleSince = isIdle ? now : Number.NaN;
  }

  /** Leases that users have left are given to waiting pools. */
  #judgeLeftovers(now: number): void {
    const { houses, hasBeenSilent } = this.#town;
    // A pool that waits for a silent server has no use for a lease.
    if (hasBeenSilent) return;
    const waiting = houses.filter(
      ({ member }) => member.isWaiting && member.need > member.held && member.rank <= Rank.nothing,
    );
    for (const house of houses) {
      const { member, pool, isDeserted } = house;
      const isLeft = isDeserted && pool.idle > 0 && pool.counts().closing === 0 && member.recalled === 0;
      const isWanted = isLeft && waiting.some((one) => lacksOnly(one, house));
      if (!isWanted) this.#leftSince.delete(house);
      else if (now - (this.#leftSince.get(house) ?? now) > leftForMs)
        expect.fail(`${house.user} has left, and what it had is idle while others wait`);
      else if (!this.#leftSince.has(house)) this.#leftSince.set(house, now);
    }
  }

  /** All leave, and nothing is left of them. */
  end(): void {
    const { budgets, houses } = this.#town;
    for (const house of houses) house.vacate();
    this.#town.run(60_000);
    expect(this.#town.connections).toBe(0);
    for (const budget of budgets.values()) {
      const { held, waiting, users } = budget.stats();
      expect({ held, waiting, users }).toEqual({ held: 0, waiting: 0, users: [] });
    }
  }
}
