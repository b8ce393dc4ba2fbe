/** Report of an imported pgbouncer.ini, for people. */
import { describePlace } from './config-problems.js';
import type { ImportedSetting, ImportOutcome } from './pgbouncer-import.js';

const titles: Readonly<Record<Exclude<ImportOutcome, 'carried'>, string>> = {
  difference: 'Carried over with a difference:',
  'left-out': 'Left out:',
  default: "PgBouncer's defaults that are not Headgate's, written out:",
};

/** The first line has the counts; settings carried over unchanged need no line of their own. */
export function importReport(settings: readonly ImportedSetting[]): string[] {
  const of = (outcome: ImportOutcome) => settings.filter((setting) => setting.outcome === outcome);
  const numbers = [
    `${of('carried').length} settings carried over`,
    `${of('difference').length} with a difference`,
    `${of('left-out').length} left out`,
  ];
  const lines = [numbers.join(', ')];
  for (const outcome of ['difference', 'left-out', 'default'] as const) {
    const found = of(outcome);
    if (found.length > 0) lines.push(titles[outcome], ...found.map((setting) => `  ${describe(setting)}`));
  }
  return lines;
}

function describe({ name, outcome, to, why, place }: ImportedSetting): string {
  const at = outcome === 'default' ? '' : `${describePlace(place)}  `;
  return `${at}${name}${to === undefined ? '' : ` -> ${to}`}: ${why ?? ''}`;
}
