// @ts-check
// Figures from figures, and how they are written.

/** @typedef {{ wanted: string, reached: string, ok: boolean }} Target */

/**
 * @param {ArrayLike<number>} sorted
 * @param {number} share from 0 to 1
 */
export function percentile(sorted, share) {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** @param {number[]} values */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  return (upper + lower) / 2;
}

/**
 * Jain's index of how equal these are: 1 where all have the same, 1/n where one has everything.
 * @param {number[]} values
 */
export function jainIndex(values) {
  const sum = values.reduce((a, b) => a + b, 0);
  const squares = values.reduce((a, b) => a + b * b, 0);
  return squares === 0 ? 0 : sum ** 2 / (values.length * squares);
}

/**
 * Judges the figure as it is printed.
 * @param {string} what
 * @param {number} value
 * @param {number} most
 * @param {(value: number) => string} write
 * @returns {Target}
 */
export function atMost(what, value, most, write) {
  return { wanted: `${what} <= ${write(most)}`, reached: write(value), ok: rounded(value, write) <= most };
}

/**
 * @param {string} what
 * @param {number} value
 * @param {number} least
 * @param {(value: number) => string} write
 * @returns {Target}
 */
export function atLeast(what, value, least, write) {
  return { wanted: `${what} >= ${write(least)}`, reached: write(value), ok: rounded(value, write) >= least };
}

/**
 * @param {number} value
 * @param {(value: number) => string} write
 */
function rounded(value, write) {
  return Number.parseFloat(write(value).replaceAll(',', ''));
}

/** @param {number} value */
export function count(value) {
  return Math.round(value).toLocaleString('en');
}

/** @param {number} ms */
export function inMs(ms) {
  if (!Number.isFinite(ms)) return 'none';
  return `${ms >= 100 ? count(ms) : ms.toFixed(ms < 10 ? 2 : 1)} ms`;
}

/** @param {number} ratio */
export function times(ratio) {
  return Number.isFinite(ratio) ? `${ratio.toFixed(ratio >= 100 ? 0 : 2)}x` : 'none';
}

/** @param {number} index */
export function hundredths(index) {
  return index.toFixed(2);
}

/** @param {Target[]} targets */
export function verdicts(targets) {
  return targets
    .map(({ wanted, reached, ok }) => `${wanted}: ${ok ? 'ok' : 'MISSED'} (${reached})`)
    .join(', ');
}
