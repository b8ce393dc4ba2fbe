// Randomness that can be had again: the seed is drawn anew for each run, or given in HEADGATE_SEED.

export interface SeededRandom {
  readonly seed: number;
  /** A whole number from 0 to `limit - 1`. */
  below(limit: number): number;
  chance(probability: number): boolean;
  pick<T>(choices: readonly T[]): T;
}

export function seededRandom(seed = drawSeed()): SeededRandom {
  let state = seed >>> 0;
  // Mulberry32: small, quick, and good enough to shuffle a test.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    seed,
    below,
    chance: (probability) => next() < probability,
    pick: (choices) => choices[below(choices.length)] as (typeof choices)[number],
  };
}

function drawSeed(): number {
  const { HEADGATE_SEED: given } = process.env;
  if (given !== undefined && given !== 'random') return Number(given);
  return Math.floor(Math.random() * 2 ** 31);
}
