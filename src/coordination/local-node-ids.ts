/** Node ids for the generators of one process. */
import { OptionReader } from '../kernel/option-reader.js';
import { largestNodeId, type NodeGrant, NodeIdError, type NodeIds, type NodeLease } from './node-ids.js';

export interface LocalNodeIdsOptions {
  /** The smallest node id. Default 0. */
  readonly from?: number | undefined;
  /** The largest node id. Default 1023. */
  readonly to?: number | undefined;
  /** The time of day in milliseconds. Default `Date.now`. */
  readonly clock?: (() => number) | undefined;
}

/**
 * Node ids that generators of this process share. Other processes know nothing of them: give each process a range of its
 * own, or use `DynamoNodeIds`.
 *
 * @example
 * ```ts
 * import { localNodeIds, Snowflake } from 'headgate/dsql';
 *
 * const nodes = localNodeIds({ from: 0, to: 15 });
 * const [orders, events] = [new Snowflake({ nodes }), new Snowflake({ nodes })];
 *
 * console.log(orders.next() !== events.next()); // true
 * ```
 */
export function localNodeIds(options: LocalNodeIdsOptions = {}): NodeIds {
  const read = new OptionReader(options);
  const from = read.integer('from', 0, { min: 0, max: largestNodeId });
  const to = read.integer('to', largestNodeId, { min: 0, max: largestNodeId });
  if (from > to) read.problem('from', `is ${from}, more than to, which is ${to}`);
  const clock = read.callback<() => number>('clock', false) ?? Date.now;
  read.refuseUnknown();
  read.throwIfAnyProblem();
  const register = new Register(from, to, clock);
  return { lease: () => new LocalLease(register) };
}

/** The held node ids, and the times up to which ids of the others were made. */
class Register {
  readonly #from: number;
  readonly #to: number;
  readonly #clock: () => number;
  readonly #held = new Set<number>();
  readonly #madeUntil = new Map<number, number>();
  #holdings = 0;

  constructor(from: number, to: number, clock: () => number) {
    this.#from = from;
    this.#to = to;
    this.#clock = clock;
  }

  take(): NodeGrant | undefined {
    const now = this.#clock();
    for (let nodeId = this.#from; nodeId <= this.#to; nodeId++) {
      const afterMs = this.#madeUntil.get(nodeId) ?? Number.NEGATIVE_INFINITY;
      if (this.#held.has(nodeId) || afterMs >= now) continue;
      this.#held.add(nodeId);
      return { nodeId, holding: ++this.#holdings, afterMs, untilMs: Number.POSITIVE_INFINITY };
    }
    return undefined;
  }

  giveBack({ nodeId, afterMs }: NodeGrant, lastMs: number): void {
    this.#held.delete(nodeId);
    this.#madeUntil.set(nodeId, Math.max(afterMs, lastMs));
  }

  get exhausted(): NodeIdError {
    const count = this.#to - this.#from + 1;
    return new NodeIdError(
      'exhausted',
      `${this.#held.size} of ${count} node ids are held, and the others were given back in this millisecond. ` +
        'Give a wider range (from, to), or end generators that are not used.',
    );
  }
}

class LocalLease implements NodeLease {
  readonly #register: Register;
  #grant: NodeGrant | undefined;
  #isEnded = false;

  constructor(register: Register) {
    this.#register = register;
  }

  grant(): NodeGrant | undefined {
    if (!this.#isEnded) this.#grant ??= this.#register.take();
    return this.#grant;
  }

  error(): NodeIdError {
    return this.#isEnded ? nodeIdEnded() : this.#register.exhausted;
  }

  async ready(): Promise<void> {
    if (this.grant() === undefined) throw this.error();
  }

  extend(): void {}

  async end(lastMs: number): Promise<void> {
    this.#isEnded = true;
    if (this.#grant !== undefined) this.#register.giveBack(this.#grant, lastMs);
    this.#grant = undefined;
  }
}

function nodeIdEnded(): NodeIdError {
  return new NodeIdError('ended', 'The node id was given back by end(). Make a new generator.');
}
