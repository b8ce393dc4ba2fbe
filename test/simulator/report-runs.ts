// A run with everything in it that a report shows.
import type { SimulationRun } from '../../src/simulator/report/run.js';
import { parseScenario } from '../../src/simulator/scenario/scenario-file.js';
import { simulate } from '../../src/simulator/simulate.js';

export function run(changes = '', name = 'small'): SimulationRun {
  const scenario = parseScenario(
    `# What it is about.
duration: 10m
limiter: { perSecond: 20, burst: 5 }
services:
  - name: api
    count: 2
    pool: { max: 10, reservoir: { baseLifetime: 2m, lifetimeJitter: 1m, guardWindow: 10s } }
    workload:
      - { tenant: quick, perSecond: 3, hold: { mean: 20ms } }
      - { tenant: slow, perSecond: 1, hold: { mean: 200ms } }
faults:
  - { kind: crash, at: 5m, for: 5s, services: api-2 }
  - { kind: server_down, at: 7m, for: 30s }
assertions: { assertConvergeWithin: 30s, assertMaxConnectsPerSec: 1 }
${changes}`,
    `${name}.yaml`,
  );
  return { scenario, result: simulate(scenario) };
}
