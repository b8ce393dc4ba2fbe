/** `headgate/simulator`: what a scenario leads to, in virtual time, on the product's own code. */
export { type CapacityPlan, type PlannedLimit, type PlanOptions, planCapacity } from './simulator/plan.js';
export { csvReport } from './simulator/report/csv.js';
export { htmlReport } from './simulator/report/html.js';
export { jsonReport } from './simulator/report/json.js';
export type { SimulationRun } from './simulator/report/run.js';
export type {
  AssertionOutcome,
  BudgetRecord,
  CoordinatorRecord,
  FaultRecord,
  LawBreach,
  Samples,
  ServerRecord,
  ServiceResult,
  SimulationResult,
  TenantResult,
  TenantSamples,
  WaitSummary,
} from './simulator/result.js';
export type {
  ArrivalPlan,
  AssertionPlan,
  BudgetPlan,
  CoordinatorPlan,
  Delay,
  FaultKind,
  FaultPlan,
  LimiterPlan,
  Scenario,
  ServerPlan,
  ServicePlan,
  WorkloadPlan,
} from './simulator/scenario/scenario.js';
export { parseScenario, readScenarioFile } from './simulator/scenario/scenario-file.js';
export { readScenario, type ScenarioSource } from './simulator/scenario/scenario-reader.js';
export { ScenarioError, type ScenarioProblem } from './simulator/scenario/scenario-reader-problems.js';
export { type ShippedScenario, shippedScenarios } from './simulator/scenario/shipped-scenarios.js';
export { type SimulateOptions, simulate } from './simulator/simulate.js';
