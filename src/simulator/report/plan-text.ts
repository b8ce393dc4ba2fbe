/** A capacity plan as text for a terminal. */

import { count, percent, short, time } from '../format.js';
import type { CapacityPlan, PlannedLimit } from '../plan.js';
import { columns, plain, type TerminalStyle } from './terminal-style.js';

export function planReport(plan: CapacityPlan, style: TerminalStyle = plain): string {
  const { firstWave } = plan;
  const used = plan.connections / plan.limit;
  const rows = [
    ['connections', `${count(plan.connections)} of ${count(plan.limit)} (${percent(used)})`],
    ['headroom', percent(plan.headroom)],
    ['fill from nothing', plan.headroom < 0 ? `${time(plan.fillMs)}, up to the limit` : time(plan.fillMs)],
    ['restart of one instance', time(plan.restartMs)],
    ['steady rate', `${short(plan.steadyPerSecond)} new connections a second`],
    [
      'first expiries',
      `up to ${short(firstWave.perSecond)}/s for ${time(firstWave.durationMs)}, from ${time(firstWave.afterMs)} on`,
    ],
  ];
  const { longestLifeMs, sessionLifetimeMs } = plan;
  const allowed =
    sessionLifetimeMs === Number.POSITIVE_INFINITY
      ? ', which the server allows'
      : ` of ${time(sessionLifetimeMs)}`;
  const outlived = longestLifeMs > sessionLifetimeMs ? ', which is exceeded' : '';
  rows.push(['longest life', `${time(longestLifeMs)}${allowed}${outlived}`]);
  const breaks = plan.limits.map((limit, index) => [
    index === 0 ? 'breaks first' : 'then',
    ...describe(limit),
  ]);
  const { limit, rate, burst } = plan;
  const assumed = `  of the server: ${count(limit)} connections (--limit), ${count(rate)} new ones a second (--rate) after a burst of ${count(burst)} (--burst).`;
  const whose = plan.isDsql
    ? '  These are the limits of one cluster of Aurora DSQL. Give those of your server.'
    : '';
  const advice = plan.advice.length === 0 ? ['Nothing to change.'] : plan.advice;
  const verdict = plan.fits ? style.good('fits') : style.bad('DOES NOT FIT');
  const sections = [
    [style.bold('plan: ') + verdict],
    columns(rows),
    columns(breaks),
    [style.bold('advice'), ...advice.map((line) => `  ${line}`)],
    [style.bold('assumed'), assumed, ...(whose === '' ? [] : [whose])],
  ];
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function describe({ what, factor, services, use }: PlannedLimit): string[] {
  const when =
    factor < 1
      ? `exceeded: ${percent(use)} of it`
      : `at ${short(factor)} times this size (${count(services)} ${services === 1 ? 'service' : 'services'}), now ${percent(use)}`;
  return [what, when];
}
