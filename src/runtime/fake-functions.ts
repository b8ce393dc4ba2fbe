/** Recognizes the functions by which test tools replace timers. */

interface Marks {
  /** Of sinon, on which those of Vitest and Jest are built. */
  readonly clock?: unknown;
  /** Of Jest's legacy fake timers. */
  readonly _isMockFunction?: unknown;
}

/** Of `node:test`, whose functions have no mark. */
const nameInNodeTest = 'bound #createTimer';

/** True if a test tool has put the function in the place of Node's, as far as it tells. */
export function isFake(found: (...args: never[]) => unknown): boolean {
  const { clock, _isMockFunction } = found as Marks;
  return clock !== undefined || _isMockFunction === true || isOfNodeTest(found);
}

export function isOfNodeTest(found: (...args: never[]) => unknown): boolean {
  return found.name === nameInNodeTest;
}
