// Looks for a scenario that breaks a law, makes it as small as it can, and tells how to see it again.
import type { Sabotage } from './play.js';
import { play } from './play.js';
import { drawScenario, type Kind, type Scenario, type Step, type WeatherName } from './scenario.js';

export interface Finding {
  readonly scenario: Scenario;
  readonly wrong: readonly string[];
}

/** Plays the scenarios `first`, `first + 1`, ...; answers with the first that fails, made small. */
export function search(
  first: number,
  count: number,
  weather: WeatherName,
  kind: Kind,
  seen = new Set<string>(),
  sabotage: Sabotage = {},
): Finding | undefined {
  for (let seed = first; seed < first + count; seed++) {
    const scenario = drawScenario(seed, weather, kind);
    const verdict = play(scenario, sabotage);
    for (const what of verdict.seen) seen.add(what);
    if (verdict.wrong.length > 0) return shrink(scenario, sabotage);
  }
  return undefined;
}

/** Leaves out what the failure does not need: steps in ever smaller groups, then settings, then the size of numbers. */
function shrink(scenario: Scenario, sabotage: Sabotage = {}): Finding {
  const verdict = play(scenario, sabotage);
  let best: Finding = {
    scenario: { ...scenario, steps: scenario.steps.slice(0, verdict.steps) },
    wrong: verdict.wrong,
  };
  const tryOut = (candidate: Scenario): boolean => {
    const { wrong } = play(candidate, sabotage);
    if (wrong.length === 0) return false;
    best = { scenario: candidate, wrong };
    return true;
  };
  for (let improved = true; improved; ) {
    improved = false;
    for (let size = best.scenario.steps.length; size >= 1; size = Math.floor(size / 2)) {
      for (let at = best.scenario.steps.length - size; at >= 0; at--) {
        const steps = best.scenario.steps.filter((_, index) => index < at || index >= at + size);
        if (steps.length < best.scenario.steps.length && tryOut({ ...best.scenario, steps })) improved = true;
      }
    }
    if (best.scenario.alarmIsEarlyBy > 0 && tryOut({ ...best.scenario, alarmIsEarlyBy: 0 })) improved = true;
    for (const name of Object.keys(best.scenario.draft) as (keyof Scenario['draft'])[]) {
      if (name === 'max') continue;
      const { [name]: _, ...draft } = best.scenario.draft;
      if (tryOut({ ...best.scenario, draft })) improved = true;
    }
    for (let index = 0; index < best.scenario.steps.length; index++) {
      for (const simpler of simplerSteps(best.scenario.steps[index] as Step)) {
        if (tryOut({ ...best.scenario, steps: best.scenario.steps.with(index, simpler) })) improved = true;
      }
    }
  }
  return best;
}

function simplerSteps(step: Step): Step[] {
  const simpler: Step[] = [];
  for (const key of ['a', 'b', 'fate'] as const) {
    if (step[key] !== 0) simpler.push({ ...step, [key]: 0 });
  }
  return simpler;
}

export function describeFinding({ scenario, wrong }: Finding, weather: string): string {
  const { draft, steps, seed, kind } = scenario;
  const lines = steps.map(({ name, a, b, fate }) => `  ${name} a=${round(a)} b=${round(b)} fate=${fate}`);
  return [
    `Seed ${seed} (${weather}, ${kind}) breaks a law:`,
    ...wrong.slice(0, 5).map((text) => `  ${text}`),
    'The smallest life that does:',
    `  policy ${JSON.stringify(draft)}, alarm first: ${scenario.alarmRingsFirst}, early by ${scenario.alarmIsEarlyBy}`,
    ...lines,
    `To see it again: HEADGATE_SEED=${seed} npm test -- test/core/pool-model`,
  ].join('\n');
}

function round(number: number): number {
  return Math.round(number * 1_000) / 1_000;
}

/**
 * Which sequences to play: `HEADGATE_SEED` names the first (or `random`), `HEADGATE_SEQUENCES` how many in each weather.
 * A seed alone means that one sequence.
 */
export function plan(sequences: number): { readonly first: number; readonly count: number } {
  const { HEADGATE_SEED: seed, HEADGATE_SEQUENCES: count } = process.env;
  const isOneSeed = seed !== undefined && seed !== 'random';
  const first = seed === 'random' ? Math.floor(Math.random() * 2 ** 40) : Number(seed ?? 1);
  return { first, count: Number(count ?? (isOneSeed ? 1 : sequences)) };
}
