/** `headgate/dsql-local`: Aurora DSQL on this machine, for development and tests. */
export type { ControlAddress } from './dsql-local/control/control-server.js';
export type { FaultSettings } from './dsql-local/faults.js';
export type { ConnectionCounts } from './dsql-local/front/connection-counts.js';
export type { LoginEvent, LoginRefusal } from './dsql-local/front/login.js';
export type { AccessKey, ConnectAction, IdentityOptions } from './dsql-local/identity/accounts.js';
export type { DsqlLocalOptions } from './dsql-local/options.js';
export type { RefusedStatement, StatementReport } from './dsql-local/report.js';
export { type DsqlLocal, startDsqlLocal } from './dsql-local/start-dsql-local.js';
