/**
 * One holder's claim to a node id, kept in a table.
 *
 *     seeking --take--> held --renew--> held --give back--> ended
 *                       held --refused--> seeking
 *
 * Two limits end a grant. The lease ends by the holder's own steady clock, `leaseMs` after its last renewal was *sent*:
 * `graceMs` before another holder may take the node id, whatever the clocks say. And no id may carry a time after the
 * one that was written down for it, so that even a holder that was frozen in the middle of a call can't repeat another's
 * ids.
 *
 * One call is under way at a time. A renewal whose answer is lost counts as not made until the next one is answered.
 */
import { Backoff } from '../../core/backoff.js';
import type { Alarm } from '../../kernel/clock.js';
import { type NodeGrant, NodeIdError } from '../node-ids.js';
import { giveNodeBack, type NodeClaim, type NodeItem, nodeOf, renewNode, takeNode } from './node-items.js';
import type { Change, Failed, Item, ReadReply, WriteReply } from './table.js';
import type { CallWorld, TableCalls } from './table-calls.js';

export interface NodeSettings {
  /** The prefix of the keys of all node ids. */
  readonly keys: string;
  readonly from: number;
  readonly to: number;
  readonly instance: string;
  readonly service: string;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly graceMs: number;
}

export interface NodeWorld extends CallWorld {
  /** The time that ids carry: milliseconds since 1970. */
  readonly timeOfDay: () => number;
  /** Returns a unique name. */
  readonly newOwner: () => string;
}

export interface NodeLeaseListener {
  /** The grant, its end, or the reason for having none may have changed. */
  changed(): void;
  /** Others may have the node id. */
  lost(nodeId: number): void;
}

type Held = NodeGrant & { readonly owner: string; readonly seq: number };

const never = Number.POSITIVE_INFINITY;
const backoffPolicy = { base: 100, cap: 5_000 };
/** Delay before looking for a free node id again. */
const scarcityPolicy = { base: 1_000, cap: 10_000 };
/** Tried one by one before all are listed. */
const probes = 8;

export class TableNodeLease {
  readonly #calls: TableCalls;
  readonly #world: NodeWorld;
  readonly #settings: NodeSettings;
  readonly #listener: NodeLeaseListener;
  readonly #alarm: Alarm;
  readonly #backoff: Backoff;
  readonly #scarcity: Backoff;
  #held: Held | undefined;
  #holdings = 0;
  #validUntil = Number.NEGATIVE_INFINITY;
  #renewAt = never;
  /** Number of the attempt to renew: each attempt has a higher one, answered or not. */
  #seq = 0;
  #isBusy = false;
  #isLost = false;
  #failure: Failed | undefined;
  #isExhausted = false;
  #probed = 0;
  /** Node ids that a listing showed as free, to be tried. */
  #candidates: number[] = [];
  #ending: { readonly lastMs: number; readonly done: (() => void)[] } | undefined;
  #isOver = false;

  constructor(calls: TableCalls, world: NodeWorld, settings: NodeSettings, listener: NodeLeaseListener) {
    this.#calls = calls;
    this.#world = world;
    this.#settings = settings;
    this.#listener = listener;
    this.#alarm = world.alarm(() => this.pump());
    this.#backoff = new Backoff(backoffPolicy, world.random);
    this.#scarcity = new Backoff(scarcityPolicy, world.random);
  }

  grant(): NodeGrant | undefined {
    if (this.#ending !== undefined || this.#world.clock.now() >= this.#validUntil) return undefined;
    return this.#held;
  }

  /** Why there is no grant, or none for the present time. */
  error(): NodeIdError {
    const { cause, why } = this.#trouble();
    if (this.#ending !== undefined)
      return new NodeIdError('ended', 'The node id was given back by end(). Make a new generator.');
    if (this.#held !== undefined) {
      const ago = Math.round(this.#world.clock.now() - this.#validUntil);
      const when = ago >= 0 ? `ended ${ago} ms ago` : 'does not reach to the time that the clock shows now';
      return new NodeIdError(
        'expired',
        `The lease of node id ${this.#held.nodeId} ${when}, and has not been renewed yet${why}. ` +
          'No id is made, since another may get the node id. Look at the table and at the clock of this machine.',
        cause,
      );
    }
    if (this.#isExhausted) return this.#exhausted();
    const what = this.#isLost
      ? 'The node id was lost to another holder, and no new one has been leased yet'
      : 'No node id has been leased yet';
    return new NodeIdError(
      this.#isLost ? 'lost' : 'pending',
      `${what}${why}. Use nextId(), or wait for ready().`,
      cause,
    );
  }

  /** Does the next step, if there is one. */
  pump(): void {
    if (this.#isBusy || this.#isOver) return;
    const now = this.#world.clock.now();
    if (now >= this.#retryAt) this.#step(now);
    if (!this.#isBusy) this.#arm();
  }

  /** The grant ends too early: renews now. */
  extend(): void {
    this.#renewAt = Number.NEGATIVE_INFINITY;
    this.pump();
  }

  /** Gives the node id back, for which no id later than `lastMs` was made. From now on there is no grant. */
  end(lastMs: number, done: () => void): void {
    if (this.#isOver) {
      done();
      return;
    }
    this.#ending ??= { lastMs, done: [] };
    this.#ending.done.push(done);
    this.#backoff.hurry();
    this.#scarcity.hurry();
    this.pump();
  }

  /** Stops all work. A held node id ends with its lease. */
  abandon(): void {
    this.#ending ??= { lastMs: never, done: [] };
    this.#isOver = true;
    this.#alarm.clear();
    for (const done of this.#ending.done.splice(0)) done();
  }

  // ---- next step --------------------------------------------------------------------------------------------------

  #step(now: number): void {
    if (this.#held === undefined) {
      if (this.#ending !== undefined) this.abandon();
      else this.#seek();
    } else if (this.#ending !== undefined) this.#giveBack(this.#held);
    else if (now >= this.#renewAt) this.#renew(this.#held);
  }

  #arm(): void {
    if (this.#isOver) return;
    const seeks = this.#held === undefined || this.#ending !== undefined;
    const at = Math.max(this.#retryAt, seeks ? Number.NEGATIVE_INFINITY : this.#renewAt);
    // A program that only waits to renew may end.
    this.#alarm.set(Math.max(at, this.#world.clock.now()), this.#ending !== undefined);
  }

  get #retryAt(): number {
    return Math.max(this.#backoff.retryAt, this.#scarcity.retryAt);
  }

  // ---- seeking ----------------------------------------------------------------------------------------------------

  #seek(): void {
    const listed = this.#candidates.pop();
    if (listed === undefined && this.#probed >= probes) {
      this.#lookAtAll();
      return;
    }
    this.#probed++;
    const { from, to } = this.#settings;
    const nodeId = listed ?? from + Math.floor(this.#world.random.next() * (to - from + 1));
    this.#call<ReadReply<Item | undefined>>(
      (answer) => this.#calls.read(this.#keyOf(nodeId), answer),
      (reply) => {
        if (reply.kind === 'done') this.#take(nodeId, reply.value);
      },
    );
  }

  #take(nodeId: number, item: Item | undefined): void {
    const found = item === undefined ? undefined : nodeOf(item);
    if (this.#ending !== undefined || !this.#isFree(found)) return;
    const owner = this.#world.newOwner();
    const claim = this.#claim(nodeId, owner, (found?.seq ?? 0) + 1);
    this.#write(takeNode(claim, found), (reply, sentAt) => {
      // A retry by the SDK finds what its first attempt has written.
      const isOurs = reply.kind === 'done' || nodeOf(reply.findings[0]?.item).owner === owner;
      if (!isOurs) return;
      this.#probed = 0;
      this.#candidates = [];
      this.#isExhausted = false;
      this.#scarcity.succeeded();
      this.#isLost = false;
      this.#hold({ ...this.#grantOf(claim, found), owner, seq: claim.seq }, sentAt);
    });
  }

  #grantOf({ nodeId, idsUntilMs }: NodeClaim, found: NodeItem | undefined): NodeGrant {
    const afterMs = found?.idsUntilMs ?? Number.NEGATIVE_INFINITY;
    return { nodeId, holding: ++this.#holdings, afterMs, untilMs: idsUntilMs };
  }

  /** The node id has no holder, or its lease ended longer ago than the grace, and all times of its ids are past. */
  #isFree(found: NodeItem | undefined): boolean {
    if (found === undefined) return true;
    if (found.idsUntilMs >= this.#world.timeOfDay()) return false;
    const now = this.#calls.time.earliest(this.#world.clock.now());
    return found.owner === '' || now > found.expiresMs + this.#settings.graceMs;
  }

  #lookAtAll(): void {
    const { keys, from, to } = this.#settings;
    this.#call<ReadReply<readonly Item[]>>(
      (answer) => this.#calls.list(keys, answer),
      (reply) => {
        if (reply.kind !== 'done') return;
        const found = new Map(reply.value.map((item) => [String(item['pk']), nodeOf(item)]));
        const free: number[] = [];
        for (let nodeId = from; nodeId <= to; nodeId++)
          if (this.#isFree(found.get(this.#keyOf(nodeId)))) free.push(nodeId);
        this.#candidates = shuffled(free, this.#world.random).slice(0, probes);
        this.#isExhausted = free.length === 0;
        if (this.#isExhausted) this.#scarcity.failed(this.#exhausted(), this.#world.clock.now());
        else this.#scarcity.succeeded();
      },
    );
  }

  // ---- holding ----------------------------------------------------------------------------------------------------

  #renew({ nodeId, owner }: Held): void {
    const claim = this.#claim(nodeId, owner, ++this.#seq);
    this.#write(renewNode(claim), (reply, sentAt) => {
      if (reply.kind === 'refused') this.#lose(nodeId);
      else if (this.#held !== undefined)
        this.#hold({ ...this.#held, untilMs: claim.idsUntilMs, seq: claim.seq }, sentAt);
    });
  }

  #hold(held: Held, sentAt: number): void {
    const { leaseMs, renewMs } = this.#settings;
    this.#held = held;
    this.#seq = held.seq;
    this.#validUntil = sentAt + leaseMs;
    // Jitter: holders that started together should not renew together.
    this.#renewAt = sentAt + renewMs * (0.9 + 0.1 * this.#world.random.next());
  }

  #giveBack({ nodeId, owner, afterMs }: Held): void {
    const lastMs = Math.max(afterMs, this.#ending?.lastMs ?? never, 0);
    const nowMs = this.#calls.time.latest(this.#world.clock.now());
    const claim = { ...this.#claim(nodeId, owner, ++this.#seq), expiresMs: nowMs, idsUntilMs: lastMs };
    // Refused: another holder has it already, or a repetition finds it given back.
    this.#write(giveNodeBack(claim), () => {
      this.#held = undefined;
    });
  }

  #lose(nodeId: number): void {
    this.#held = undefined;
    this.#validUntil = Number.NEGATIVE_INFINITY;
    this.#renewAt = never;
    this.#isLost = true;
    this.#listener.lost(nodeId);
  }

  #claim(nodeId: number, owner: string, seq: number): NodeClaim {
    const { instance, service, leaseMs } = this.#settings;
    const nowMs = this.#calls.time.latest(this.#world.clock.now());
    return {
      key: this.#keyOf(nodeId),
      ...{ nodeId, owner, instance, service, seq, nowMs },
      // Not earlier than the holder stops by its own clock, whatever the server's clock says.
      expiresMs: nowMs + leaseMs,
      idsUntilMs: Math.floor(this.#world.timeOfDay()) + leaseMs,
    };
  }

  #keyOf(nodeId: number): string {
    return this.#settings.keys + nodeId;
  }

  // ---- calls ------------------------------------------------------------------------------------------------------

  #write(change: Change, done: (reply: Exclude<WriteReply, Failed>, sentAt: number) => void): void {
    this.#call<WriteReply>(
      (answer) => this.#calls.write(change, answer),
      (reply, sentAt) => {
        if (reply.kind !== 'failed') done(reply, sentAt);
      },
    );
  }

  #call<R extends ReadReply<unknown> | WriteReply>(
    make: (answer: (reply: R, sentAt: number) => void) => void,
    answered: (reply: R, sentAt: number) => void,
  ): void {
    this.#isBusy = true;
    make((reply, sentAt) => {
      this.#isBusy = false;
      if (this.#isOver) return;
      this.#failure = reply.kind === 'failed' ? reply : undefined;
      if (reply.kind === 'failed') this.#backoff.failed(reply.error, this.#world.clock.now());
      else {
        this.#backoff.succeeded();
        answered(reply, sentAt);
      }
      this.#listener.changed();
      this.pump();
    });
  }

  #trouble(): { readonly cause: unknown; readonly why: string } {
    const failure = this.#failure;
    return { cause: failure?.error, why: failure === undefined ? '' : ` (the table: ${failure.reason})` };
  }

  #exhausted(): NodeIdError {
    const { from, to } = this.#settings;
    return new NodeIdError(
      'exhausted',
      `All ${to - from + 1} node ids from ${from} to ${to} are held, or their last ids are of a time that is not past yet. ` +
        'Give a wider range, end generators that are not used, or wait for leases of processes that are gone.',
    );
  }
}

function shuffled(items: readonly number[], random: { next(): number }): number[] {
  const mixed = [...items];
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = Math.floor(random.next() * (last + 1));
    [mixed[last], mixed[other]] = [mixed[other] as number, mixed[last] as number];
  }
  return mixed;
}
