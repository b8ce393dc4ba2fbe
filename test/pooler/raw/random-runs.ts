// How random comparisons are run and replayed. A failure prints its seed and path:
// HEADGATE_SEED=<seed> HEADGATE_PATH=<path> plays exactly that one again, HEADGATE_SEQUENCES=<number> plays more of them.
import fc from 'fast-check';

/** How long a failure is made smaller before it is told. */
const shrinkingMs = 10_000;

export async function checkRandomly<T>(
  arbitrary: fc.Arbitrary<T>,
  usualRuns: number,
  check: (value: T) => Promise<void>,
): Promise<void> {
  const { HEADGATE_SEQUENCES: given, HEADGATE_SEED: seed, HEADGATE_PATH: path } = process.env;
  let failedAt = Number.POSITIVE_INFINITY;
  const property = fc.asyncProperty(arbitrary, async (value) => {
    // One at a time, and none is left behind: what is not tried any more counts as passed.
    if (Date.now() - failedAt > shrinkingMs) return;
    try {
      await check(value);
    } catch (error) {
      failedAt = Math.min(failedAt, Date.now());
      throw error;
    }
  });
  await fc.assert(property, {
    numRuns: Number(given ?? usualRuns),
    ...(seed === undefined || seed === 'random' ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path }),
  });
}
