// Plays a scenario in a virtual world, judges it after every step, and then sees to it that everything comes to an end.
import type { ConnectionPool, PoolParts } from '../../../src/core/connection-pool.js';
import { DoubleReleaseError } from '../../../src/core/errors.js';
import { SeededRandom } from '../../../src/kernel/random.js';
import type { FakeSocket } from '../../support/fake-server.js';
import { type Caller, type FakeLease, VirtualWorld } from '../../support/virtual-world.js';
import { Evidence, Intentions } from './evidence.js';
import { FakeBudget } from './fake-budget.js';
import { MomentaryLaws } from './momentary-laws.js';
import { type Fate, mend, serverManners, spoilSource } from './moods.js';
import { completePolicy, type Scenario, type Step, type StepName } from './scenario.js';
import { checkStandingLaws } from './standing-laws.js';
import { WatchedLimiter } from './watched-limiter.js';

const never = Number.POSITIVE_INFINITY;

export interface Verdict {
  /** Violations in order; empty when all was well. */
  readonly wrong: readonly string[];
  /** After how many steps it was noticed. */
  readonly steps: number;
  /** Events on the way, for the question whether the scenarios reach everything. */
  readonly seen: ReadonlySet<string>;
}

/** Ways to spoil a world, to see the laws notice. */
export interface Sabotage {
  readonly makePool?: (parts: PoolParts<FakeSocket>) => ConnectionPool<FakeSocket>;
  /** The laws take the limit to be so much lower than it is. */
  readonly limitLessBy?: number;
}

export function play(scenario: Scenario, sabotage: Sabotage = {}): Verdict {
  const run = new Run(scenario, sabotage);
  try {
    let steps = 0;
    for (const step of scenario.steps) {
      run.step(step);
      steps++;
      if (run.isWrong) return run.verdict(steps);
    }
    run.end();
    return run.verdict(steps);
  } catch (error) {
    run.world.contradict(`thrown: ${error instanceof Error ? error.stack : String(error)}`);
    return run.verdict(scenario.steps.length);
  }
}

class Run {
  readonly world: VirtualWorld;
  readonly #intentions: Intentions;
  readonly #evidence: Evidence;
  readonly #limitLessBy: number;
  readonly #seen = new Set<string>();
  readonly #finished: FakeLease[] = [];
  #drainCalls = 0;
  #drainsDone = 0;
  #fate: SeededRandom;
  #isEnding = false;

  constructor(scenario: Scenario, sabotage: Sabotage) {
    this.#limitLessBy = sabotage.limitLessBy ?? 0;
    this.#fate = new SeededRandom(scenario.seed);
    const { rate, budget: leases } = scenario.draft;
    const limiter = rate && new WatchedLimiter(rate.perSecond, rate.burst);
    const budget = leases === undefined ? undefined : new FakeBudget(leases);
    const policy = completePolicy(scenario.draft, limiter, budget);
    this.#intentions = new Intentions(policy.max - this.#limitLessBy);
    this.#evidence = new Evidence(this.#intentions, limiter, budget);
    this.world = new VirtualWorld(policy, {
      seed: scenario.seed,
      witness: new MomentaryLaws(this.#evidence),
      ...(sabotage.makePool && { makePool: sabotage.makePool }),
      manners: (world) => {
        this.#evidence.world = world;
        this.#evidence.startedAt = world.now;
        // The moment of the start is the first thing that is drawn.
        const part = new SeededRandom(scenario.seed).next();
        this.#evidence.heldBackUntil = world.now + part * policy.startJitter;
        if (budget !== undefined) {
          budget.world = world;
          world.server.slotFreed = () => budget.slotFreed();
        }
        const fate: Fate = { draw: () => this.#fate.next(), note: (what) => this.#note(what) };
        spoilSource(scenario, fate, limiter, budget);
        return serverManners(world, scenario, fate);
      },
    });
    this.world.alarmRingsFirst = scenario.alarmRingsFirst;
    this.world.alarm.granularityMs = scenario.alarmIsEarlyBy > 0 ? 1 : 0;
    this.world.alarm.earlyBy = scenario.alarmIsEarlyBy;
    checkStandingLaws(this.#evidence);
  }

  get isWrong(): boolean {
    return this.world.contradictions.length > 0;
  }

  verdict(steps: number): Verdict {
    for (const reason of this.world.server.discards.keys()) this.#seen.add(`discarded: ${reason}`);
    for (const [cause, count] of Object.entries(this.world.refillFailures))
      if (count > 0) this.#seen.add(`refill failed: ${cause}`);
    for (const { kind, phase } of this.world.fills) this.#seen.add(`${kind} ${phase}`);
    if (this.world.topUps.length > 0) this.#seen.add('topped up');
    return { wrong: this.world.contradictions, steps, seen: this.#seen };
  }

  step(step: Step): void {
    this.#fate = new SeededRandom(step.fate);
    if (step.name !== 'creep') this.world.time.newTurn();
    this.#seen.add(step.name);
    this.#does[step.name](step.a, step.b);
    checkStandingLaws(this.#evidence);
  }

  /** Whatever went on: when the faults end, everyone gets an answer, and after draining nothing is left. */
  end(): void {
    const { world } = this;
    const { pool, server } = world;
    this.#isEnding = true;
    mend(world, this.#evidence.limiter, this.#evidence.budget);
    this.#resume();
    this.#resize(Math.max(1, world.policy.max));
    for (let round = 0; round < 400 && (world.queue.size > 0 || world.leases.size > 0); round++) {
      this.#answerEverything();
      for (const lease of [...world.leases]) this.#giveBack(lease, undefined);
      world.advance(round < 100 ? 10 : 100);
      checkStandingLaws(this.#evidence);
      if (this.isWrong) return;
    }
    if (world.queue.size > 0) world.contradict(`law 4: ${world.queue.size} callers were never answered`);
    for (const lease of [...world.leases]) this.#giveBack(lease, undefined);
    this.#drain(never);
    for (let round = 0; round < 20 && pool.state !== 'closed'; round++) {
      this.#answerEverything();
      world.advance(50);
    }
    checkStandingLaws(this.#evidence);
    if (pool.state !== 'closed')
      world.contradict(`the drained pool is ${pool.state}: ${JSON.stringify(pool.counts())}`);
    if (server.sockets.size > 0) world.contradict(`${server.sockets.size} sockets are left after draining`);
    if (pool.pending !== 0) world.contradict(`law 2: ${pool.pending} approvals have not ended`);
    if (world.alarm.isArmed) world.contradict('the alarm is set after draining');
    if (this.#drainsDone !== this.#drainCalls) {
      world.contradict(`${this.#drainCalls} calls of drain() were answered ${this.#drainsDone} times`);
    }
    if (this.#intentions.readyRequests.size > 0) world.contradict('a ready() was never answered');
    this.#leasesAreBack();
  }

  /** Nothing is held any more, and whatever the budget still tells wakes nobody. */
  #leasesAreBack(): void {
    const { budget } = this.#evidence;
    if (budget === undefined) return;
    const { server } = this.world;
    this.#expect(budget.held === 0, `${budget.held} leases are left after draining`);
    this.#expect(budget.debt === 0, `a debt of ${budget.debt} is left after draining`);
    const dialed = server.dialed;
    this.#expect(!budget.grant(), 'a closed pool takes a lease');
    budget.tellAvailable();
    this.world.advance(100);
    this.#expect(server.dialed === dialed, 'a closed pool dials');
    checkStandingLaws(this.#evidence);
  }

  #answerEverything(): void {
    const { server } = this.world;
    for (const dial of [...server.dials]) dial.fail();
    for (const socket of [...server.sockets]) socket.finishClosing();
    for (const socket of [...server.sockets]) socket.answerCheck();
  }

  // ---- the steps --------------------------------------------------------------------------------------------------

  readonly #does: Readonly<Record<StepName, (a: number, b: number) => void>> = {
    take: () => this.#take(),
    ask: (a, b) => this.#ask(timeoutFrom(a), b),
    askAsUsual: (_a, b) => {
      this.#ask(this.world.pool.usualTimeoutMs, b);
    },
    abort: (a) => {
      const caller = pick(this.world.queue, a);
      if (caller === undefined) return;
      this.#expect(caller.abort(), 'an abort of a waiting caller said no');
      this.#expect(
        caller.outcome === 'failed' && caller.error === caller.abortError,
        'an aborted caller was not told',
      );
      this.#expect(!caller.abort(), 'a second abort said yes');
    },
    withdraw: (a) => {
      const caller = pick(this.world.queue, a);
      if (caller === undefined) return;
      this.#expect(caller.withdraw(), 'a waiting caller could not leave');
      this.#expect(!caller.withdraw(), 'a caller left twice');
    },
    release: (a) => this.#giveBack(pick(this.world.leases, a), undefined),
    releaseWithError: (a, b) => this.#giveBack(pick(this.world.leases, a), b < 0.5 ? new Error('bad') : true),
    releaseTwice: (a) => this.#giveBackAgain(pick(this.#finished, a)),
    releaseStale: () => {
      const stale = this.#finished.find((lease) => lease.socket.place === 'in_use');
      this.#giveBackAgain(stale);
    },
    breakOne: (a) => {
      const socket = pick(this.world.server.sockets, a);
      if (socket?.pooled === undefined) return;
      this.#note(`breaks while ${socket.place}`);
      socket.breakDown();
    },
    resize: (a) => this.#resize(Math.floor(a * (this.world.policy.max + 3))),
    resizeToNonsense: (a) => {
      const nonsense = [-1, 1.5, Number.NaN, never][Math.floor(a * 4)] as number;
      try {
        this.world.pool.resize(nonsense);
        this.#expect(false, `resize(${nonsense}) was accepted`);
      } catch (error) {
        this.#expect(error instanceof RangeError, `resize(${nonsense}) threw ${error}`);
      }
    },
    pause: () => {
      if (this.#intentions.state === 'open') this.#intentions.state = 'paused';
      this.world.pool.pause();
    },
    resume: () => this.#resume(),
    ready: (a, b) =>
      this.#ready(Math.floor(a * (this.world.policy.max + 2)), b < 0.2 ? never : Math.floor(b * 60)),
    drain: (a) => this.#drain(a < 0.4 ? never : Math.floor(a * 60)),
    wait: (a) => this.world.advance(Math.floor(a * 15)),
    waitLong: (a) => this.world.advance(Math.floor(a * 200)),
    waitForScans: (a) => this.world.advance(Math.floor(a * 2_500)),
    stall: (a) => this.world.stall(Math.floor(a * 40)),
    creep: (a) => this.world.creep(a * 3),
    answerDial: (a) => pick(this.world.server.dials, a)?.succeed(),
    failDial: (a) => pick(this.world.server.dials, a)?.fail(),
    answerClose: (a) => pick(this.world.server.sockets, a)?.finishClosing(),
    loseLeases: (a) => this.#evidence.budget?.lose(1 + Math.floor(a * 3)),
    recallLeases: (a) => this.#evidence.budget?.recall(Math.floor(a * 4)),
    leasesAvailable: (a) => {
      if (a < 0.5) this.#evidence.budget?.tellAvailable();
      else this.#evidence.budget?.grant();
    },
    leasesRefused: () => this.#evidence.budget?.tellRefused(),
    answerCheck: (a, b) =>
      pick(this.world.server.sockets, a)?.answerCheck(b < 0.3 ? new Error('unwell') : undefined),
  };

  #take(): void {
    const { server, policy, now, time, queue } = this.world;
    const isOpen = this.#intentions.state === 'open' && queue.size === 0;
    const usable = [...server.sockets].filter((socket) => this.#evidence.isUsable(socket));
    const lease = this.world.take('holder');
    if (lease === undefined) {
      const isForTaking = isOpen && usable.length > 0 && time.coarse() === now;
      this.#expect(!isForTaking, `law 3: tryTake() gave nothing while ${usable.length} were idle and usable`);
      return;
    }
    this.#note('taken');
    const better = usable.find((other) => {
      const earlier = (other.pooled?.idleSince ?? 0) - lease.pooled.idleSince;
      return other.place === 'idle' && (policy.idleOrder === 'lifo' ? earlier > 0 : earlier < 0);
    });
    this.#expect(better === undefined, `${policy.idleOrder}: socket ${lease.socket.id} before ${better?.id}`);
  }

  #ask(timeout: number, b: number): Caller {
    const wasOver = this.#intentions.state === 'draining';
    const caller = this.world.ask(timeout, (settled) => {
      this.#note(`caller ${settled.outcome}: ${settled.error?.constructor.name ?? 'granted'}`);
      this.#react(settled, b);
    });
    if (wasOver) this.#expect(caller.outcome === 'failed', 'a caller was queued in a pool that is closing');
    const { pool, policy, server } = this.world;
    const isWithoutHope =
      caller.outcome === 'waiting' && policy.onDialFailure === 'retry' && server.live + server.opening === 0;
    if (isWithoutHope && pool.stats().breaker === 'open') {
      this.#expect(
        this.#intentions.state === 'paused',
        'a caller waits although the breaker is open and nothing lives',
      );
    }
    return caller;
  }

  /** Acts of a few callers inside the call that answers them. */
  #react(caller: Caller, b: number): void {
    if (this.#isEnding) return;
    if (b < 0.05 && caller.lease) this.#giveBack(caller.lease, undefined);
    else if (b < 0.08 && caller.lease) this.#giveBack(caller.lease, new Error('bad'));
    else if (b < 0.12) this.world.ask(timeoutFrom(b * 8));
    else if (b < 0.17) this.#take();
    else if (b < 0.19) this.#resize(Math.floor(b * 100) % 4);
    else if (b < 0.195) this.#drain(20);
    else return;
    this.#note('acts from inside an answer');
  }

  #giveBack(lease: FakeLease | undefined, error: unknown): void {
    if (lease === undefined) return;
    this.world.leases.delete(lease);
    this.#finished.push(lease);
    lease.release(error);
    const { socket } = lease;
    if (error !== undefined)
      this.#expect(!socket.isLive, `socket ${socket.id} lives on after a release with an error`);
  }

  #giveBackAgain(lease: FakeLease | undefined): void {
    if (lease === undefined) return;
    try {
      lease.release();
      this.#expect(lease.socket.reason === 'drain_deadline', 'a second release was accepted');
    } catch (error) {
      this.#note('second release is refused');
      this.#expect(error instanceof DoubleReleaseError, `a second release threw ${error}`);
    }
  }

  #resize(limit: number): void {
    this.#intentions.limit = limit - this.#limitLessBy;
    this.world.pool.resize(limit);
  }

  #resume(): void {
    if (this.#intentions.state === 'paused') this.#intentions.state = 'open';
    this.world.pool.resume();
  }

  #ready(target: number, timeout: number): void {
    const request = { target, deadline: this.world.now + timeout };
    const { readyRequests } = this.#intentions;
    readyRequests.add(request);
    const settle = (outcome: string, isTrue: boolean): void => {
      this.#note(`ready() ${outcome}`);
      this.#expect(readyRequests.delete(request), 'a ready() was answered twice');
      this.#expect(isTrue, `ready(${target}) ${outcome} with ${this.world.server.live} connections`);
    };
    const wasEnding = this.#intentions.state === 'draining';
    this.world.pool.whenReady({
      ...request,
      reached: () => settle('reached', this.world.server.live >= target),
      missed: () =>
        settle('missed', this.world.due >= request.deadline || this.#intentions.state === 'draining'),
    });
    this.#expect(!wasEnding || !readyRequests.has(request), 'a ready() waits in a pool that is closing');
  }

  #drain(deadline: number): void {
    this.#intentions.state = 'draining';
    // From now on the first fill matters to nobody, and nothing is told of it.
    if (this.#intentions.fill !== undefined) this.#intentions.readyRequests.delete(this.#intentions.fill);
    this.#intentions.fill = undefined;
    this.#intentions.drainDeadline = Math.min(this.#intentions.drainDeadline, this.world.now + deadline);
    this.#drainCalls++;
    let isDone = false;
    this.world.pool.drain(this.world.now + deadline, () => {
      this.#expect(!isDone, 'a drain was answered twice');
      isDone = true;
      this.#drainsDone++;
      this.world.drains++;
    });
  }

  #note(what: string): void {
    this.#seen.add(what);
  }

  #expect(truth: boolean, otherwise: string): void {
    if (!truth) this.world.contradict(otherwise);
  }
}

function timeoutFrom(a: number): number {
  if (a < 0.3) return never;
  return a < 0.35 ? 0 : Math.floor(a * 60);
}

function pick<T>(from: Iterable<T>, a: number): T | undefined {
  const all = [...from];
  return all[Math.floor(a * all.length)];
}
