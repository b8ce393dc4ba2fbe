/** `headgate/dynamodb`: one budget of connections, one rate of opening them, and node ids, for a whole fleet. */
export { DynamoLeases } from './coordination/dynamodb/dynamo-leases.js';
export { DynamoNodeIds } from './coordination/dynamodb/dynamo-node-ids.js';
export { DynamoRateLimiter } from './coordination/dynamodb/dynamo-rate-limiter.js';
export type { DynamoClient, DynamoCredentials } from './coordination/dynamodb/dynamo-table.js';
export { DynamoPackageMissingError } from './coordination/dynamodb/errors.js';
export type { LeaseDenial } from './coordination/dynamodb/lease-owner.js';
export type { OnCoordinatorLoss } from './coordination/dynamodb/lease-settings.js';
export type {
  DynamoLeasesOptions,
  DynamoNodeIdsOptions,
  DynamoOptions,
  DynamoRateLimiterOptions,
} from './coordination/dynamodb/options.js';
export type { FailureReason } from './coordination/dynamodb/table.js';
export type { CallTally } from './coordination/dynamodb/table-calls.js';
export type {
  CoordinatorState,
  LeaseNote,
  TableLeasesStats as DynamoLeasesStats,
} from './coordination/dynamodb/table-leases.js';
export type { TableRateLimiterStats as DynamoRateLimiterStats } from './coordination/dynamodb/table-rate-limiter.js';
