/** The samples of each service as CSV, with the columns of the pool simulator that this one follows. */
import { discardReasons } from '../../core/reasons.js';
import type { Samples, SimulationResult } from '../result.js';

export const csvColumns = [
  't_rfc3339',
  'service',
  'size',
  'target',
  'in_use',
  'checkouts',
  'empty_events',
  'discards',
  'discard_expired',
  'discard_guard',
  'discard_full',
  'refills',
  'refill_failures',
  'scan_evictions',
  'limiter_denies',
  'work_started',
  'work_completed',
] as const;

/** Virtual time begins here, so that the same run gives the same file. */
const beginning = Date.UTC(2026, 0, 1);

/** In the order of time, then of the services. Each piece is one or more whole lines. */
export function* csvReport(result: SimulationResult): Generator<string> {
  yield `${csvColumns.join(',')}\n`;
  const services = result.services.map(({ name, samples }) => ({ name: quote(name), samples }));
  for (const [index, at] of result.samples.timeMs.entries()) {
    const time = new Date(beginning + at).toISOString();
    yield services.map(({ name, samples }) => `${time},${name},${row(samples, index)}\n`).join('');
  }
}

function row(samples: Samples, i: number): string {
  const discards = (...reasons: readonly (keyof Samples['discards'])[]) =>
    reasons.reduce((sum, reason) => sum + (samples.discards[reason]?.[i] ?? 0), 0);
  const values = [
    samples.ready[i],
    samples.target[i],
    samples.inUse[i],
    samples.checkouts[i],
    samples.emptyEvents[i],
    discards(...discardReasons),
    discards('expired_on_checkout', 'expired_on_return', 'max_lifetime'),
    discards('insufficient_remaining_lifetime'),
    discards('reservoir_full'),
    samples.refills[i],
    samples.refillFailures[i],
    discards('expired_on_scan', 'expiring_soon_on_scan'),
    samples.limiterDenies[i],
    samples.workStarted[i],
    samples.workCompleted[i],
  ];
  return values.map((value) => value ?? 0).join(',');
}

/** A name that a program made up could hold anything, also what a spreadsheet takes for a formula. */
function quote(text: string): string {
  if (/^[A-Za-z0-9][\w.-]*$/.test(text)) return text;
  const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${harmless.replaceAll('"', '""')}"`;
}
