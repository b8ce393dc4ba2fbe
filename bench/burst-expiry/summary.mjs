// @ts-check
// The results of a load, in a row and in words: percentiles, errors, the fewest that were ready, and which target was met.
import { layOut } from '../table.mjs';

/**
 * @typedef {import('./open-loop.mjs').LoadOutcome} LoadOutcome
 * @typedef {import('./connection-gate.mjs').GateCounts} GateCounts
 */

/**
 * One pool under load behind one gate.
 * @typedef {object} Trial
 * @property {string} title
 * @property {import('./connection-gate.mjs').Manner} manner of the gate
 * @property {boolean} hasTargets
 * @property {LoadOutcome & { discards: Record<string, number> }} outcome
 * @property {GateCounts} gate when the load was over
 */

/**
 * @typedef {object} Verdict
 * @property {string} wanted
 * @property {string} reached
 * @property {boolean} ok
 */

/**
 * @typedef {object} TrialSummary
 * @property {string} title
 * @property {import('./connection-gate.mjs').Manner} manner
 * @property {number} checkouts
 * @property {number} errors
 * @property {LoadOutcome['failures']} failures
 * @property {{ p50: number, p99: number, max: number }} checkoutMs from asking to having
 * @property {{ p99: number, max: number }} sinceDueMs from when the caller was due
 * @property {number} slow checkouts over the target
 * @property {number} waited checkouts that were not served at once
 * @property {number} slowAtOnce checkouts over the target that were served in the turn in which they asked
 * @property {number} longestStallMs
 * @property {number} longestHoldMs
 * @property {number} fewestReady
 * @property {GateCounts} gate
 * @property {Record<string, number>} discards
 * @property {Verdict[]} targets
 */

export const slowestCheckoutMs = 5;
const wantedP99Ms = 1;

/**
 * @param {Trial} trial
 * @returns {TrialSummary}
 */
export function summarize({ title, manner, hasTargets, outcome, gate }) {
  const { tookMs, lateMs, waited, stalls } = outcome;
  const sinceDueMs = tookMs.map((ms, caller) => ms + (lateMs[caller] ?? 0));
  const checkoutMs = { p50: quantile(tookMs, 0.5), p99: quantile(tookMs, 0.99), max: quantile(tookMs, 1) };
  const isSlow = tookMs.map((ms) => ms > slowestCheckoutMs);
  const errors = outcome.refusedMs.length + outcome.unserved + outcome.failedQueries;
  return {
    title,
    manner,
    checkouts: tookMs.length,
    errors,
    failures: outcome.failures,
    checkoutMs,
    sinceDueMs: { p99: quantile(sinceDueMs, 0.99), max: quantile(sinceDueMs, 1) },
    slow: isSlow.filter(Boolean).length,
    waited: waited.filter(Boolean).length,
    slowAtOnce: isSlow.filter((slow, caller) => slow && !waited[caller]).length,
    longestStallMs: Math.max(0, ...stalls.ms),
    longestHoldMs: outcome.longestHoldMs,
    fewestReady: Math.min(...outcome.samples.ready),
    gate,
    discards: outcome.discards,
    targets: hasTargets ? judge(errors, checkoutMs) : [],
  };
}

/**
 * @param {number} errors
 * @param {{ p99: number, max: number }} checkoutMs
 * @returns {Verdict[]}
 */
function judge(errors, { p99, max }) {
  return [
    { wanted: 'no error', reached: String(errors), ok: errors === 0 },
    { wanted: `max <= ${slowestCheckoutMs} ms`, reached: inMs(max), ok: max <= slowestCheckoutMs },
    { wanted: `p99 < ${wantedP99Ms} ms`, reached: inMs(p99), ok: p99 < wantedP99Ms },
  ];
}

/** @param {TrialSummary[]} summaries */
export function formatTrials(summaries) {
  const header = ['contestant', 'gate', 'errors', 'p50 ms', 'p99 ms', 'max ms'];
  header.push(
    `> ${slowestCheckoutMs} ms`,
    'waited',
    'since due',
    'least ready',
    'opened',
    'refused',
    'held ms',
    'stalled ms',
  );
  const rows = summaries.map((trial) => [
    trial.title,
    trial.manner,
    String(trial.errors),
    milliseconds(trial.checkoutMs.p50),
    milliseconds(trial.checkoutMs.p99),
    milliseconds(trial.checkoutMs.max),
    String(trial.slow),
    String(trial.waited),
    milliseconds(trial.sinceDueMs.max),
    String(trial.fewestReady),
    String(trial.gate.accepted),
    String(trial.gate.refused),
    milliseconds(trial.longestHoldMs),
    milliseconds(trial.longestStallMs),
  ]);
  return layOut(
    header,
    rows,
    header.map((_, column) => column).filter((column) => column > 1),
  );
}

/**
 * The targets, and what there is to know about those that were missed.
 * @param {TrialSummary} trial
 */
export function formatVerdicts(trial) {
  const verdicts = trial.targets.map(
    ({ wanted, reached, ok }) => `${wanted}: ${ok ? 'ok' : 'MISSED'} (${reached})`,
  );
  const lines = [`${trial.title}, gate: ${trial.manner}. ${verdicts.join(', ')}`];
  if (trial.targets.every(({ ok }) => ok)) return lines.join('\n');
  lines.push(
    `  ${trial.waited} checkouts had to wait. ${trial.slowAtOnce} of ${trial.slow} slow ones did not, and lost their time in ` +
      'this process: to the machine, to a collection of garbage, or to work done in between. ' +
      `Connections were held for up to ${inMs(trial.longestHoldMs)}.`,
  );
  for (const [code, { times, first }] of Object.entries(trial.failures))
    lines.push(`  ${times}x ${code}: ${first}`);
  const discards = Object.entries(trial.discards).filter(([, times]) => times > 0);
  lines.push(`  closed: ${discards.map(([reason, times]) => `${times} ${reason}`).join(', ')}`);
  return lines.join('\n');
}

/**
 * @param {number[]} values
 * @param {number} part
 */
function quantile(values, part) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

/** @param {number} ms */
function milliseconds(ms) {
  return ms.toFixed(ms < 10 ? 2 : 0);
}

/** @param {number} ms */
function inMs(ms) {
  return `${milliseconds(ms)} ms`;
}
