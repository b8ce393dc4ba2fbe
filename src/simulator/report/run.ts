/** A simulation and what it was of: what every report is made from. */
import type { SimulationResult } from '../result.js';
import type { Scenario } from '../scenario/scenario.js';
import type { SeedReport } from './seed-bands.js';

export interface SimulationRun {
  readonly scenario: Scenario;
  readonly result: SimulationResult;
  /** The result without the cold start, where that is left out of a comparison. */
  readonly settled?: { readonly fromMs: number; readonly result: SimulationResult } | undefined;
  /** Summary of all runs, where `result` is the worst of many. */
  readonly seeds?: SeedReport | undefined;
}
