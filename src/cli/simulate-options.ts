/** Options of `headgate simulate`. */
import { PoolOptionsError } from '../kernel/errors.js';
import { type CapacityPlan, type PlanOptions, planCapacity } from '../simulator/plan.js';
import { readOptions, wholeNumber } from './options.js';
import { checkOutput } from './simulate-files.js';
import { UsageError } from './usage-error.js';

const planNames = [
  'services',
  'instances',
  'pools',
  'size',
  'lifetime',
  'jitter',
  'guard',
  'rate',
  'burst',
  'limit',
  'dial',
  'session-lifetime',
] as const;

const durations: readonly string[] = ['lifetime', 'jitter', 'guard', 'dial', 'session-lifetime'];

export interface Outputs {
  readonly csv?: string | undefined;
  readonly json?: string | undefined;
  readonly html?: string | undefined;
}

export type SimulateAction =
  | { readonly kind: 'list' }
  | { readonly kind: 'plan'; readonly plan: CapacityPlan }
  | {
      readonly kind: 'run';
      readonly scenario: string;
      readonly seed: number | undefined;
      readonly outputs: Outputs;
      readonly isQuiet: boolean;
    }
  | {
      readonly kind: 'runMany';
      readonly scenario: string;
      readonly seeds: { readonly from: number; readonly to: number };
      readonly outputs: Outputs;
      readonly isQuiet: boolean;
    }
  | {
      readonly kind: 'compare';
      readonly scenarios: readonly [string, string];
      readonly seed: number | undefined;
      readonly html: string | undefined;
      readonly isQuiet: boolean;
    };

const mostSeeds = 10_000;

const kinds = {
  seed: 'text',
  seeds: 'text',
  csv: 'text',
  json: 'text',
  html: 'text',
  compare: 'flag',
  plan: 'flag',
  list: 'flag',
  quiet: 'flag',
  services: 'text',
  instances: 'text',
  pools: 'text',
  size: 'text',
  lifetime: 'text',
  jitter: 'text',
  guard: 'text',
  rate: 'text',
  burst: 'text',
  limit: 'text',
  dial: 'text',
  'session-lifetime': 'text',
} as const;

type Read = ReturnType<typeof readOptions<typeof kinds>>;

export function readSimulateOptions(args: readonly string[]): SimulateAction {
  const read = readOptions(args, kinds);
  const { values } = read;
  if (values.plan) return { kind: 'plan', plan: readPlan(read) };
  const stray = planNames.find((name) => values[name] !== undefined);
  if (stray !== undefined) throw new UsageError(`--${stray} belongs to --plan`);
  if (values.list) return { kind: 'list' };
  return values.compare ? readComparison(read) : readRun(read);
}

function readRun({ values, positionals }: Read): SimulateAction {
  const [scenario, ...others] = positionals;
  if (scenario === undefined)
    throw new UsageError('simulate needs a scenario: a file, or a name that headgate simulate --list shows');
  if (others.length > 0)
    throw new UsageError(`simulate runs one scenario, not ${positionals.length}; two are for --compare`);
  if (values.seed !== undefined && values.seeds !== undefined)
    throw new UsageError('give either --seed or --seeds');
  const outputs = { csv: values.csv, json: values.json, html: values.html };
  for (const [option, path] of Object.entries(outputs)) if (path !== undefined) checkOutput(option, path);
  const common = { scenario, outputs, isQuiet: values.quiet === true };
  if (values.seeds !== undefined) return { kind: 'runMany', ...common, seeds: readSeeds(values.seeds) };
  return { kind: 'run', ...common, seed: readSeed(values.seed) };
}

function readComparison({ values, positionals }: Read): SimulateAction {
  const [one, other, ...more] = positionals;
  if (one === undefined || other === undefined || more.length > 0)
    throw new UsageError(`--compare needs two scenarios, not ${positionals.length}`);
  for (const option of ['csv', 'json', 'seeds'] as const) {
    if (values[option] !== undefined) throw new UsageError(`--${option} can't be used with --compare`);
  }
  if (values.html !== undefined) checkOutput('html', values.html);
  return {
    kind: 'compare',
    scenarios: [one, other],
    seed: readSeed(values.seed),
    html: values.html,
    isQuiet: values.quiet === true,
  };
}

function readSeed(text: string | undefined): number | undefined {
  return text === undefined ? undefined : wholeNumber('seed', text);
}

/** `1..200`, both included. */
function readSeeds(text: string): { from: number; to: number } {
  const [, first, last] = /^(\d{1,15})\.\.(\d{1,15})$/.exec(text) ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (!(to >= from)) throw new UsageError(`--seeds must be a range such as 1..200, not '${text}'`);
  if (to - from >= mostSeeds)
    throw new UsageError(`--seeds ${text} are ${to - from + 1} runs, more than the ${mostSeeds} it makes`);
  return { from, to };
}

function readPlan({ values, positionals }: Read): CapacityPlan {
  if (positionals.length > 0)
    throw new UsageError(`--plan is arithmetic and needs no scenario, but got '${positionals[0]}'`);
  const given = planNames.flatMap((name) => {
    const text = values[name];
    const option: keyof PlanOptions = name === 'session-lifetime' ? 'sessionLifetime' : name;
    return text === undefined ? [] : [[option, numberOrText(name, text)] as const];
  });
  try {
    return planCapacity(Object.fromEntries(given) as unknown as PlanOptions);
  } catch (error) {
    if (!(error instanceof PoolOptionsError)) throw error;
    const lines = error.problems.map(
      ({ path, message }) => `--${path === 'sessionLifetime' ? 'session-lifetime' : path} ${message}`,
    );
    throw new UsageError(lines.join('\nheadgate: '));
  }
}

/** On the command line everything is text. A duration stays one, so that it needs its unit. */
function numberOrText(name: string, text: string): number | string {
  if (name === 'session-lifetime' && text === 'never') return Number.POSITIVE_INFINITY;
  return durations.includes(name) || !/^\d+(?:\.\d+)?$/.test(text) ? text : Number(text);
}
