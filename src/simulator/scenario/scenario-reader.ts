/** Reads a scenario from plain data, as a file or a program has it: everything checked, everything wrong told at once. */
import { usualPolicy } from '../../coordination/fair/fair-policy.js';
import { formatDuration } from '../../kernel/duration.js';
import { count } from '../format.js';
import type {
  BudgetPlan,
  CoordinatorPlan,
  LimiterPlan,
  Scenario,
  ServerPlan,
  TablePlan,
} from './scenario.js';
import { readAssertions } from './scenario-reader-assertions.js';
import { readDelay } from './scenario-reader-delay.js';
import { readFaults } from './scenario-reader-faults.js';
import { Fields } from './scenario-reader-fields.js';
import { scenarioBounds } from './scenario-reader-keys.js';
import { Problems, ScenarioError, type ScenarioProblem } from './scenario-reader-problems.js';
import { readServices } from './scenario-reader-services.js';

const most = 1_000_000;
const rate = { min: 0.001, max: scenarioBounds.perSecond };
const usualSeed = 42;

/** Name and description of a scenario that has none of its own. */
export interface ScenarioSource {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
}

/**
 * Checks a scenario written as an object, in the words of a scenario file.
 *
 * @example
 * ```ts
 * import { readScenario, simulate } from 'headgate/simulator';
 *
 * const scenario = readScenario({
 *   duration: '2m',
 *   services: [{ name: 'api', count: 4, pool: { max: 20, minIdle: 5 }, workload: { perSecond: 50, hold: '20ms' } }],
 *   assertions: { assertWait: { p99: '1s' } },
 * });
 * const result = simulate(scenario);
 * console.log(result.passed, result.waits.p99);
 * ```
 */
export function readScenario(value: unknown, source: ScenarioSource = {}): Scenario {
  const { scenario, problems } = examineScenario(value, source);
  if (problems.length > 0) throw new ScenarioError(source.name ?? 'the scenario', problems);
  return scenario;
}

/** For who knows more about where the problems are; with any of them the scenario is of no use. */
export function examineScenario(
  value: unknown,
  source: ScenarioSource,
): { readonly scenario: Scenario; readonly problems: readonly ScenarioProblem[] } {
  const problems = new Problems();
  const fields = new Fields('scenario', value, '', problems);
  const range = { min: 1_000, max: scenarioBounds.durationMs };
  const given = fields.duration('duration', range);
  if (!fields.has('duration'))
    fields.problem('duration', 'is missing: how long the simulated time is, such as 20m');
  const durationMs = given ?? scenarioBounds.durationMs;
  const services = readServices(fields, durationMs, given !== undefined);
  const faults = readFaults(fields, services, durationMs);
  const budget = readBudget(fields);
  const scenario: Scenario = {
    name: fields.text('name', 100) ?? source.name ?? 'scenario',
    description: fields.text('description', 4_000) ?? source.description ?? '',
    seed: fields.integer('seed', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? usualSeed,
    durationMs,
    sampleMs: readSample(fields, durationMs, given === undefined ? 0 : services.length),
    server: readServer(fields),
    limiter: readLimiter(fields),
    coordinator: readCoordinator(fields),
    ...(budget && { budget }),
    services,
    faults,
    assertions: readAssertions(fields, services, faults, durationMs),
  };
  return { scenario, problems: problems.list };
}

function readSample(fields: Fields<'scenario'>, durationMs: number, services: number): number {
  const range = { min: scenarioBounds.shortestSampleMs, max: durationMs };
  const sampleMs = fields.duration('sample', range) ?? Math.min(1_000, durationMs);
  const rows = services === 0 ? 0 : (durationMs / sampleMs) * (services + 1);
  if (rows > scenarioBounds.recordedRows) {
    const shortest = Math.ceil((durationMs * (services + 1)) / scenarioBounds.recordedRows / 1_000) * 1_000;
    fields.problem(
      fields.has('sample') ? 'sample' : 'duration',
      `gives ${count(Math.round(rows))} rows to record for ${services === 1 ? '1 service' : `${services} services`}, more than the ` +
        `${count(scenarioBounds.recordedRows)} that are kept; a sample of ${formatDuration(shortest)} would fit`,
    );
  }
  return sampleMs;
}

/** Defaults are those of Aurora DSQL. */
function readServer(scenario: Fields<'scenario'>): ServerPlan {
  const fields = scenario.group('server', 'server') ?? new Fields('server', {}, 'server', new Problems());
  const lifetime = fields.duration('sessionLifetime', { min: 0, max: scenarioBounds.durationMs });
  return {
    connectionLimit: fields.integer('connectionLimit', { min: 1, max: most }) ?? 10_000,
    perSecond: fields.number('perSecond', rate) ?? 100,
    burst: fields.integer('burst', { min: 1, max: most }) ?? 1_000,
    sessionLifetimeMs: lifetime === 0 ? Number.POSITIVE_INFINITY : (lifetime ?? 3_600_000),
    overload: fields.oneOf('overload', ['refuse', 'queue']) ?? 'refuse',
    dial: readDelay(fields, 'dial') ?? { kind: 'lognormal', medianMs: 80, p99Ms: 250 },
    refuse: readDelay(fields, 'refuse') ?? { kind: 'fixed', ms: 10 },
    close: readDelay(fields, 'close') ?? { kind: 'fixed', ms: 5 },
    dialFailures: fields.number('dialFailures', { min: 0, max: 1 }) ?? 0,
  };
}

function readLimiter(scenario: Fields<'scenario'>): LimiterPlan | undefined {
  const fields = scenario.group('limiter', 'limiter');
  return (
    fields && {
      perSecond: fields.required('perSecond', () => fields.number('perSecond', rate), 'such as 100', 1),
      burst: fields.required(
        'burst',
        () => fields.integer('burst', { min: 1, max: most }),
        'such as 1000, or 1 for none',
        1,
      ),
      scope: fields.oneOf('scope', ['shared', 'perService', 'dynamodb']) ?? 'shared',
    }
  );
}

function readCoordinator(scenario: Fields<'scenario'>): CoordinatorPlan | undefined {
  const fields = scenario.group('coordinator', 'coordinator');
  return (
    fields && {
      leaseLimit: fields.required(
        'leaseLimit',
        () => fields.integer('leaseLimit', { min: 1, max: most }),
        'the connections of all services together, such as 10000',
        1,
      ),
      latency: readDelay(fields, 'latency') ?? { kind: 'lognormal', medianMs: 8, p99Ms: 40 },
      timeoutMs: fields.duration('timeout', { min: 1, max: scenarioBounds.delayMs }) ?? 1_000,
      table: readTable(fields),
    }
  );
}

/** Defaults are those of `headgate/dynamodb`. */
function readTable(coordinator: Fields<'coordinator'>): TablePlan | undefined {
  const fields = coordinator.group('dynamodb', 'dynamodb');
  if (fields === undefined) return undefined;
  const span = { min: 1_000, max: scenarioBounds.delayMs };
  const part = { min: 0, max: 1 };
  const leaseMs = fields.duration('leaseFor', span) ?? 180_000;
  return {
    leaseMs,
    renewMs: fields.duration('renewEvery', { min: 100, max: leaseMs / 2 }) ?? leaseMs / 2,
    graceMs: fields.duration('grace', span) ?? 30_000,
    onCoordinatorLoss: fields.oneOf('onCoordinatorLoss', ['hold', 'shed']) ?? 'hold',
    lostRequests: fields.number('lostRequests', part) ?? 0,
    lostReplies: fields.number('lostReplies', part) ?? 0,
    conflicts: fields.number('conflicts', part) ?? 0,
    throttles: fields.number('throttles', part) ?? 0,
  };
}

/** Defaults are those of the pooler. */
function readBudget(scenario: Fields<'scenario'>): BudgetPlan | undefined {
  const fields = scenario.group('budget', 'budget');
  if (fields !== undefined && scenario.has('coordinator'))
    scenario.problem('budget', 'is for the users of one pooler, and coordinator for many: have one of them');
  const span = { min: 1, max: scenarioBounds.durationMs };
  return (
    fields && {
      capacity: fields.required(
        'capacity',
        () => fields.integer('capacity', { min: 1, max: most }),
        'the connections of all services together, such as 20',
        1,
      ),
      turnMs: fields.duration('turn', span) ?? usualPolicy.turn,
      rebalanceIntervalMs: fields.duration('rebalanceInterval', span) ?? usualPolicy.rebalanceInterval,
      demandWindowMs: fields.duration('demandWindow', span) ?? usualPolicy.demandWindow,
      foresees: fields.flag('forecast') ?? false,
    }
  );
}
