/** `headgate/dsql`: pools for Amazon Aurora DSQL. */
export { type LocalNodeIdsOptions, localNodeIds } from './coordination/local-node-ids.js';
export {
  type NodeGrant,
  NodeIdError,
  type NodeIdProblem,
  type NodeIds,
  type NodeLease,
} from './coordination/node-ids.js';
export type { AdapterOptions } from './dsql/adapters/adapter-options.js';
export { type DrizzleDatabase, retryDrizzle } from './dsql/adapters/drizzle.js';
export { type KyselyDatabase, retryKysely } from './dsql/adapters/kysely.js';
export { type PrismaDatabase, retryPrisma } from './dsql/adapters/prisma.js';
export { classifyError } from './dsql/classify/classify-error.js';
export type { Conflict, ErrorClass, ErrorClassification, ErrorRemedy } from './dsql/classify/error-class.js';
export type { FleetOptions } from './dsql/distributed-settings.js';
export type { DsqlPoolOptions } from './dsql/dsql-options.js';
export { DsqlPool } from './dsql/dsql-pool.js';
export type { Endpoint } from './dsql/endpoint.js';
export {
  type ConnectFailure,
  type ConnectRemedy,
  DsqlConnectError,
  IdleInTransactionError,
  SignerMissingError,
  StatementTimeoutError,
} from './dsql/errors.js';
export { explainDsql, formatExplanation } from './dsql/explain.js';
export {
  AmbiguousRowError,
  type ColumnValues,
  ConditionFailedError,
  OptimisticConflictError,
} from './dsql/fencing/errors.js';
export {
  type ConditionalUpdate,
  compareAndSet,
  fencedUpdate,
  type QueryRunner,
} from './dsql/fencing/fenced-update.js';
export {
  type OptimisticUpdate,
  optimisticUpdate,
  type Row,
} from './dsql/fencing/optimistic-update.js';
export type { TableName } from './dsql/fencing/statement.js';
export { IdClockError, type IdClockProblem, InvalidUuidError } from './dsql/ids/errors.js';
export { Snowflake, type SnowflakeOptions, type SnowflakeParts } from './dsql/ids/snowflake.js';
export { bytesToUuid, uuidToBytes } from './dsql/ids/uuid.js';
export { uuidV7, uuidV7Time } from './dsql/ids/uuid-v7.js';
export type { FileState } from './dsql/migrate/compare.js';
export { MigrationError, type MigrationFailure, type MigrationPlace } from './dsql/migrate/errors.js';
export {
  type MigrateResult,
  type MigrationFileStatus,
  type MigrationStatus,
  migrate,
  migrationStatus,
} from './dsql/migrate/migrate.js';
export type {
  MigrateOptions,
  MigrationClient,
  MigrationPool,
  MigrationSource,
} from './dsql/migrate/migrate-options.js';
export type { MigrationProblem } from './dsql/migrate/migration-plan.js';
export type { MigrationProgress, MigrationServer } from './dsql/migrate/progress.js';
export type { ExplainedSetting, SettingSource } from './dsql/settings.js';
export type { AwsCredentials, AwsCredentialsSource } from './dsql/signer.js';
export {
  type SignedToken,
  TokenCache,
  type TokenCacheOptions,
  type TokenProvider,
  type TokenRequest,
} from './dsql/token-cache.js';
export {
  CommitOutcomeUnknownError,
  type ExhaustedReason,
  TransactionAbortedError,
  type TransactionMisuse,
  TransactionMisuseError,
  TransactionRetriesExhaustedError,
  TransactionRolledBackError,
  TransactionTimeoutError,
} from './dsql/transaction/errors.js';
export type { TransactionClient, TransactionPool } from './dsql/transaction/pg-shapes.js';
export { RetryBudget, type RetryBudgetOptions } from './dsql/transaction/retry-budget.js';
export type { RetryOptions } from './dsql/transaction/retry-options.js';
export { type IsolationLevel, type TransactionOptions, transaction } from './dsql/transaction/transaction.js';
export { type DsqlVariable, dsqlVariables } from './dsql/variables.js';
export type { Environment } from './kernel/environment.js';
export type { TransactionChannels, TransactionMessage } from './runtime/transaction-channels.js';
