// The part of a pool's plan that tests of single parts have in common.
import type { BackendPoolPlan } from '../../../src/pooler/servers/backend-pool-plan.js';

export const plainPlan = {
  checkQuery: '',
  closeReplacedAfterMs: 0,
  resetQuery: '',
  isDsql: false,
  keepsSettings: false,
  resetsAlways: false,
  checksAlways: false,
  cleaningTimeoutMs: 1_000,
  cancelTimeoutMs: 1_000,
  followsStatements: true,
  mostStatements: 200,
  preparesUnnamed: false,
  defersBegin: true,
  mostStatementBytes: 1_000_000,
  mostParameterBytes: 1_000_000,
  reservedRatio: 0,
  shortage: () => undefined,
} satisfies Partial<BackendPoolPlan>;
