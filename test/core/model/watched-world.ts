// A virtual world for a scene that judges every law after every step, and knows by itself how fast its limiter lets a
// pool recover.
import type { PolicyOptions } from '../../../src/core/pool-policy.js';
import type { DiscardReason } from '../../../src/core/reasons.js';
import { type Random, SeededRandom } from '../../../src/kernel/random.js';
import type { FakeSocket, Manners } from '../../support/fake-server.js';
import { type Caller, type FakeLease, policyOf, VirtualWorld } from '../../support/virtual-world.js';
import { Evidence, Intentions } from './evidence.js';
import { FakeBudget } from './fake-budget.js';
import { MomentaryLaws } from './momentary-laws.js';
import { checkStandingLaws } from './standing-laws.js';
import { WatchedLimiter } from './watched-limiter.js';

export interface WatchedOptions {
  readonly policy: Omit<PolicyOptions, 'rateLimiter' | 'leases'>;
  /** Permits a second, and at once. */
  readonly rate?: readonly [perSecond: number, burst: number];
  /** Leases that there are; without a number there is no budget. */
  readonly leases?: number;
  readonly seed?: number;
  /** In place of the one that follows from the seed. */
  readonly random?: Random;
  readonly manners?: (world: VirtualWorld) => Partial<Manners>;
}

/** Judges as always, and counts what is ready whenever that has become less. */
class ReadyWatcher extends MomentaryLaws {
  readonly #evidence: Evidence;
  readonly #counted: (ready: number) => void;

  constructor(evidence: Evidence, counted: (ready: number) => void) {
    super(evidence);
    this.#evidence = evidence;
    this.#counted = counted;
  }

  override discarded(socket: FakeSocket, reason: DiscardReason): void {
    super.discarded(socket, reason);
    this.#count(socket);
  }

  override taken(lease: FakeLease, caller: Caller | undefined): void {
    super.taken(lease, caller);
    this.#count(lease.socket);
  }

  #count(except: FakeSocket): void {
    let ready = 0;
    for (const socket of this.#evidence.world.server.sockets) {
      if (socket !== except && socket.place === 'idle') ready++;
    }
    this.#counted(ready);
  }
}

export class WatchedWorld {
  readonly world: VirtualWorld;
  readonly limiter: WatchedLimiter | undefined;
  readonly budget: FakeBudget | undefined;
  /** The fewest that were ready at any moment since this was set. */
  lowestReady = Number.POSITIVE_INFINITY;
  readonly #evidence: Evidence;

  constructor({ policy: options, rate, leases, seed = 1, random, manners }: WatchedOptions) {
    this.limiter = rate && new WatchedLimiter(...rate);
    this.budget = leases === undefined ? undefined : new FakeBudget(leases);
    const { limiter, budget } = this;
    const policy = policyOf({ ...options, rateLimiter: limiter, leases: budget });
    const evidence = new Evidence(new Intentions(policy.max), limiter, budget);
    this.#evidence = evidence;
    this.world = new VirtualWorld(policy, {
      seed,
      ...(random && { random }),
      witness: new ReadyWatcher(evidence, (ready) => {
        this.lowestReady = Math.min(this.lowestReady, ready);
      }),
      manners: (world) => {
        evidence.world = world;
        evidence.startedAt = world.now;
        evidence.heldBackUntil = world.now + new SeededRandom(seed).next() * policy.startJitter;
        if (budget !== undefined) {
          budget.world = world;
          world.server.slotFreed = () => budget.slotFreed();
        }
        return manners?.(world) ?? {};
      },
    });
    this.check();
  }

  /** Throws what is wrong, if anything is. */
  check(): void {
    checkStandingLaws(this.#evidence);
    const [first, ...others] = this.world.contradictions;
    if (first !== undefined) throw new Error([first, ...others.slice(0, 4)].join('\n'));
  }

  /** Lets time pass step by step; `each` is called after each of them. */
  pass(milliseconds: number, each: () => void = () => {}, stepMs = 10): void {
    for (let passed = 0; passed < milliseconds; passed += stepMs) {
      this.world.advance(Math.min(stepMs, milliseconds - passed));
      each();
      this.check();
    }
  }

  /** How long it takes until `isDone`. */
  passUntil(isDone: () => boolean, atMost: number): number {
    const from = this.world.now;
    while (!isDone()) {
      if (this.world.now - from >= atMost)
        throw new Error(`Not within ${atMost} ms: ${JSON.stringify(this.world.pool.counts())}`);
      this.pass(10);
    }
    return this.world.now - from;
  }

  /** In how many milliseconds the limiter will have given `count` more permits, by what it gave so far. */
  msForPermits(count: number): number {
    const { limiter, world } = this;
    if (limiter === undefined) return 0;
    const perMs = limiter.rate / 1_000;
    let saved = limiter.burst;
    let at = limiter.grantedAt[0] ?? world.now;
    for (const grantedAt of [...limiter.grantedAt, world.now]) {
      saved = Math.min(limiter.burst, saved + (grantedAt - at) * perMs) - 1;
      at = grantedAt;
    }
    // The last of them was not a permit, but the present.
    return Math.max(0, (count - saved - 1) / perMs);
  }

  /** Drains the pool: after that nothing is left, and each lease that was granted has ended once. */
  finish(): void {
    for (const lease of [...this.world.leases]) lease.release();
    this.#evidence.intentions.state = 'draining';
    this.#evidence.intentions.readyRequests.clear();
    this.#evidence.intentions.fill = undefined;
    this.world.drain();
    this.world.advance(60_000);
    this.check();
    const { server, pool } = this.world;
    if (pool.state !== 'closed' || server.total > 0) throw new Error(`The drained pool is ${pool.state}.`);
    if (this.budget === undefined) return;
    const { granted, released, lost, debt } = this.budget;
    if (granted !== released + lost || debt !== 0)
      throw new Error(`${granted} leases granted, ${released} given back, ${lost} lost, debt ${debt}.`);
  }
}
