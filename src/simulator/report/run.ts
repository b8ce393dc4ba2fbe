/** A simulation and what it was of: what every report is made from. */
import type { SimulationResult } from '../result.js';
import type { Scenario } from '../scenario.js';

export interface SimulationRun {
  readonly scenario: Scenario;
  readonly result: SimulationResult;
}
