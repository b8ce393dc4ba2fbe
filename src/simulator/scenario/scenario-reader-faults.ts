/** Reads the faults of a scenario. */
import { nearest } from '../../kernel/nearest.js';
import type { FaultKind, FaultPlan, ServicePlan } from './scenario.js';
import { readDelay } from './scenario-reader-delay.js';
import type { Fields } from './scenario-reader-fields.js';
import { type KeyOf, scenarioBounds } from './scenario-reader-keys.js';

type FaultKey = KeyOf<'fault'>;

/** Keys that each kind needs beside `kind` and `at`, and those that it may have beside `services`. */
export const faultKinds: Readonly<
  Record<FaultKind, { readonly needs: readonly FaultKey[]; readonly allows: readonly FaultKey[] }>
> = {
  cold_start: { needs: [], allows: ['for'] },
  rolling_restart: { needs: ['every'], allows: [] },
  mass_drop: { needs: ['fraction'], allows: [] },
  server_down: { needs: ['for'], allows: [] },
  coordinator_outage: { needs: ['for'], allows: [] },
  crash: { needs: [], allows: ['for'] },
  pause: { needs: ['for'], allows: [] },
  slow_dials: { needs: ['for'], allows: ['delay', 'fraction'] },
  hung_connections: { needs: ['for'], allows: ['fraction'] },
  token_failures: { needs: ['for'], allows: ['fraction'] },
};

const examples: Readonly<Partial<Record<FaultKey, string>>> = {
  for: 'how long it lasts, such as 30s',
  every: 'the time between one service and the next, such as 60s',
  fraction: 'the part of all connections, such as 0.5',
};

/** In the order of their times; those at the same time in the order of the file. */
export function readFaults(
  scenario: Fields<'scenario'>,
  services: readonly ServicePlan[],
  durationMs: number,
): FaultPlan[] {
  const faults = scenario.groups('faults', 'fault', scenarioBounds.faults).map((fields) => {
    const kinds = Object.keys(faultKinds) as FaultKind[];
    const kind = fields.required(
      'kind',
      () => fields.oneOf('kind', kinds),
      `one of ${kinds.join(', ')}`,
      undefined,
    );
    return readFault(fields, kind, services, durationMs, scenario.has('coordinator'));
  });
  return faults.sort((one, other) => one.atMs - other.atMs);
}

function readFault(
  fields: Fields<'fault'>,
  kind: FaultKind | undefined,
  services: readonly ServicePlan[],
  durationMs: number,
  hasCoordinator: boolean,
): FaultPlan {
  const within = { min: 0, max: durationMs };
  const atMs = fields.required('at', () => fields.duration('at', within), 'when it begins, such as 5m', 0);
  if (kind !== undefined) checkKeys(fields, kind);
  if (kind === 'coordinator_outage' && !hasCoordinator)
    fields.problem('kind', 'is coordinator_outage, but the scenario has no coordinator');
  const lasts = fields.duration('for', { min: 1, max: durationMs });
  return {
    kind: kind ?? 'mass_drop',
    atMs,
    durationMs: kind === 'crash' || kind === 'cold_start' ? 0 : (lasts ?? 0),
    services: readNames(fields, services),
    fraction: fields.number('fraction', { min: 0, max: 1 }) ?? 1,
    everyMs: fields.duration('every', { min: 1, max: durationMs }) ?? downMs(kind, lasts),
    delay: readDelay(fields, 'delay'),
  };
}

/** A crash without a time to come back lasts for ever. */
function downMs(kind: FaultKind | undefined, lasts: number | undefined): number {
  if (kind === 'crash') return lasts ?? Number.POSITIVE_INFINITY;
  return kind === 'cold_start' ? (lasts ?? 0) : 0;
}

function checkKeys(fields: Fields<'fault'>, kind: FaultKind): void {
  const { needs, allows } = faultKinds[kind];
  for (const key of needs) {
    if (!fields.has(key)) fields.problem(key, `is missing: ${examples[key] ?? key}`);
  }
  for (const key of ['for', 'every', 'fraction', 'delay'] as const) {
    if (fields.has(key) && !needs.includes(key) && !allows.includes(key))
      fields.problem(key, `has no meaning for ${kind}`);
  }
}

function readNames(fields: Fields<'fault'>, services: readonly ServicePlan[]): string[] {
  const known = new Set(services.flatMap(({ name, group }) => [group, name]));
  return fields.texts('services').flatMap(({ text, path }) => {
    if (known.has(text)) return [text];
    const guess = nearest(text, known);
    fields.problems.add(
      path,
      `names '${text.slice(0, 60)}', and there is no such service${guess === undefined ? '' : `; did you mean ${guess}?`}`,
    );
    return [];
  });
}
