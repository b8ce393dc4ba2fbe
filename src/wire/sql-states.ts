/** The SQLSTATEs that a pooler sends or has to recognise, by name. */

export const SqlState = {
  successfulCompletion: '00000',

  cannotConnect: '08001',
  connectionFailure: '08006',
  protocolViolation: '08P01',

  featureNotSupported: '0A000',
  invalidParameterValue: '22023',

  noActiveSqlTransaction: '25P01',
  inFailedSqlTransaction: '25P02',
  idleInTransactionTimeout: '25P03',
  transactionTimeout: '25P04',

  invalidStatementName: '26000',
  invalidAuthorization: '28000',
  invalidPassword: '28P01',
  invalidCursorName: '34000',
  invalidCatalogName: '3D000',

  syntaxError: '42601',
  insufficientPrivilege: '42501',
  undefinedObject: '42704',
  duplicateCursor: '42P03',
  duplicatePreparedStatement: '42P05',

  tooManyConnections: '53300',
  configurationLimitExceeded: '53400',
  programLimitExceeded: '54000',
  objectNotInPrerequisiteState: '55000',

  operatorIntervention: '57000',
  queryCanceled: '57014',
  adminShutdown: '57P01',
  cannotConnectNow: '57P03',
  idleSessionTimeout: '57P05',

  configFileError: 'F0000',
  internalError: 'XX000',
} as const;

/** One of the SQLSTATEs above. */
export type SqlState = (typeof SqlState)[keyof typeof SqlState];
