// How the server, the limiter and the budget treat the pool, by the weather and by the fate of each step.
import type { Manners } from '../../support/fake-server.js';
import type { VirtualWorld } from '../../support/virtual-world.js';
import { budgetExhausted, type FakeBudget } from './fake-budget.js';
import type { Scenario } from './scenario.js';
import type { WatchedLimiter } from './watched-limiter.js';

export interface Fate {
  /** Uniform in [0, 1); the same for the same step. */
  draw(): number;
  note(what: string): void;
}

export function serverManners(world: VirtualWorld, { weather: sky, kind }: Scenario, fate: Fate): Manners {
  const chance = (probability: number): boolean => fate.draw() < probability;
  const delay = (): number => Math.floor(fate.draw() * 20);
  return {
    onDial: (dial) => {
      if (chance(sky.dialHangs)) return fate.note('dial hangs');
      const fails = chance(sky.dialFails);
      const atOnce = chance(sky.dialAtOnce);
      if (!fails) {
        fate.note(atOnce ? 'dial succeeds at once' : 'dial succeeds');
        return atOnce ? dial.succeed() : dial.succeedAfter(delay());
      }
      if (kind === 'source' && chance(sky.dialFailsForNow)) {
        fate.note('dial fails for now');
        return atOnce ? dial.failForNow() : world.time.plan(world.now + delay(), () => dial.failForNow());
      }
      const cause = kind === 'source' ? pickCause(fate) : undefined;
      fate.note(cause === undefined ? 'dial fails' : `dial fails: ${cause}`);
      if (atOnce) fate.note('dial fails at once');
      return atOnce ? dial.fail(undefined, cause) : dial.failAfter(delay(), undefined, cause);
    },
    onAbandon: (dial) => {
      if (chance(sky.dialIgnoresAbandoning)) {
        fate.note('abandoned dial goes on');
        return chance(0.5) ? dial.succeedAfter(delay() * 3) : undefined;
      }
      if (chance(0.3)) return dial.fail();
      return chance(0.3) ? dial.succeed() : dial.failAfter(delay());
    },
    onClose: (socket) => {
      if (chance(sky.closeHangs)) return fate.note('close hangs');
      if (chance(sky.closeAtOnce)) return socket.finishClosing();
      return world.time.plan(world.now + delay(), () => socket.finishClosing());
    },
    onCheck: (socket) => {
      if (chance(sky.checkHangs)) return fate.note('check hangs');
      const error = chance(sky.checkFails) ? new Error('unwell') : undefined;
      fate.note(error === undefined ? 'check passes' : 'check fails');
      if (chance(sky.checkAtOnce)) return socket.answerCheck(error);
      return world.time.plan(world.now + Math.floor(fate.draw() * 8), () => socket.answerCheck(error));
    },
  };
}

function pickCause(fate: Fate): 'rate_limit' | 'token_provider' | 'connection_open' | undefined {
  return ([undefined, 'connection_open', 'rate_limit', 'token_provider'] as const)[
    Math.floor(fate.draw() * 4)
  ];
}

export function spoilSource(
  { weather: sky, kind }: Scenario,
  fate: Fate,
  limiter: WatchedLimiter | undefined,
  budget: FakeBudget | undefined,
): void {
  const chance = (probability: number): boolean => fate.draw() < probability;
  if (limiter !== undefined && kind === 'source') {
    limiter.throws = () => {
      const throws = chance(sky.limiterThrows);
      if (throws) fate.note('limiter throws');
      return throws;
    };
    limiter.stalls = () => {
      if (!chance(sky.limiterStalls)) return 0;
      fate.note('limiter stalls');
      return 1 + Math.floor(fate.draw() * 30);
    };
  }
  if (budget === undefined) return;
  budget.answers = () => {
    if (chance(sky.leaseLater)) {
      fate.note('lease later');
      return 'asking';
    }
    if (!chance(sky.leaseRefused)) return 'granted';
    fate.note('lease refused');
    return chance(0.2) ? 'throw' : budgetExhausted;
  };
  budget.onAsking = () => {
    if (chance(0.3)) return;
    const isYes = !chance(sky.leaseRefused);
    budget.world.time.plan(budget.world.now + Math.floor(fate.draw() * 30), () => {
      if (!budget.isAsking) return;
      fate.note(isYes ? 'lease after a while' : 'no lease after a while');
      if (isYes && chance(0.5)) {
        if (!budget.grant()) fate.note('lease not taken');
      } else if (isYes) budget.tellAvailable();
      else if (chance(0.5)) budget.tellDelayed();
      else budget.tellRefused();
    });
  };
  budget.queues = () => {
    const queues = chance(0.5);
    if (queues) fate.note('lease waited for');
    return queues;
  };
}

/** Everything works from now on. */
export function mend(world: VirtualWorld, limiter?: WatchedLimiter, budget?: FakeBudget): void {
  const { manners } = world.server;
  manners.onDial = (dial) => dial.succeedAfter(1);
  manners.onAbandon = (dial) => dial.fail();
  manners.onClose = (socket) => socket.finishClosing();
  manners.onCheck = (socket) => socket.answerCheck();
  if (limiter !== undefined) {
    limiter.throws = () => false;
    limiter.stalls = () => 0;
  }
  if (budget === undefined) return;
  budget.size = Number.POSITIVE_INFINITY;
  budget.answers = () => 'granted';
  budget.queues = () => false;
  if (budget.isAsking && !budget.grant()) budget.tellAvailable();
}
