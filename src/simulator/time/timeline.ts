/**
 * Virtual time: what is planned happens in the order of its time, and at the same time in the order in which it was
 * planned. Nothing else moves time.
 */
import { InvariantError } from '../../kernel/errors.js';

/** Something that will happen, unless it is cancelled before. */
export class Planned {
  at: number;
  /** Kept by the timeline: who was planned first comes first. */
  order = 0;
  /** Kept by the timeline; -1 while it is not planned. */
  place = -1;
  readonly run: () => void;

  constructor(at: number, run: () => void) {
    this.at = at;
    this.run = run;
  }

  get isPlanned(): boolean {
    return this.place >= 0;
  }
}

/** Far more than ever happens at one time: a plan that plans itself for now would go on for ever. */
const mostAtOnce = 1_000_000;

export class Timeline {
  #now = 0;
  #events = 0;
  #lastOrder = 0;
  /** How much has happened at this very time. */
  #atOnce = 0;
  /** A binary heap. */
  readonly #plans: Planned[] = [];

  get now(): number {
    return this.#now;
  }

  /** How much has happened so far. */
  get events(): number {
    return this.#events;
  }

  /** Has `run` called at `at`; what is planned for the past happens now. */
  plan(at: number, run: () => void): Planned {
    const planned = new Planned(at, run);
    this.replan(planned, at);
    return planned;
  }

  /** Plans the same thing for another time. */
  replan(planned: Planned, at: number): void {
    if (Number.isNaN(at)) throw new InvariantError('Nothing can be planned for a time that is no number.');
    this.cancel(planned);
    planned.at = Math.max(at, this.#now);
    planned.order = ++this.#lastOrder;
    this.#plans.push(planned);
    this.#raise(planned, this.#plans.length - 1);
  }

  /** Does nothing when it is not planned. */
  cancel(planned: Planned): void {
    const { place } = planned;
    if (place < 0) return;
    planned.place = -1;
    const last = this.#plans.pop() as Planned;
    if (last === planned) return;
    if (place > 0 && comesBefore(last, this.#plans[(place - 1) >> 1] as Planned)) this.#raise(last, place);
    else this.#sink(last, place);
  }

  /** Lets everything happen that is planned up to and including `end`. */
  runUntil(end: number): void {
    for (let next = this.#plans[0]; next !== undefined && next.at <= end; next = this.#plans[0]) {
      this.cancel(next);
      this.#atOnce = next.at > this.#now ? 1 : this.#atOnce + 1;
      if (this.#atOnce > mostAtOnce)
        throw new InvariantError(`Time stands still at ${next.at}: ${mostAtOnce} events and no end.`);
      this.#now = next.at;
      this.#events++;
      next.run();
    }
    if (Number.isFinite(end)) this.#now = Math.max(this.#now, end);
  }

  #raise(planned: Planned, from: number): void {
    const plans = this.#plans;
    let place = from;
    while (place > 0) {
      const parentPlace = (place - 1) >> 1;
      const parent = plans[parentPlace] as Planned;
      if (!comesBefore(planned, parent)) break;
      plans[place] = parent;
      parent.place = place;
      place = parentPlace;
    }
    plans[place] = planned;
    planned.place = place;
  }

  #sink(planned: Planned, from: number): void {
    const plans = this.#plans;
    const size = plans.length;
    let place = from;
    for (;;) {
      let childPlace = 2 * place + 1;
      if (childPlace >= size) break;
      let child = plans[childPlace] as Planned;
      if (childPlace + 1 < size) {
        const right = plans[childPlace + 1] as Planned;
        if (comesBefore(right, child)) {
          child = right;
          childPlace++;
        }
      }
      if (!comesBefore(child, planned)) break;
      plans[place] = child;
      child.place = place;
      place = childPlace;
    }
    plans[place] = planned;
    planned.place = place;
  }
}

function comesBefore(a: Planned, b: Planned): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
