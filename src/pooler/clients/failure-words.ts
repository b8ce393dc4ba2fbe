/** Reasons why the pooler refused a client or told it an error, as metric labels. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import type { LoginFailure } from './login-failures.js';

const byLoginCode: Readonly<Record<string, LoginFailure>> = {
  [SqlState.invalidPassword]: 'wrong_password',
  [SqlState.invalidAuthorization]: 'not_allowed',
  [SqlState.tooManyConnections]: 'too_many_clients',
  [SqlState.invalidCatalogName]: 'no_database',
  [SqlState.cannotConnectNow]: 'not_now',
  [SqlState.adminShutdown]: 'shutting_down',
  [SqlState.queryCanceled]: 'login_timeout',
  [SqlState.protocolViolation]: 'protocol',
  [SqlState.featureNotSupported]: 'protocol',
  [SqlState.syntaxError]: 'protocol',
};

export function loginFailureOf({ code }: Pick<ErrorFields, 'code'>): LoginFailure {
  return byLoginCode[code] ?? 'other';
}

/** Reasons why the pooler, and not the server, told a connected client an error. */
export const ownErrorReasons = [
  'query_wait_timeout',
  'query_timeout',
  'transaction_timeout',
  'idle_transaction_timeout',
  'client_idle_timeout',
  'client_write_timeout',
  'cancelled_while_waiting',
  'server_lost',
  'no_server',
  'terminated',
  'not_supported',
  'forgotten_statement',
  'too_many_statements',
  'too_long_statement',
  'protocol',
] as const;

export type OwnErrorReason = (typeof ownErrorReasons)[number];

const byOwnCode: Readonly<Record<string, OwnErrorReason>> = {
  [SqlState.tooManyConnections]: 'query_wait_timeout',
  [SqlState.transactionTimeout]: 'transaction_timeout',
  [SqlState.idleInTransactionTimeout]: 'idle_transaction_timeout',
  [SqlState.idleSessionTimeout]: 'client_idle_timeout',
  [SqlState.operatorIntervention]: 'client_write_timeout',
  [SqlState.connectionFailure]: 'server_lost',
  [SqlState.adminShutdown]: 'terminated',
  [SqlState.featureNotSupported]: 'not_supported',
  [SqlState.invalidStatementName]: 'forgotten_statement',
  [SqlState.configurationLimitExceeded]: 'too_many_statements',
  [SqlState.programLimitExceeded]: 'too_long_statement',
  [SqlState.protocolViolation]: 'protocol',
};

/** Classes of SQLSTATE of the reasons that have no code of their own. */
const otherClasses: Readonly<Partial<Record<OwnErrorReason, string>>> = {
  query_timeout: '57',
  cancelled_while_waiting: '57',
  no_server: '08',
};

/** The class and the reason of each error that the pooler tells by itself; a server that refuses it has any class. */
export const ownErrorLabels: readonly { readonly class: string; readonly reason: OwnErrorReason }[] =
  ownErrorReasons.map((reason) => {
    const [code = ''] = Object.entries(byOwnCode).find(([, word]) => word === reason) ?? [];
    return { class: otherClasses[reason] ?? code.slice(0, 2), reason };
  });

/** Errors with which a server refuses connections can have any code, so they are what remains. */
export function ownErrorReasonOf({ code, severity }: Pick<ErrorFields, 'code' | 'severity'>): OwnErrorReason {
  if (code === SqlState.queryCanceled)
    return severity === 'FATAL' ? 'query_timeout' : 'cancelled_while_waiting';
  return byOwnCode[code] ?? 'no_server';
}
