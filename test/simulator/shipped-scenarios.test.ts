// The scenarios that come with the package: all of them are good, say what they are for, and end as they say.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SimulationResult } from '../../src/simulator/result.js';
import type { Scenario } from '../../src/simulator/scenario/scenario.js';
import { parseScenario, readScenarioFile } from '../../src/simulator/scenario/scenario-file.js';
import { ScenarioError } from '../../src/simulator/scenario/scenario-reader-problems.js';
import { shippedScenarios } from '../../src/simulator/scenario/shipped-scenarios.js';
import { simulate } from '../../src/simulator/simulate.js';

const shipped = shippedScenarios();
const load = (name: string): Scenario => {
  const found = shipped.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`${name} is not shipped`);
  return readScenarioFile(found.path);
};

/** Long or large scenarios run in a short form: fewer services of each kind, smaller pools, an earlier end. */
interface ShortForm {
  readonly services?: number;
  readonly size?: number;
  readonly durationMs?: number;
}

const minute = 60_000;

const shortForms: Readonly<Record<string, ShortForm>> = {
  'ecs-150wps': { durationMs: 14 * minute, services: 2 },
  'ecs-400wps': { durationMs: 14 * minute, services: 2, size: 100 },
  'thundering-restart': { durationMs: 7 * minute, services: 3 },
  'coordinator-outage': { durationMs: 38 * minute, services: 2 },
  'dynamodb-fleet': { durationMs: 5 * minute, services: 25 },
  'fifty-reservoirs': { durationMs: 3 * minute },
  'expiry-plain': { durationMs: 12 * minute },
  'expiry-reservoir': { durationMs: 12 * minute },
  'mass-drop': { durationMs: 7 * minute },
  'skewed-clocks': { durationMs: 14 * minute },
  'slow-dials': { durationMs: 14 * minute, services: 2 },
};

function shorten(
  scenario: Scenario,
  { services = 99, size, durationMs = scenario.durationMs }: ShortForm,
): Scenario {
  const seen = new Map<string, number>();
  return {
    ...scenario,
    durationMs,
    services: scenario.services
      .filter(({ group }) => {
        const before = seen.get(group) ?? 0;
        seen.set(group, before + 1);
        return before < services;
      })
      .map((service) => (size === undefined ? service : { ...service, pool: smaller(service.pool, size) })),
  };
}

function smaller(pool: Scenario['services'][number]['pool'], max: number): typeof pool {
  const { reservoir } = pool;
  return {
    ...pool,
    max,
    ...(typeof reservoir === 'object' ? { reservoir: { ...reservoir, targetReady: max } } : {}),
  };
}

function run(name: string): SimulationResult {
  return simulate(shorten(load(name), shortForms[name] ?? {}));
}

function brokenAssertions({ assertions }: SimulationResult): string[] {
  return assertions.filter(({ passed }) => !passed).map(({ name }) => name);
}

test('The scenarios that come with the package are these', () => {
  expect(shipped.map(({ name }) => name)).toEqual([
    'changing-demand',
    'changing-demand-static',
    'coordinator-outage',
    'crashed-lease-owner',
    'daily-load',
    'daily-load-forecast',
    'dynamodb-fleet',
    'ecs-150wps',
    'ecs-400wps',
    'expiry-plain',
    'expiry-reservoir',
    'fifty-reservoirs',
    'five-hundred-users',
    'local',
    'mass-drop',
    'noisy-neighbour',
    'reclaimed-leases',
    'reservoirs-at-limit',
    'reservoirs-at-limit-crash',
    'reservoirs-below-limit',
    'reservoirs-below-limit-crash',
    'reservoirs-over-limit',
    'reservoirs-over-limit-crash',
    'skewed-clocks',
    'slow-dials',
    'tenant-flood',
    'thundering-restart',
    'users-over-capacity',
    'workload-test',
  ]);
});

test.each(shipped)(
  'The scenarios that come with the package $name is good, and says at its top what there is to learn',
  ({ path, name, summary }) => {
    const scenario = readScenarioFile(path);
    expect(scenario.name).toBe(name);
    expect(scenario.description.split('\n')[0]).toBe(summary);
    expect(summary).toMatch(/^[A-Z].{20,110}\.$/);
    expect(scenario.description).toContain('\nWhat to learn: ');
    expect(basename(path)).toBe(`${name}.yaml`);
  },
);

test('The scenarios that come with the package have the services and connections of the seed', () => {
  const sizes = ['local', 'ecs-150wps', 'ecs-400wps', 'mass-drop', 'workload-test'].map((name) => {
    const { services, durationMs, seed } = load(name);
    const connections = services.reduce((sum, { pool }) => sum + (pool.max ?? 0), 0);
    return [name, services.length, connections, durationMs / minute, seed];
  });
  expect(sizes).toEqual([
    ['local', 4, 200, 20, 42],
    ['ecs-150wps', 20, 2_000, 30, 42],
    ['ecs-400wps', 44, 22_000, 30, 42],
    ['mass-drop', 4, 200, 15, 42],
    ['workload-test', 4, 200, 5, 42],
  ]);
  const starts = load('ecs-400wps').services.map(({ startDelayMs }) => startDelayMs);
  expect(starts).toEqual(Array.from({ length: 44 }, (_, index) => index * 50));
});

test('The scenarios that come with the package compare the reservoir with nothing but the reservoir', () => {
  const [plain, reservoir] = ['expiry-plain', 'expiry-reservoir'].map((name) => {
    const { name: _name, description: _description, services, ...rest } = load(name);
    const others = services.map(({ pool: { max, acquireTimeout }, ...service }) => ({
      ...service,
      max,
      acquireTimeout,
    }));
    return { ...rest, others };
  });
  expect(plain).toEqual(reservoir);
});

const failing: Readonly<Record<string, readonly string[]>> = {
  'expiry-plain': ['assertZeroEmptyEvents', 'assertWait max'],
  'crashed-lease-owner': ['assertRecoverWithin'],
  'changing-demand-static': ['assertWait p99'],
};

test.each(shipped.filter(({ name }) => !(name in failing)))(
  'A short form of $name passes, and breaks no law',
  ({ name }) => {
    const result = run(name);
    expect(result.laws).toEqual([]);
    expect(brokenAssertions(result)).toEqual([]);
    expect(result.passed).toBe(true);
    expect(result.server.accepted).toBeGreaterThan(0);
  },
);

test.each(Object.entries(failing))(
  'A short form of %s fails as it says, and breaks no law',
  (name, assertions) => {
    const result = run(name);
    expect(load(name).description.split('\n')[0]).toContain('fails');
    expect(result.laws).toEqual([]);
    expect(brokenAssertions(result)).toEqual(assertions);
  },
);

test('ecs-400wps does not fill within the limit of a cluster', () => {
  const full = load('ecs-400wps');
  const scaled = shorten(full, { durationMs: 8 * minute, services: 2, size: 50 });
  const server = { ...scaled.server, connectionLimit: 200 };
  const result = simulate({ ...scaled, server });
  expect(brokenAssertions(result)).toContain('assertConvergeWithin');
  expect(result.server.peakConnections).toBe(200);
  expect(result.laws).toEqual([]);
});

test('A scenario with any damage is read, or refused with its problems, and never anything else', () => {
  const texts = shipped.map(({ path }) => readFileSync(path, 'utf8'));
  const scraps = [
    '',
    ':',
    '- ',
    '  ',
    '{',
    ']',
    '"',
    '&a ',
    '*a',
    '!!',
    '|',
    '0',
    '-1',
    'null',
    '1e999',
    '\t',
    '%',
    '#',
    '?',
    '__proto__: 1\n',
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...texts),
      fc.array(fc.record({ at: fc.nat(3_000), cut: fc.nat(20), put: fc.constantFrom(...scraps) }), {
        minLength: 1,
        maxLength: 4,
      }),
      (text, damages) => {
        const damaged = damages.reduce((all, { at, cut, put }) => {
          const place = at % all.length;
          return all.slice(0, place) + put + all.slice(place + cut);
        }, text);
        try {
          parseScenario(damaged);
        } catch (error) {
          if (!(error instanceof ScenarioError)) throw error;
          for (const { line, column } of error.problems) {
            expect(line).toBeLessThanOrEqual(damaged.split('\n').length);
            expect(column).toBeGreaterThan(0);
          }
        }
      },
    ),
    { numRuns: 400 },
  );
});
