/** Recognizes the functions by which test tools replace timers. */

interface Marks {
  /** Mark of sinon's fake timers, on which those of Vitest and Jest are built. */
  readonly clock?: unknown;
  /** Mark of Jest's legacy fake timers. */
  readonly _isMockFunction?: unknown;
}

/** Name of the functions of `node:test`, which have no mark. */
const nameInNodeTest = 'bound #createTimer';

/** True if a test tool has put the function in the place of Node's, as far as it tells. */
export function isFake(found: (...args: never[]) => unknown): boolean {
  const { clock, _isMockFunction } = found as Marks;
  return clock !== undefined || _isMockFunction === true || isOfNodeTest(found);
}

export function isOfNodeTest(found: (...args: never[]) => unknown): boolean {
  return found.name === nameInNodeTest;
}
