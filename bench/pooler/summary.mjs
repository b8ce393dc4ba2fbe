// @ts-check
// From rounds to ratios: what is ours in PgBouncer's, and whether that is what is wanted.
import { layOut } from '../table.mjs';

/**
 * @typedef {import('./pgbench.mjs').Protocol} Protocol
 * @typedef {import('./pgbench.mjs').Round} Round
 * @typedef {{ ours: number, theirs: number, ratio: number }} Comparison medians, and the median of each round's ratio
 * @typedef {{ wanted: string, reached: number, ok: boolean }} Target
 */

/**
 * @typedef {object} Case
 * @property {number} clients
 * @property {Protocol} protocol
 * @property {Comparison} perSecond
 * @property {Comparison} cpuMicros
 * @property {Comparison} p99Ms
 * @property {Target[]} targets
 */

/**
 * @typedef {object} Idle
 * @property {number} wanted clients
 * @property {number} clients
 * @property {{ emptyMegabytes: number, megabytes: number }} ours
 * @property {{ emptyMegabytes: number, megabytes: number }} theirs
 * @property {Target[]} targets
 */

/**
 * Clients that come, ask once and go.
 * @typedef {object} Visits
 * @property {number} clients at the same time
 * @property {Comparison} perSecond
 * @property {Comparison} cpuMicros
 */

/**
 * The gain of a setting that is off by default: with it and without it, each against PgBouncer.
 * @typedef {object} Variant
 * @property {string} setting
 * @property {string | undefined} notRun
 * @property {VariantLoad[]} loads
 */

/**
 * @typedef {object} VariantLoad
 * @property {number} clients
 * @property {Protocol} protocol
 * @property {Record<keyof Round, Comparison>} withIt
 * @property {boolean} isMixed one statement in a hundred takes 50 ms; p99 is that of the others
 * @property {Record<keyof Round, Comparison>} without
 * @property {Record<keyof Round, number>} gain medians of each round's ratio, with the setting to without it
 * @property {Target[]} targets
 */

const leastThroughput = { simple: 0.8, extended: 0.8, prepared: 0.9 };
const mostCpu = 1.5;
const mostP99 = 1.5;
const mostIdleMegabytes = 250;

/**
 * @param {number} clients
 * @param {Protocol} protocol
 * @param {{ ours: Round, theirs: Round }[]} pairs measured next to each other
 * @returns {Case}
 */
export function summarize(clients, protocol, pairs) {
  const perSecond = compare(pairs, 'perSecond');
  const cpuMicros = compare(pairs, 'cpuMicros');
  const p99Ms = compare(pairs, 'p99Ms');
  const targets = [
    atLeast('throughput', perSecond.ratio, leastThroughput[protocol]),
    atMost('processor time', cpuMicros.ratio, mostCpu),
    atMost('p99', p99Ms.ratio, mostP99),
  ];
  return { clients, protocol, perSecond, cpuMicros, p99Ms, targets };
}

/**
 * @param {number} clients
 * @param {{ ours: Round, theirs: Round }[]} pairs
 * @returns {Visits}
 */
export function summarizeVisits(clients, pairs) {
  return { clients, perSecond: compare(pairs, 'perSecond'), cpuMicros: compare(pairs, 'cpuMicros') };
}

/**
 * @param {number} clients
 * @param {Protocol} protocol
 * @param {boolean} isMixed
 * @param {{ other: Round, ours: Round, theirs: Round }[]} rounds measured next to each other
 * @returns {VariantLoad} without targets
 */
export function summarizeLoad(clients, protocol, isMixed, rounds) {
  /** @type {(pairs: { ours: Round, theirs: Round }[]) => Record<keyof Round, Comparison>} */
  const all = (pairs) => ({
    perSecond: compare(pairs, 'perSecond'),
    cpuMicros: compare(pairs, 'cpuMicros'),
    p99Ms: compare(pairs, 'p99Ms'),
  });
  const withIt = all(rounds.map(({ other: ours, theirs }) => ({ ours, theirs })));
  const against = all(rounds.map(({ other, ours }) => ({ ours: other, theirs: ours })));
  const gain = {
    perSecond: against.perSecond.ratio,
    cpuMicros: against.cpuMicros.ratio,
    p99Ms: against.p99Ms.ratio,
  };
  return { clients, protocol, isMixed, withIt, without: all(rounds), gain, targets: [] };
}

/**
 * Statements share connections.
 * @param {VariantLoad} load
 */
export function judgeShared({ withIt }) {
  return [
    atLeast('throughput', withIt.perSecond.ratio, 1.5),
    atMost('processor time', withIt.cpuMicros.ratio, 0.7),
    atMost('p99', withIt.p99Ms.ratio, 1.2),
  ];
}

/**
 * There are enough connections: the setting changes nothing, as far as such short rounds can tell.
 * @param {VariantLoad} load
 */
export function judgeUnshared({ gain }) {
  return [
    atLeast('throughput without it', gain.perSecond, 0.9),
    atMost('processor time without it', gain.cpuMicros, 1.1),
  ];
}

/**
 * Slow statements do not hold up short ones more than they do without the setting.
 * @param {VariantLoad} load
 */
export function judgeMixed({ gain }) {
  return [atMost('p99 without it', gain.p99Ms, 1)];
}

/**
 * @param {{ ours: Round, theirs: Round }[]} pairs
 * @param {keyof Round} figure
 * @returns {Comparison}
 */
function compare(pairs, figure) {
  return {
    ours: median(pairs.map(({ ours }) => ours[figure])),
    theirs: median(pairs.map(({ theirs }) => theirs[figure])),
    ratio: median(pairs.map(({ ours, theirs }) => ours[figure] / theirs[figure])),
  };
}

/**
 * @param {Omit<Idle, 'targets'>} idle
 * @returns {Idle}
 */
export function judgeIdle(idle) {
  const { wanted, clients, ours } = idle;
  const memory = {
    wanted: `< ${mostIdleMegabytes} MB with ${wanted.toLocaleString('en')} idle clients`,
    reached: ours.megabytes,
    ok: clients === wanted && ours.megabytes < mostIdleMegabytes,
  };
  return { ...idle, targets: [memory] };
}

/**
 * @param {Case[]} cases
 * @param {{ version: string, preparesInTransactions: boolean }} pgbouncer
 */
export function formatCases(cases, { version, preparesInTransactions }) {
  const mark = preparesInTransactions ? '' : ' *';
  const rows = cases.map(({ clients, protocol, perSecond, cpuMicros, p99Ms, targets }) => [
    String(clients),
    protocol === 'prepared' ? `prepared${mark}` : protocol,
    thousands(perSecond.ours),
    thousands(perSecond.theirs),
    times(perSecond.ratio),
    cpuMicros.ours.toFixed(1),
    cpuMicros.theirs.toFixed(1),
    times(cpuMicros.ratio),
    p99Ms.ours.toFixed(2),
    p99Ms.theirs.toFixed(2),
    times(p99Ms.ratio),
    verdict(targets),
  ]);
  const header = [
    ...['clients', 'protocol', 'queries/s', `PgBouncer ${version}`, 'ratio'],
    ...['cpu us/query', 'its', 'ratio', 'p99 ms', 'its', 'ratio'],
    `throughput >= ${leastThroughput.simple}x (prepared ${leastThroughput.prepared}x), cpu <= ${mostCpu}x, p99 <= ${mostP99}x`,
  ];
  const lines = [layOut(header, rows, [0, 2, 3, 4, 5, 6, 7, 8, 9, 10])];
  if (!preparesInTransactions)
    lines.push(
      `* PgBouncer ${version} has no prepared statements with transaction pooling (1.21 and newer do): its figures are those`,
      '  of the extended protocol, and the ratio is no comparison of like with like.',
    );
  return lines.join('\n');
}

/** @param {Visits} visits */
export function formatVisits({ clients, perSecond, cpuMicros }) {
  const header = [
    'a connection for each query',
    'connections/s',
    'its',
    'ratio',
    'cpu us/connection',
    'its',
    'ratio',
  ];
  const row = [
    `${clients} clients`,
    thousands(perSecond.ours),
    thousands(perSecond.theirs),
    times(perSecond.ratio),
    cpuMicros.ours.toFixed(0),
    cpuMicros.theirs.toFixed(0),
    times(cpuMicros.ratio),
  ];
  return layOut(header, [row], [1, 2, 3, 4, 5, 6]);
}

/** @param {Variant} variant */
export function formatVariant({ setting, notRun, loads }) {
  if (notRun !== undefined) return `${setting}: NOT RUN, ${notRun}.`;
  const rows = loads.flatMap(({ clients, protocol, isMixed, withIt, without, targets }) =>
    [
      { ...withIt, title: setting, judged: targets },
      { ...without, title: 'without', judged: [] },
    ].map(({ title, perSecond, cpuMicros, p99Ms, judged }) => [
      `${clients} ${protocol}${isMixed ? ', 1 % take 50 ms' : ''}`,
      title,
      thousands(perSecond.ours),
      times(perSecond.ratio),
      cpuMicros.ours.toFixed(1),
      times(cpuMicros.ratio),
      p99Ms.ours.toFixed(2),
      times(p99Ms.ratio),
      judged.length === 0 ? '' : verdict(judged),
    ]),
  );
  const figures = ['queries/s', "of PgBouncer's", 'cpu us/query', 'of its', 'p99 ms', 'of its', 'targets'];
  return layOut(['clients', 'setting', ...figures], rows, [2, 3, 4, 5, 6, 7]);
}

/** @param {Idle} idle */
export function formatIdle({ wanted, clients, ours, theirs, targets }) {
  const short = `files are short: of ${wanted} clients only ${clients} could be tried; raise the hard limit of open files`;
  const rows = [
    ['headgate', ours.emptyMegabytes.toFixed(0), ours.megabytes.toFixed(0), verdict(targets)],
    ['PgBouncer', theirs.emptyMegabytes.toFixed(0), theirs.megabytes.toFixed(0), ''],
  ];
  const header = ['', 'MB without clients', `MB with ${clients} idle`, targets[0]?.wanted ?? ''];
  return [layOut(header, rows, [1, 2]), ...(clients < wanted ? [short] : [])].join('\n');
}

/** @param {Target[]} targets */
function verdict(targets) {
  const missed = targets.filter(({ ok }) => !ok).map(({ wanted }) => wanted);
  return missed.length === 0 ? 'ok' : `SHORT: ${missed.join(', ')}`;
}

/**
 * Judges the figure as the table prints it.
 * @param {string} what
 * @param {number} ratio
 * @param {number} least
 * @returns {Target}
 */
function atLeast(what, ratio, least) {
  return { wanted: `${what} >= ${least}x`, reached: ratio, ok: Number(ratio.toFixed(2)) >= least };
}

/**
 * @param {string} what
 * @param {number} ratio
 * @param {number} most
 * @returns {Target}
 */
function atMost(what, ratio, most) {
  return { wanted: `${what} <= ${most}x`, reached: ratio, ok: Number(ratio.toFixed(2)) <= most };
}

/** @param {number[]} values */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  const lower = sorted[(sorted.length - 1) >> 1] ?? Number.NaN;
  return (upper + lower) / 2;
}

/** @param {number} figure */
function thousands(figure) {
  return `${(figure / 1_000).toFixed(1)} k`;
}

/** @param {number} ratio */
function times(ratio) {
  return `${ratio.toFixed(2)}x`;
}
