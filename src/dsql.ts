/** `headgate/dsql`: pools for Amazon Aurora DSQL. */
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
export type { ExplainedSetting, SettingSource } from './dsql/settings.js';
export type { AwsCredentials, AwsCredentialsSource } from './dsql/signer.js';
export {
  type SignedToken,
  TokenCache,
  type TokenCacheOptions,
  type TokenProvider,
  type TokenRequest,
} from './dsql/token-cache.js';
export { type DsqlVariable, dsqlVariables } from './dsql/variables.js';
export type { Environment } from './kernel/environment.js';
