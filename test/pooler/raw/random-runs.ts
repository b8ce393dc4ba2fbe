// How random comparisons are run and replayed. A failure prints its seed and path:
// HEADGATE_SEED=<seed> HEADGATE_PATH=<path> plays exactly that one again, HEADGATE_SEQUENCES=<number> plays more of them.
import type fc from 'fast-check';

/** Shrinking ends after this, so that a failure is told while somebody waits for it. */
const longestMs = 45_000;

export function randomRuns<T>(usual: number): fc.Parameters<T> {
  const { HEADGATE_SEQUENCES: given, HEADGATE_SEED: seed, HEADGATE_PATH: path } = process.env;
  return {
    numRuns: Number(given ?? usual),
    ...(given === undefined ? { interruptAfterTimeLimit: longestMs } : {}),
    ...(seed === undefined || seed === 'random' ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path }),
  };
}
