// What must hold in a town whatever happens in it, looked at after every event.
import { expect } from 'vitest';
import type { FairBudget } from '../../../src/coordination/fair/fair-budget.js';
import type { FairUser } from '../../../src/coordination/fair/fair-user.js';
import type { Town } from './town.js';

export class Laws {
  readonly #town: Town;
  /** Since when someone waits although a lease is free. */
  #idleSince = Number.NaN;

  constructor(town: Town) {
    this.#town = town;
    town.onEvent = () => this.judge();
  }

  judge(): void {
    const { houses, connections, line } = this.#town;
    const held = new Map<FairUser | FairBudget, number>();
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
    this.#judgeIdleness(line.now);
  }

  /** Whoever waits lacks something, unless it is kept for someone who was there before. */
  #judgeIdleness(now: number): void {
    if (!Number.isNaN(this.#idleSince) && now > this.#idleSince)
      expect.fail(`someone waits for what is free since ${this.#idleSince}`);
    this.#idleSince = this.#town.queue.isOwing ? now : Number.NaN;
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
