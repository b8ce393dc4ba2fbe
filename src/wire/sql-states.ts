/** The SQLSTATEs that a pooler sends or has to recognise, by name. */

export const SqlState = {
  successfulCompletion: '00000',
  warning: '01000',

  connectionException: '08000',
  cannotConnect: '08001',
  connectionDoesNotExist: '08003',
  connectionRejected: '08004',
  connectionFailure: '08006',
  transactionResolutionUnknown: '08007',
  protocolViolation: '08P01',

  featureNotSupported: '0A000',
  invalidParameterValue: '22023',
  characterNotInRepertoire: '22021',

  invalidCursorState: '24000',
  invalidTransactionState: '25000',
  activeSqlTransaction: '25001',
  readOnlySqlTransaction: '25006',
  noActiveSqlTransaction: '25P01',
  inFailedSqlTransaction: '25P02',
  idleInTransactionTimeout: '25P03',
  transactionTimeout: '25P04',

  invalidStatementName: '26000',
  invalidAuthorization: '28000',
  invalidPassword: '28P01',
  invalidCursorName: '34000',
  invalidCatalogName: '3D000',
  serializationFailure: '40001',
  deadlockDetected: '40P01',

  syntaxError: '42601',
  insufficientPrivilege: '42501',
  undefinedObject: '42704',
  duplicateCursor: '42P03',
  duplicatePreparedStatement: '42P05',

  insufficientResources: '53000',
  outOfMemory: '53200',
  tooManyConnections: '53300',
  configurationLimitExceeded: '53400',
  programLimitExceeded: '54000',
  objectNotInPrerequisiteState: '55000',
  lockNotAvailable: '55P03',

  operatorIntervention: '57000',
  queryCanceled: '57014',
  adminShutdown: '57P01',
  crashShutdown: '57P02',
  cannotConnectNow: '57P03',
  databaseDropped: '57P04',
  idleSessionTimeout: '57P05',

  systemError: '58000',
  ioError: '58030',
  configFileError: 'F0000',
  internalError: 'XX000',
} as const;

/** One of the SQLSTATEs above. */
export type SqlState = (typeof SqlState)[keyof typeof SqlState];
