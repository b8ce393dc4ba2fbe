/** A simulation and what it was of: what every report is made from. */
import type { SimulationResult } from '../result.js';
import type { Scenario } from '../scenario/scenario.js';

export interface SimulationRun {
  readonly scenario: Scenario;
  readonly result: SimulationResult;
  /** The same without the cold start, where that is left out of a comparison. */
  readonly settled?: { readonly fromMs: number; readonly result: SimulationResult } | undefined;
}
