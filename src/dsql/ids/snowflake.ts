/** Snowflake ids: numbers of 63 bits that grow with time, for columns of type BIGINT. */
import {
  largestNodeId,
  type NodeGrant,
  NodeIdError,
  type NodeIds,
  type NodeLease,
} from '../../coordination/node-ids.js';
import type { Duration } from '../../kernel/duration.js';
import { OptionReader } from '../../kernel/option-reader.js';
import { systemClock } from '../../runtime/system.js';
import { ProgramTimer } from '../../runtime/time-source.js';
import { IdClockError } from './errors.js';
import { IdSequence, nodeBits, sequenceBits } from './id-sequence.js';

export interface SnowflakeOptions<As extends 'bigint' | 'text' = 'bigint'> {
  /** Where the node id is leased. One of `nodes` and `nodeId` must be given. */
  readonly nodes?: NodeIds | undefined;
  /** A fixed node id, from 0 to 1023. The caller makes sure that no other generator has it. */
  readonly nodeId?: number | undefined;
  /** The form of ids; `'text'` for JSON. Default `'bigint'`. */
  readonly as?: As | undefined;
  /** When times of ids begin: a date, or milliseconds since 1970. All generators must have the same. Default 2024-01-01. */
  readonly epoch?: Date | number | undefined;
  /** A clock further behind the last id is refused; up to this it is waited for. Default `1s`. */
  readonly maxClockBack?: Duration | undefined;
  /** How long `nextId()` and `ready()` wait for a node id and for the clock. Default `5s`. */
  readonly maxWait?: Duration | undefined;
  /** The time of day in milliseconds. Default `Date.now`. */
  readonly clock?: (() => number) | undefined;
}

/** The parts of an id. */
export interface SnowflakeParts {
  readonly time: Date;
  readonly nodeId: number;
  readonly sequence: number;
}

type Id<As> = As extends 'text' ? string : bigint;

const usualEpochMs = Date.UTC(2024, 0, 1);
const largestId = 2n ** 63n - 1n;
/** `next()` blocks the thread for a millisecond at a time, and no more often than this. */
const mostPauses = 5;
const pauseCell = new Int32Array(new SharedArrayBuffer(4));

/**
 * Makes ids of 41 bits of milliseconds, 10 bits of node id and 12 bits of sequence: 4,096 a millisecond for each node, unique
 * over all nodes, growing with each id of a node.
 *
 * @example
 * ```ts
 * import { Snowflake } from 'headgate/dsql';
 *
 * const ids = new Snowflake({ nodeId: 5 });
 *
 * console.log(ids.next() < ids.next()); // true
 * console.log(Snowflake.parse(await ids.nextId()).nodeId); // 5
 * ```
 */
export class Snowflake<As extends 'bigint' | 'text' = 'bigint'> {
  readonly #lease: NodeLease;
  readonly #sequence: IdSequence;
  readonly #epochMs: number;
  readonly #isText: boolean;
  readonly #maxClockBackMs: number;
  readonly #maxWaitMs: number;
  readonly #clock: () => number;

  constructor(options: SnowflakeOptions<As>) {
    const read = new OptionReader(options);
    const nodes = read.object<NodeIds>('nodes', ['lease']);
    const nodeId = read.integer('nodeId', 0, { min: 0, max: largestNodeId });
    if ((options.nodes === undefined) === (options.nodeId === undefined))
      read.problem('nodes', 'or nodeId must be given, and not both');
    this.#isText = read.oneOf('as', 'bigint', ['bigint', 'text']) === 'text';
    this.#epochMs = readEpoch(read, options.epoch);
    this.#maxClockBackMs = read.duration('maxClockBack', 1_000, 0);
    this.#maxWaitMs = read.duration('maxWait', 5_000, 0);
    this.#clock = read.callback<() => number>('clock', false) ?? Date.now;
    for (const name of ['epoch', 'as']) read.has(name);
    read.refuseUnknown();
    read.throwIfAnyProblem("the generator's options");
    this.#sequence = new IdSequence({ epochMs: this.#epochMs, maxClockBackMs: this.#maxClockBackMs });
    this.#lease = nodes === undefined ? new FixedNode(nodeId) : nodes.lease();
  }

  /** Time, node and sequence of an id. */
  static parse(
    id: bigint | string,
    options: { readonly epoch?: Date | number | undefined } = {},
  ): SnowflakeParts {
    const read = new OptionReader(options);
    const epochMs = readEpoch(read, options.epoch);
    const value = readId(read, id);
    read.throwIfAnyProblem('an id');
    return {
      time: new Date(Number(value >> BigInt(nodeBits + sequenceBits)) + epochMs),
      nodeId: Number((value >> BigInt(sequenceBits)) & BigInt(2 ** nodeBits - 1)),
      sequence: Number(value & BigInt(2 ** sequenceBits - 1)),
    };
  }

  /** The node id at this moment; undefined while there is none. */
  get nodeId(): number | undefined {
    return this.#lease.grant()?.nodeId;
  }

  /**
   * The next id, at once. Blocks for the rest of a millisecond whose 4,096 ids are used up. Throws a `NodeIdError` while there
   * is no node id, and an `IdClockError` while the clock is behind and no id is left in the last one's millisecond.
   */
  next(): Id<As> {
    for (let pauses = 0; ; pauses++) {
      const grant = this.#grant();
      const waitMs = this.#sequence.advance(this.#clock(), grant);
      if (waitMs === 0) return this.#id(grant);
      if (waitMs < 0) throw this.#tooEarly();
      if (waitMs > 2 || pauses === mostPauses) throw this.#clockError(waitMs - 1);
      Atomics.wait(pauseCell, 0, 0, 1);
    }
  }

  /** The next id. Waits for a node id and for the clock, up to `maxWait`. */
  async nextId(): Promise<Id<As>> {
    const deadline = systemClock.now() + this.#maxWaitMs;
    for (;;) {
      const grant = this.#lease.grant();
      const waitMs = grant === undefined ? -1 : this.#sequence.advance(this.#clock(), grant);
      if (waitMs === 0 && grant !== undefined) return this.#id(grant);
      const leftMs = deadline - systemClock.now();
      if (waitMs < 0) await this.#ready(leftMs);
      else if (leftMs <= 0) throw this.#clockError(waitMs - 1);
      else await new Promise<void>((resolve) => new ProgramTimer(resolve, Math.min(waitMs, leftMs)));
    }
  }

  /** Waits until there is a node id, up to `maxWait`. */
  ready(): Promise<void> {
    return this.#ready(this.#maxWaitMs);
  }

  /** Gives the node id back. Afterwards no id is made. */
  end(): Promise<void> {
    return this.#lease.end(this.#sequence.timeMs);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }

  #grant(): NodeGrant {
    const grant = this.#lease.grant();
    if (grant === undefined) throw this.#lease.error();
    return grant;
  }

  #ready(timeoutMs: number): Promise<void> {
    const timeMs = Math.max(this.#clock(), this.#sequence.timeMs);
    const grant = this.#lease.grant();
    if (grant !== undefined && grant.untilMs < timeMs) this.#lease.extend();
    return this.#lease.ready(timeMs, Math.max(0, timeoutMs));
  }

  #tooEarly(): Error {
    this.#lease.extend();
    return this.#lease.error();
  }

  #clockError(behindMs: number): IdClockError {
    if (behindMs === 0)
      return new IdClockError(
        'stood_still',
        `All ${2 ** sequenceBits} ids of a millisecond are used up, and the clock did not move on. Look at the clock.`,
      );
    return new IdClockError(
      'went_back',
      `The clock is ${behindMs} ms behind the last id, whose millisecond has no ids left. ` +
        'Use nextId(), which waits for it, and look at the time synchronisation of this machine.',
      behindMs,
    );
  }

  #id({ nodeId }: NodeGrant): Id<As> {
    const time = BigInt(this.#sequence.timeMs - this.#epochMs) << BigInt(nodeBits + sequenceBits);
    const id = time | BigInt(nodeId * 2 ** sequenceBits + this.#sequence.number);
    return (this.#isText ? String(id) : id) as Id<As>;
  }
}

/** A node id that is known to be unique. */
class FixedNode implements NodeLease {
  #grant: NodeGrant | undefined;

  constructor(nodeId: number) {
    const [afterMs, untilMs] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    this.#grant = { nodeId, holding: 1, afterMs, untilMs };
  }

  grant(): NodeGrant | undefined {
    return this.#grant;
  }

  error(): NodeIdError {
    return new NodeIdError('ended', 'The generator was ended. Make a new one.');
  }

  async ready(): Promise<void> {
    if (this.#grant === undefined) throw this.error();
  }

  extend(): void {}

  async end(): Promise<void> {
    this.#grant = undefined;
  }
}

function readEpoch(read: OptionReader, epoch: unknown): number {
  if (epoch === undefined) return usualEpochMs;
  const ms = epoch instanceof Date ? epoch.getTime() : epoch;
  if (Number.isSafeInteger(ms) && (ms as number) >= 0) return ms as number;
  read.problem('epoch', 'must be a date since 1970, or its milliseconds as a whole number');
  return usualEpochMs;
}

function readId(read: OptionReader, id: unknown): bigint {
  const isText = typeof id === 'string' && /^\d{1,19}$/.test(id);
  const value = typeof id === 'bigint' ? id : isText ? BigInt(id) : -1n;
  if (value >= 0n && value <= largestId) return value;
  read.problem('id', 'must be a bigint, or its decimal text, from 0 to 9223372036854775807');
  return 0n;
}
