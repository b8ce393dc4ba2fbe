// Several towns, each a machine with users of its own, whose budgets are leased from one source. All in one virtual time.
import { LeasedCapacity } from '../../../src/coordination/fair/leased-capacity.js';
import type { LeaseAnswer, LeaseHolder, Leases } from '../../../src/core/leases.js';
import type { SeededRandom } from '../../../src/kernel/random.js';
import { Timeline } from '../../../src/simulator/time/timeline.js';
import { Laws } from './laws.js';
import { Town } from './town.js';

export const spareMs = 500;
const retryMs = 100;

export class Machine {
  readonly town: Town;
  readonly leased: LeasedCapacity;
  readonly laws: Laws;

  constructor(name: string, line: Timeline, source: Leases, most: number, judge: () => void) {
    const listener = { balanceChanged: () => this.leased.look(), rebalanced: () => {} };
    this.town = new Town({ capacity: 0, line, listener });
    const { clock, alarm } = this.town;
    const parts = { name, source, most, spareMs, retryMs, clock, alarm };
    this.leased = new LeasedCapacity(parts, this.town.budget);
    this.laws = new Laws(this.town);
    this.town.onEvent = () => {
      this.laws.judge();
      judge();
    };
  }
}

export class Cluster {
  readonly line = new Timeline();
  readonly machines: Machine[];

  constructor(count: number, makeSource: (line: Timeline) => Leases, most = Number.POSITIVE_INFINITY) {
    const source = makeSource(this.line);
    this.machines = Array.from(
      { length: count },
      (_, n) => new Machine(`machine ${n}`, this.line, source, most, () => this.onEvent()),
    );
  }

  onEvent: () => void = () => {};

  run(ms: number): void {
    this.line.runUntil(this.line.now + ms);
  }

  get connections(): number {
    return this.machines.reduce((sum, { town }) => sum + town.connections, 0);
  }

  get leased(): number {
    return this.machines.reduce((sum, { leased }) => sum + leased.leased, 0);
  }
}

/**
 * A source that is far away: some questions are answered at once, some later, and some with no. It may take leases away,
 * and with `isFair` it asks those back from who has most for who has less than its part.
 */
export class FarLeases implements Leases {
  limit: number;
  isFair = false;
  /** The part of questions that are refused although there is something, and that are answered later. */
  refusals = 0;
  delays = 0;
  readonly #line: Timeline;
  readonly #random: SeededRandom;
  readonly #held = new Map<LeaseHolder, number>();
  readonly #waiting = new Set<LeaseHolder>();
  readonly #recalled = new Map<LeaseHolder, number>();
  strays = 0;
  questions = 0;

  constructor(limit: number, line: Timeline, random: SeededRandom) {
    this.limit = limit;
    this.#line = line;
    this.#random = random;
  }

  get held(): number {
    return [...this.#held.values()].reduce((sum, count) => sum + count, 0);
  }

  acquire(count: number, holder: LeaseHolder): LeaseAnswer {
    this.questions++;
    if (!this.#held.has(holder)) this.#held.set(holder, 0);
    if (this.#random.next() < this.refusals) return new Error('not now');
    if (this.#random.next() < this.delays) {
      this.#line.plan(this.#line.now + 40 * this.#random.next(), () => this.#answer(holder));
      return 'asking';
    }
    const isOthersTurn = [...this.#waiting].some((other) => other !== holder);
    if (isOthersTurn || this.held + count > this.limit) {
      this.#waiting.add(holder);
      this.#recallFor(holder);
      return { reason: this.#shortage };
    }
    this.#waiting.delete(holder);
    this.#held.set(holder, (this.#held.get(holder) as number) + count);
    return 'granted';
  }

  #answer(holder: LeaseHolder): void {
    if (this.#random.next() < this.refusals) {
      holder.leasesRefused(new Error('not now'));
      return;
    }
    if (this.#random.next() < this.refusals) holder.leasesAvailable();
    else if (this.held < this.limit) this.#grant(holder);
    else {
      this.#waiting.add(holder);
      this.#recallFor(holder);
      holder.leasesDelayed?.(this.#shortage);
    }
  }

  #grant(holder: LeaseHolder): void {
    this.#waiting.delete(holder);
    this.#held.set(holder, (this.#held.get(holder) as number) + 1);
    if (holder.leasesGranted(1) === 1) return;
    this.#held.set(holder, (this.#held.get(holder) as number) - 1);
    this.#grantNext(holder);
  }

  get #shortage(): Error {
    return new Error(`${this.held} of ${this.limit} are held`);
  }

  release(count: number, holder: LeaseHolder): void {
    const held = this.#held.get(holder) ?? 0;
    if (count > held) this.strays++;
    this.#held.set(holder, held - count);
    const recalled = Math.max(0, (this.#recalled.get(holder) ?? 0) - count);
    this.#recalled.set(holder, recalled);
    this.#line.plan(this.#line.now, () => this.#grantNext(holder));
  }

  #grantNext(last: LeaseHolder): void {
    if (this.held >= this.limit) return;
    const [first] = [...this.#waiting].filter((holder) => holder !== last);
    const next = first ?? (this.#waiting.has(last) ? last : undefined);
    if (next !== undefined) this.#grant(next);
  }

  /** Takes leases of someone away. */
  lose(nth: number, count: number): void {
    const holder = [...this.#held.keys()][nth];
    if (holder === undefined) return;
    const held = this.#held.get(holder) as number;
    const lost = Math.min(held, count);
    this.#held.set(holder, held - lost);
    this.#recalled.set(holder, Math.min(this.#recalled.get(holder) ?? 0, held - lost));
    if (lost > 0) holder.leasesLost(lost);
  }

  #recallFor(poor: LeaseHolder): void {
    if (!this.isFair) return;
    const part = Math.floor(this.limit / this.#held.size);
    if ((this.#held.get(poor) ?? 0) >= part) return;
    const keptBy = (holder: LeaseHolder): number =>
      (this.#held.get(holder) ?? 0) - (this.#recalled.get(holder) ?? 0);
    const [rich] = [...this.#held.keys()].sort((a, b) => keptBy(b) - keptBy(a));
    if (rich === undefined || keptBy(rich) <= part) return;
    const recalled = (this.#recalled.get(rich) ?? 0) + 1;
    this.#recalled.set(rich, recalled);
    this.#line.plan(this.#line.now, () => rich.leasesRecalled?.(this.#recalled.get(rich) ?? 0));
  }
}
