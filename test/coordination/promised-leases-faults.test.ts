// Whatever a coordinator and the network do, what is held is what the coordinator counts once all is quiet.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { leasesFrom, type PromisedLeases } from '../../src/coordination/promised-leases.js';
import { SeededRandom } from '../../src/kernel/random.js';
import { FakeCoordinator, type Fate, type Manner, type Operation } from './fake-coordinator.js';
import { ModelHolder } from './model-holder.js';
import { VirtualCoordination } from './virtual-coordination.js';

const names = ['a', 'b', 'c'] as const;
const holder = fc.nat({ max: names.length - 1 });
const pause = fc.oneof(fc.constant(0), fc.nat({ max: 20 }), fc.nat({ max: 8_000 }));
const command = fc.oneof(
  fc.record({ what: fc.constant('want' as const), holder, count: fc.nat({ max: 4 }), pause }),
  fc.record({ what: fc.constant('want' as const), holder, count: fc.nat({ max: 4 }), pause }),
  fc.record({ what: fc.constant('replace' as const), holder, count: fc.constant(1), pause }),
  fc.record({ what: fc.constant('mood' as const), holder, count: fc.nat({ max: 1 }), pause }),
  fc.record({
    what: fc.constant('take away' as const),
    holder,
    count: fc.integer({ min: 1, max: 3 }),
    pause,
  }),
  // While a holder is being told something, it gives back, another asks, or leases are taken away.
  fc.record({
    what: fc.constantFrom('shrink when told' as const, 'grow when told' as const, 'lose when told' as const),
    holder,
    count: fc.nat({ max: 4 }),
    pause,
  }),
);
const commands = fc.array(command, { maxLength: 30 });
type Commands = typeof commands extends fc.Arbitrary<infer C> ? C : never;

interface Play {
  readonly seed: number;
  readonly limit: number;
  /** How much of what is sent has another fate than to be answered. */
  readonly troubles: number;
  readonly script: Commands;
}

interface Rules {
  readonly fates: Readonly<Record<Operation, readonly Fate[]>>;
  readonly withCancel: boolean;
  /** How long a request and its answer may be on their way, each. */
  readonly slowestMs: number;
  /** Whether those who are refused ask again by themselves after a while. */
  readonly haveBackoff: boolean;
}

const plays = fc.record({
  seed: fc.nat(),
  limit: fc.nat({ max: 6 }),
  troubles: fc.constantFrom(0, 0.1, 0.5, 0.9),
  script: commands,
});

/** Plays the script, then lets all be well for as long as it takes until nothing happens any more. */
async function play({ seed, limit, troubles, script }: Play, rules: Rules) {
  const world = new VirtualCoordination();
  const random = new SeededRandom(seed);
  const coordinator = new FakeCoordinator(world, limit);
  const { acquire, release, cancel } = coordinator.functions;
  const leases = leasesFrom({
    acquire,
    release,
    ...(rules.withCancel ? { cancel } : {}),
    clock: world.time,
    alarm: world.alarm,
    random,
  });
  const delay = (): number => random.next() ** 4 * rules.slowestMs;
  coordinator.manner = (operation): Manner => {
    const fates = rules.fates[operation];
    const isInTrouble = random.next() < troubles;
    const fate = isInTrouble ? fates[Math.floor(random.next() * fates.length)] : 'answered';
    return { fate: fate as Fate, requestMs: delay(), answerMs: delay() };
  };
  const retryLater = (attempt: () => void): void => world.plan(100 + random.next() * 5_000, attempt);
  const all = names.map((name) => new ModelHolder(name, leases, rules.haveBackoff ? retryLater : undefined));
  for (const actor of all) actor.tellsDemand = random.next() < 0.5;
  const judge = (): void => {
    // No holder may hold a lease that the coordinator does not count.
    expect(heldBy(all)).toBeLessThanOrEqual(coordinator.counted);
    expect(coordinator.counted).toBeLessThanOrEqual(coordinator.limit);
    expect(leases.stats()).toMatchObject({ held: heldBy(all), strayReleases: 0 });
    for (const { complaints } of all) expect(complaints).toEqual([]);
  };
  for (const { what, holder, count, pause } of script) {
    const actor = all[holder] as ModelHolder;
    if (what === 'want') actor.want(count);
    else if (what === 'replace') actor.replaceOne();
    else if (what === 'mood') actor.mood = count === 0 ? 'eager' : 'uninterested';
    else if (what === 'take away') takeAway(count, coordinator, leases);
    else {
      const next = all[(holder + 1) % all.length] as ModelHolder;
      actor.onTold = (told) => {
        // Leases that are being lost can't be taken away once more.
        if (told === 'lost') return;
        actor.onTold = undefined;
        if (what === 'shrink when told') actor.wants = Math.max(0, actor.wants - count);
        else if (what === 'grow when told') next.want(count);
        else takeAway(count, coordinator, leases);
      };
    }
    // A lease that is lost during a call to a holder is lost a moment later.
    await world.advance(pause, judge);
  }
  coordinator.manner = () => ({ fate: 'answered', requestMs: 5, answerMs: 5 });
  for (const actor of all) {
    actor.mood = 'eager';
    actor.onTold = undefined;
  }
  await world.advance(120_000, judge);
  return { all, coordinator, leases };
}

/** Only what is surely held or unsent: what is on its way back is no longer the process's to lose. */
function takeAway(count: number, coordinator: FakeCoordinator, leases: PromisedLeases): void {
  const lost = Math.min(count, leases.stats().held);
  if (lost === 0) return;
  coordinator.takeAway(lost);
  leases.lost(lost);
}

function heldBy(all: readonly ModelHolder[]): number {
  return all.reduce((sum, each) => sum + each.held, 0);
}

/** The coordinator counts what is held, and everyone has what it wants as far as the limit goes. */
function expectAllServed(
  all: readonly ModelHolder[],
  coordinator: FakeCoordinator,
  leases: PromisedLeases,
): void {
  expect(leases.pending()).toBe(0);
  expect(coordinator.counted).toBe(heldBy(all));
  const wanted = all.reduce((sum, { wants }) => sum + wants, 0);
  expect(heldBy(all)).toBe(Math.min(wanted, coordinator.limit));
}

const anyFate: readonly Fate[] = ['request_lost', 'answer_lost', 'silent_before', 'silent_after'];

describe('With a coordinator that can cancel, whatever is delayed or lost', () => {
  const rules: Rules = {
    fates: { acquire: anyFate, release: anyFate, cancel: anyFate },
    withCancel: true,
    slowestMs: 12_000,
    haveBackoff: true,
  };

  test('the coordinator counts what is held, and all get what they want as far as the limit goes', async () => {
    await fc.assert(
      fc.asyncProperty(plays, async (scene) => {
        const { all, coordinator, leases } = await play(scene, rules);
        expectAllServed(all, coordinator, leases);
        for (const { granted, released, lost, held } of all) expect(granted).toBe(released + lost + held);
      }),
    );
  });
});

describe('With a coordinator that can not cancel, but fails only before it took effect', () => {
  const rules: Rules = {
    fates: { acquire: ['request_lost', 'silent_before'], release: anyFate, cancel: [] },
    withCancel: false,
    slowestMs: 12_000,
    haveBackoff: true,
  };

  test('the coordinator counts what is held, late answers included', async () => {
    await fc.assert(
      fc.asyncProperty(plays, async (scene) => {
        const { all, coordinator, leases } = await play(scene, rules);
        expectAllServed(all, coordinator, leases);
      }),
    );
  });
});

describe('With a coordinator that always says yes or no in time', () => {
  const rules: Rules = {
    fates: { acquire: ['answered'], release: anyFate, cancel: [] },
    withCancel: false,
    slowestMs: 2_000,
    haveBackoff: false,
  };

  test('a holder that waits for a lease need not ask again: it is told when it could have one', async () => {
    await fc.assert(
      fc.asyncProperty(plays, async (scene) => {
        const { all, coordinator } = await play(scene, rules);
        expect(coordinator.counted).toBe(heldBy(all));
        const wanted = all.reduce((sum, { wants }) => sum + wants, 0);
        expect(heldBy(all)).toBe(Math.min(wanted, coordinator.limit));
      }),
    );
  });
});
