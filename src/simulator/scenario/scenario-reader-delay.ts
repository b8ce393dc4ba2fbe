/** How a scenario says how long something takes: `80ms`, or how its lengths are spread. */
import type { Delay } from './scenario.js';
import { type Fields, isMapping, readDuration, refuseUnknown, show } from './scenario-reader-fields.js';
import { type KeyOf, type ScenarioPart, scenarioBounds } from './scenario-reader-keys.js';
import { isMeasured, readCounted, readMeasured } from './scenario-reader-measured.js';

const delayForms = [['median', 'p99'], ['from', 'to'], ['mean']] as const satisfies readonly string[][];

const delayKeys = delayForms.flat();
const forms =
  '80ms, { median: 80ms, p99: 250ms }, { from: 10ms, to: 20ms }, { mean: 20ms }, { p50: 5ms, p99: 40ms, max: 90ms } or [[5ms, 90], [40ms, 10]]';

export function readDelay<Part extends ScenarioPart>(
  fields: Fields<Part>,
  key: KeyOf<Part>,
): Delay | undefined {
  const value = fields.raw(key);
  if (value === undefined) return undefined;
  const path = fields.pathOf(key);
  const problem = (at: string, message: string) => fields.problems.add(at, message);
  const range = { min: 0, max: scenarioBounds.delayMs };
  if (Array.isArray(value)) return readCounted(value, range, path, problem);
  if (!isMapping(value)) {
    if (typeof value !== 'string' && value !== 0) {
      problem(path, `must be a delay such as ${forms}, not ${show(value)}`);
      return undefined;
    }
    const ms = readDuration(value, range, (message) => problem(path, message));
    return ms === undefined ? undefined : { kind: 'fixed', ms };
  }
  if (isMeasured(value)) return readMeasured(value, range, path, problem);
  refuseUnknown(value, delayKeys, path, fields.problems);
  const given = delayKeys.filter((name) => Object.hasOwn(value, name));
  const form = delayForms.find((names) => names.length === given.length && names.every((n) => has(given, n)));
  if (form === undefined) {
    problem(path, `must be a delay such as ${forms}`);
    return undefined;
  }
  const [first, second] = form.map((name) =>
    readDuration(value[name], range, (message) => problem(`${path}.${name}`, message)),
  );
  if (first === undefined || (form.length === 2 && second === undefined)) return undefined;
  return make(form[0], first, second ?? 0, (name, message) => problem(`${path}.${name}`, message));
}

function make(
  form: 'median' | 'from' | 'mean',
  first: number,
  second: number,
  problem: (name: string, message: string) => void,
): Delay | undefined {
  if (form !== 'from' && first === 0) problem(form, 'must be more than 0');
  else if (form === 'mean') return { kind: 'exponential', meanMs: first };
  else if (form === 'median' && second < first)
    problem('p99', `is ${second} ms, less than median, which is ${first} ms`);
  else if (form === 'median') return { kind: 'lognormal', medianMs: first, p99Ms: second };
  else if (second < first) problem('to', `is ${second} ms, less than from, which is ${first} ms`);
  else return { kind: 'uniform', fromMs: first, toMs: second };
  return undefined;
}

function has(names: readonly string[], name: string): boolean {
  return names.includes(name);
}
