// @ts-check
// Errors that a program meets which uses the library: of pools, and of the kit for Aurora DSQL. docs/errors.md is made of it.

/**
 * @typedef {object} ErrorRow
 * @property {string} name the class, or several
 * @property {string} code
 * @property {string} [sqlState] what a client of `headgate serve` is told, where this error reaches it
 * @property {string} means
 * @property {string} remedy
 */

/** Of pools.
 * @type {readonly ErrorRow[]} */
export const poolErrors = [
  {
    name: 'PoolOptionsError',
    code: 'HG_BAD_OPTIONS',
    means: 'the options make no sense; `problems` lists all that is wrong',
    remedy: 'correct them',
  },
  {
    name: 'AcquireTimeoutError',
    code: 'HG_ACQUIRE_TIMEOUT',
    sqlState: '53300, or that of `cause`',
    means:
      "the caller's time was up; the message has the pool's numbers, its name and what it waits for, `cause` the last dial error if dialing fails",
    remedy:
      'all in use: shorten what holds connections, or raise `max`. Many being opened: look at the server or `dialLimit`',
  },
  {
    name: 'ReservoirEmptyError',
    code: 'HG_RESERVOIR_EMPTY',
    means:
      'nothing was [ready](reservoir.md) for as long as the caller waits; `cause` says why, if opening fails',
    remedy: 'wait longer (`emptyWait`, or `connect({ timeout })`), or raise `targetReady` and `max`',
  },
  {
    name: 'PermitWaitError',
    code: 'HG_RATE_LIMITED',
    means: 'the rate limiter lets no connection be opened; no caller gets it, logs and diagnostics have it',
    remedy: 'a higher rate, or find out why so many connections are opened',
  },
  {
    name: 'AcquireAbortedError',
    code: 'HG_ACQUIRE_ABORTED',
    means: "the caller's signal fired; `cause` is its reason",
    remedy: 'nothing',
  },
  {
    name: 'ConnectFailedError',
    code: 'HG_CONNECT_FAILED',
    sqlState: "the server's, or 08001",
    means: 'dialing keeps failing and no connection is left; `attempts`, `retryAfterMs`, `cause`',
    remedy: 'see `cause`',
  },
  {
    name: 'LeaseLimitError',
    code: 'HG_LEASE_LIMIT',
    means: 'every lease of [the budget above the pool](coordination.md) is held; `asked`, `held`, `limit`',
    remedy: 'a smaller `max` for the pools that share it, or a higher limit',
  },
  {
    name: 'LeaseCoordinatorError',
    code: 'HG_LEASE_COORDINATOR',
    means: 'the keeper of that budget failed or was too slow; `cause`',
    remedy: 'look at the coordinator; what is open stays open',
  },
  {
    name: 'DialTimeoutError',
    code: 'HG_DIAL_TIMEOUT',
    sqlState: '08001',
    means: 'one dial took too long and was given up',
    remedy: 'look at the network and the server, or raise the dial timeout',
  },
  {
    name: 'BadConnectionError',
    code: 'HG_BAD_CONNECTION',
    means: '`connect()` answered with undefined or null',
    remedy: 'return the connection',
  },
  {
    name: 'CheckTimeoutError',
    code: 'HG_CHECK_TIMEOUT',
    means: 'a health check took too long; the connection is closed',
    remedy: 'raise `checkTimeout` if the server is just slow',
  },
  {
    name: 'PoolClosedError',
    code: 'HG_POOL_CLOSED',
    sqlState: '57P01',
    means: 'the pool is closing or closed',
    remedy: "don't use it after `end()`",
  },
  {
    name: 'ReadyTimeoutError',
    code: 'HG_READY_TIMEOUT',
    means: 'the connections asked for with `ready()` were not there in time',
    remedy: 'see the numbers and `cause`',
  },
  {
    name: 'DynamoPackageMissingError',
    code: 'HG_DYNAMODB_PACKAGE',
    means:
      '[leases or a rate limit in DynamoDB](dynamodb.md) were asked for, and `@aws-sdk/client-dynamodb` could not be loaded; `cause`',
    remedy: 'install it',
  },
  {
    name: 'DynamoCallError',
    code: 'HG_DYNAMODB_CALL',
    means: 'a call of DynamoDB failed while a caller waited for it; `reason` in one word, `cause`',
    remedy: 'see `cause`: permissions, the region, the name of the table, the network',
  },
  {
    name: 'DoubleReleaseError',
    code: 'HG_DOUBLE_RELEASE',
    means: 'a checkout was given back twice; the second time did nothing',
    remedy: 'release exactly once, or use `await using`',
  },
  {
    name: 'ForeignReleaseError',
    code: 'HG_FOREIGN_RELEASE',
    means: 'something was given back that this pool did not lend',
    remedy: 'give it to the pool it came from',
  },
  {
    name: 'TransactionLeftOpenError',
    code: 'HG_TRANSACTION_LEFT_OPEN',
    means: 'with pipelining, `pool.query()` left a transaction open; it was rolled back',
    remedy: 'use `pool.connect()` for a transaction',
  },
  {
    name: 'SessionChangedError',
    code: 'HG_SESSION_CHANGED',
    means:
      'with pipelining, `pool.query()` changed or used the session; it was executed, and the connection closed',
    remedy: 'use `pool.connect()` or `onConnect`',
  },
  {
    name: 'PeerMissingError',
    code: 'HG_PEER_MISSING',
    means: 'prom-client or pino could not be loaded',
    remedy: 'install it, or give a `registry` or a `logger`',
  },
  { name: 'InvariantError', code: 'HG_INVARIANT', means: 'a bug in Headgate', remedy: 'please report it' },
];

/** Of the kit for Aurora DSQL.
 * @type {readonly ErrorRow[]} */
export const dsqlErrors = [
  {
    name: 'DsqlConnectError',
    code: 'HG_DSQL_CONNECT',
    means:
      'a cluster of Aurora DSQL could not be connected to; `reason`, `remedy`, `sqlState`, `hint`, `cause`',
    remedy: 'see `advice`, and [the reasons](dsql.md#errors)',
  },
  {
    name: 'StatementTimeoutError',
    code: 'HG_DSQL_STATEMENT_TIMEOUT',
    means: 'a statement took longer than `statementTimeoutMillis`; its connection was closed',
    remedy: 'look at the statement. Outside a transaction, and for COMMIT, find out whether it took effect',
  },
  {
    name: 'IdleInTransactionError',
    code: 'HG_DSQL_IDLE_IN_TRANSACTION',
    means:
      'a transaction was idle for longer than `idleInTransactionTimeoutMillis`; its connection was closed',
    remedy: 'begin it again, and do slow work outside of it',
  },
  {
    name: 'MigrationError',
    code: 'HG_DSQL_MIGRATION',
    means: '[migrations](dsql-migrate.md) stopped; `reason`, and where: `file`, `step`, `line`; `cause`',
    remedy:
      'see [the reasons](dsql-migrate.md#when-it-stops), then run them again: they go on where they stopped',
  },
  {
    name: 'SignerMissingError',
    code: 'HG_DSQL_SIGNER_MISSING',
    means: '`@aws-sdk/dsql-signer` could not be loaded',
    remedy: 'install it, or give a `tokenProvider`',
  },
  {
    name: 'IdClockError',
    code: 'HG_ID_CLOCK',
    means:
      'the clock is behind the last [id](dsql-ids.md), stands still, or is out of range; `reason`, `behindMs`. No id was made',
    remedy:
      "look at the machine's time synchronisation; `nextId()` waits for a clock that is a little behind",
  },
  {
    name: 'NodeIdError',
    code: 'HG_NODE_ID',
    means: 'there is no [node id](dsql-ids.md#node-ids) to make ids with; `reason`, `cause`. No id was made',
    remedy: 'see the reasons there',
  },
  {
    name: 'InvalidUuidError',
    code: 'HG_INVALID_UUID',
    means: 'a text is no UUID of the form 8-4-4-4-12, or bytes are not 16',
    remedy: 'give one',
  },
  {
    name: 'TransactionRetriesExhaustedError',
    code: 'HG_TRANSACTION_RETRIES_EXHAUSTED',
    means:
      'a [transaction](dsql-transactions.md) failed in all its attempts, and nothing was kept; `attempts`, `elapsedMs`, `reason`, `cause`',
    remedy: 'shorter transactions, fewer hot rows; see `cause`',
  },
  {
    name: 'CommitOutcomeUnknownError',
    code: 'HG_COMMIT_OUTCOME_UNKNOWN',
    means: 'the answer to COMMIT was lost; `attempts`, `cause`, `verifyError`',
    remedy:
      'find out, or give [`verify` or `idempotent`](dsql-transactions.md#when-the-answer-to-commit-is-lost)',
  },
  {
    name: 'TransactionTimeoutError',
    code: 'HG_TRANSACTION_TIMEOUT',
    means: "a transaction's `deadline` passed, and nothing was kept; `attempts`, `cause`",
    remedy: 'a longer deadline, or see `cause`',
  },
  {
    name: 'TransactionAbortedError',
    code: 'HG_TRANSACTION_ABORTED',
    means: "a transaction's signal fired, and nothing was kept; `cause` is its reason",
    remedy: 'nothing',
  },
  {
    name: 'TransactionRolledBackError',
    code: 'HG_TRANSACTION_ROLLED_BACK',
    means: "a statement had failed, and the transaction's function returned all the same; `cause`",
    remedy: 'let errors of statements reach the caller',
  },
  {
    name: 'TransactionMisuseError',
    code: 'HG_TRANSACTION_MISUSE',
    means:
      "a transaction's function did what it must not do; [`misuse`](dsql-transactions.md#errors-of-transactions)",
    remedy: 'see the message',
  },
  {
    name: 'ConditionFailedError',
    code: 'HG_CONDITION_FAILED',
    means:
      'a [fenced update](dsql-transactions.md#fencing) found another token, or no row; `entity`, `expected`, `found`',
    remedy: 'stop: another owner has taken over',
  },
  {
    name: 'AmbiguousRowError',
    code: 'HG_AMBIGUOUS_ROW',
    means: 'the key of such an update holds for more than one row; nothing was changed',
    remedy: 'name all columns of a unique key',
  },
  {
    name: 'OptimisticConflictError',
    code: 'HG_OPTIMISTIC_CONFLICT',
    means: 'a row was changed between reading and writing, in the last attempt of `optimisticUpdate`',
    remedy: 'try again later, or change the row less often',
  },
];
