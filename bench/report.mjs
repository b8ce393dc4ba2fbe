// @ts-check
// From measured rounds to a table: medians, ratios, and whether each wanted ratio was reached.
import { layOut } from './table.mjs';

/**
 * @typedef {import('./groups.mjs').Group} Group
 * @typedef {import('./groups.mjs').Target} Target
 * @typedef {import('./contest.mjs').Outcome} Outcome
 */

/**
 * @typedef {object} TargetReport
 * @property {string} wanted
 * @property {number} [reached] the ratio, where both have measurements
 * @property {boolean} ok
 */

/**
 * @typedef {object} RowReport
 * @property {string} title
 * @property {number} [figure]
 * @property {number} [cpuMicroseconds]
 * @property {number} [ratio] to the first row
 * @property {TargetReport[]} targets
 * @property {string} [failed]
 */

/**
 * @typedef {object} GroupReport
 * @property {string} name
 * @property {string} about
 * @property {Group['figure']} unit
 * @property {boolean} database
 * @property {RowReport[]} rows
 */

const columns = { perSecond: 'ops/s', nanoseconds: 'ns/op', bytes: 'bytes' };

/**
 * @param {Group} group
 * @param {Outcome[]} outcomes in the order of the group's entries
 * @returns {GroupReport}
 */
export function report(group, outcomes) {
  /** @type {Map<string, number[]>} */
  const figures = new Map();
  for (const [index, entry] of group.entries.entries()) {
    const rounds = outcomes[index]?.rounds ?? [];
    figures.set(
      entry.title,
      rounds.map((round) => round[group.figure] ?? Number.NaN),
    );
  }
  const first = group.entries[0]?.title ?? '';
  const rows = group.entries.map((entry, index) => {
    const outcome = outcomes[index];
    const own = figures.get(entry.title) ?? [];
    /** @type {RowReport} */
    const row = { title: entry.title, targets: [] };
    if (own.length > 0) row.figure = median(own);
    if (group.database === true && own.length > 0) {
      row.cpuMicroseconds = median(
        (outcome?.rounds ?? []).map((round) => round.cpuMicroseconds ?? Number.NaN),
      );
    }
    const ratio = medianRatio(own, figures.get(first) ?? []);
    if (ratio !== undefined) row.ratio = ratio;
    if (outcome?.failed !== undefined) row.failed = outcome.failed;
    row.targets = (entry.targets ?? []).map((target) =>
      judge(target, medianRatio(own, figures.get(target.to) ?? []), first),
    );
    return row;
  });
  return {
    name: group.name,
    about: group.about,
    unit: group.figure,
    database: group.database ?? false,
    rows,
  };
}

/** @param {GroupReport} group */
export function missedTargets(group) {
  return group.rows.flatMap((row) => row.targets).filter((target) => !target.ok);
}

/** @param {GroupReport} group */
export function formatTable(group) {
  const header = ['contestant', columns[group.unit]];
  if (group.database) header.push('cpu us/op');
  header.push('ratio', 'target', '');
  const lines = group.rows.map((row) => {
    const cells = [row.title, row.figure === undefined ? '-' : formatFigure(row.figure, group.unit)];
    if (group.database) cells.push(row.cpuMicroseconds?.toFixed(1) ?? '-');
    cells.push(formatRatio(row.ratio));
    cells.push(row.targets.map((target) => target.wanted).join(', '));
    cells.push(row.failed ?? row.targets.map(formatVerdict).join(', '));
    return cells;
  });
  const numeric = group.database ? [1, 2, 3] : [1, 2];
  return `${group.name}: ${group.about}\n${layOut(header, lines, numeric)}`;
}

/**
 * @param {Target} target
 * @param {number | undefined} reached
 * @param {string} reference
 * @returns {TargetReport}
 */
function judge(target, reached, reference) {
  const { atLeast, atMost } = target;
  const whom = target.to === reference ? '' : ` ${target.to}`;
  const wanted = atLeast === undefined ? `<= ${atMost}x${whom}` : `>= ${atLeast}x${whom}`;
  if (reached === undefined) return { wanted, ok: false };
  // The figure is judged as the table prints it: 0.996 is 1.00.
  const rounded = Number(reached.toFixed(digits(reached)));
  const ok = (atLeast === undefined || rounded >= atLeast) && (atMost === undefined || rounded <= atMost);
  return { wanted, reached, ok };
}

/** @param {TargetReport} target */
function formatVerdict(target) {
  if (target.reached === undefined) return 'not measured';
  return `${target.ok ? 'ok' : 'SHORT'} (${formatRatio(target.reached)})`;
}

/**
 * The median of the ratios of each round: measurements that were taken next to each other are compared.
 * @param {number[]} ours
 * @param {number[]} theirs
 */
function medianRatio(ours, theirs) {
  const rounds = Math.min(ours.length, theirs.length);
  if (rounds === 0) return undefined;
  return median(ours.slice(0, rounds).map((figure, round) => figure / (theirs[round] ?? Number.NaN)));
}

/** @param {number[]} values */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  return (upper + lower) / 2;
}

/**
 * @param {number} figure
 * @param {Group['figure']} unit
 */
function formatFigure(figure, unit) {
  if (unit === 'bytes') return figure.toFixed(0);
  if (unit === 'nanoseconds') return figure.toFixed(figure < 100 ? 1 : 0);
  if (figure >= 1e5) return `${(figure / 1e6).toFixed(2)} M`;
  return `${(figure / 1e3).toFixed(1)} k`;
}

/** @param {number | undefined} ratio */
function formatRatio(ratio) {
  return ratio === undefined ? '-' : `${ratio.toFixed(digits(ratio))}x`;
}

/** @param {number} ratio */
function digits(ratio) {
  return ratio < 0.1 ? 4 : 2;
}
