/** Samples of the end of a run, with totals that begin there. */
import { discardReasons } from '../../core/reasons.js';
import type { Samples, TenantSamples } from '../result.js';

const totals = [
  'checkouts',
  'emptyEvents',
  'refills',
  'refillFailures',
  'limiterDenies',
  'workStarted',
  'workCompleted',
] as const satisfies readonly (keyof Samples)[];

export function samplesSince(samples: Samples, fromMs: number): Samples {
  const first = firstRow(samples.timeMs, fromMs);
  const { discards, ...columns } = samples;
  const cut = Object.fromEntries(
    Object.entries(columns).map(([name, values]) => [name, values.slice(first)]),
  );
  for (const name of totals) cut[name] = since(samples[name], first);
  const reasons = discardReasons.map((reason) => [reason, since(discards[reason], first)]);
  return { ...cut, discards: Object.fromEntries(reasons) } as unknown as Samples;
}

export function tenantSince(
  samples: TenantSamples,
  timeMs: readonly number[],
  fromMs: number,
): TenantSamples {
  const first = firstRow(timeMs, fromMs);
  const { tenant, inUse, workCompleted, share } = samples;
  const cut = { tenant, inUse: inUse.slice(first), workCompleted: since(workCompleted, first) };
  return share === undefined ? cut : { ...cut, share: share.slice(first) };
}

/** The row of the last sample that is not after `fromMs`. */
function firstRow(timeMs: readonly number[], fromMs: number): number {
  const after = timeMs.findIndex((at) => at > fromMs);
  return Math.max(0, (after === -1 ? timeMs.length : after) - 1);
}

function since(values: readonly number[], first: number): number[] {
  return values.slice(first).map((value) => value - (values[first] ?? 0));
}
