// What must hold in a town whatever happens in it, looked at after every event.
import { expect } from 'vitest';
import type { FairUser } from '../../../src/coordination/fair/fair-members.js';
import type { Town } from './town.js';

export class Laws {
  readonly #town: Town;
  /** Since when someone waits although a lease is free. */
  #idleSince = Number.NaN;
  #opened = 0;

  constructor(town: Town) {
    this.#town = town;
    town.onEvent = () => this.judge();
  }

  judge(): void {
    const { budget, houses, connections, opened, line } = this.#town;
    let held = 0;
    let seen = 0;
    const recalled = new Map<FairUser, number>();
    for (const { member, connections: ofHouse } of houses) {
      const { user } = member;
      recalled.set(user, (recalled.get(user) ?? 0) + member.recalled);
      held += member.held;
      seen += ofHouse;
      if (member.held < ofHouse || member.recalled > member.held || member.recalled < 0)
        expect.fail(`${user.name}: ${ofHouse} connections, ${member.held} held, ${member.recalled} recalled`);
    }
    for (const [user, count] of recalled)
      if (user.recalled !== count) expect.fail(`${user.recalled} of ${user.name} are recalled, not ${count}`);
    if (budget.held !== held) expect.fail(`${budget.held} are held, and members hold ${held}`);
    if (connections > seen) expect.fail(`the server sees ${connections} connections, the pools ${seen}`);
    if (opened > this.#opened && budget.held > budget.capacity)
      expect.fail(`one was opened with ${budget.held} of ${budget.capacity}`);
    this.#opened = opened;
    if (!Number.isNaN(this.#idleSince) && line.now > this.#idleSince)
      expect.fail(`someone waits for a free lease since ${this.#idleSince}`);
    this.#idleSince = budget.waiting > 0 && budget.held < budget.capacity ? line.now : Number.NaN;
  }

  /** All leave, and nothing is left of them. */
  end(): void {
    const { budget, houses } = this.#town;
    for (const house of houses) house.vacate();
    this.#town.run(60_000);
    expect(this.#town.connections).toBe(0);
    const { held, waiting, users } = budget.stats();
    expect({ held, waiting, users }).toEqual({ held: 0, waiting: 0, users: [] });
  }
}
