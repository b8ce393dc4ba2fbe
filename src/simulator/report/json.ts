/** A run as JSON: the result as it is, and the scenario that gave it. */
import type { SimulationRun } from './run.js';

/** Values without a number in JSON ("never", "no limit") are null. Each piece is part of one JSON text. */
export function* jsonReport({ scenario, result, seeds }: SimulationRun): Generator<string> {
  const { services, ...whole } = result;
  yield `{"format":"headgate-simulation-1",\n"scenario":${text(scenario)},\n`;
  if (seeds !== undefined) yield `"seeds":${text(seeds)},\n`;
  yield `"result":{${text(whole).slice(1, -1)},\n"services":[\n`;
  // Service by service: all of them in one text could be longer than a text may be.
  for (const [index, service] of services.entries()) yield `${index === 0 ? '' : ',\n'}${text(service)}`;
  yield ']}}\n';
}

function text(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (inner === undefined ? null : inner));
}
