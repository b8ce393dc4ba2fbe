// @ts-check
// Errors of connections, of `headgate serve` and of the tools, and warnings that have a code. docs/errors.md is made of it.

/** @typedef {import('./errors-in-programs.mjs').ErrorRow} ErrorRow */

/**
 * @typedef {object} WarningRow
 * @property {string} code
 * @property {string} means
 * @property {string} remedy
 */

/** Of connections, wherever they are made.
 * @type {readonly ErrorRow[]} */
export const connectionErrors = [
  {
    name: 'DialFailedError',
    code: 'HG_DIAL_FAILED',
    sqlState: '08001',
    means:
      'a server could not be connected to; `reason` is `timeout`, `aborted`, `tls` or `network`, `cause` the error as it came',
    remedy: 'look at the address, the network, the firewall; for `tls`, at the certificates',
  },
  {
    name: 'TlsHandshakeError',
    code: 'HG_TLS_HANDSHAKE',
    sqlState: '08001',
    means: 'TLS could not be agreed upon with a client or a server; `cause` is what Node says',
    remedy: 'see `cause`: versions of TLS, names in the certificate, who has signed it',
  },
  {
    name: 'TlsMaterialError',
    code: 'HG_TLS_MATERIAL',
    means: 'a certificate, a key or a setting that TLS can not be done with',
    remedy: 'correct the file or the setting that the message names',
  },
  {
    name: 'UnencryptedBytesError',
    code: 'HG_UNENCRYPTED_BYTES',
    sqlState: '08P01',
    means: 'bytes came in plain text where only TLS may follow; the connection was closed',
    remedy: 'check the network path: a third party may have added them',
  },
  {
    name: 'UnsentBytesError',
    code: 'HG_UNSENT_BYTES',
    means: 'a connection was closed, and the other side had not read all',
    remedy: 'nothing, unless it happens often: then look at the other side',
  },
  {
    name: 'ListenError',
    code: 'HG_LISTEN',
    means: 'an address or a path can not be listened on; `cause`',
    remedy: 'end what listens there, or choose another one',
  },
  {
    name: 'ProtocolViolationError',
    code: 'HG_PROTOCOL_VIOLATION',
    sqlState: '08P01',
    means: 'the other side broke the protocol; the connection was closed',
    remedy: 'look at what speaks on the other side: a driver, a proxy, or something that is no PostgreSQL',
  },
  {
    name: 'UnsendableMessageError',
    code: 'HG_UNSENDABLE_MESSAGE',
    means: 'a message can not be built: too large, or with a zero byte in a text. Nothing was sent',
    remedy: 'see the message',
  },
];

/** Of the pooler and of commands.
 * @type {readonly ErrorRow[]} */
export const serveErrors = [
  {
    name: 'ConfigError',
    code: 'HG_BAD_CONFIG',
    sqlState: 'F0000',
    means:
      'the configuration makes no sense; `problems` lists all that is wrong, with file and line. RELOAD keeps the old one',
    remedy: 'correct it; `headgate serve --check` looks at it without starting',
  },
  {
    name: 'ServingError',
    code: 'HG_SERVING',
    means:
      'the configuration asks for something that can not be done at the moment: a file that can not be read, a user or a group that does not exist; `cause`',
    remedy: 'see the message',
  },
  {
    name: 'BackendRefusedError, TokenRefusedError',
    code: 'HG_BACKEND_REFUSED',
    sqlState: "the server's",
    means: 'the server did not let the pooler in; `fields`, `sqlState`',
    remedy: 'what the server says: user, password, token, database, or its limit of connections',
  },
  {
    name: 'LoginEndedError',
    code: 'HG_LOGIN_ENDED',
    sqlState: '08001',
    means: 'the connection ended before the server had decided about the login',
    remedy: 'look at the log of the server',
  },
  {
    name: 'ServerAuthenticationError',
    code: 'HG_SERVER_AUTHENTICATION',
    sqlState: '08001',
    means:
      'the pooler could not prove to the server who it is; `reason`: `no_credentials`, `wrong_kind`, `other_secret`, `unencrypted`, `token_unavailable`, `not_the_server`, `refused`, `protocol`',
    remedy:
      'correct the [credentials](pooler-auth.md) for the server. After `not_the_server`, find out who answers there',
  },
  {
    name: 'WrongServerError',
    code: 'HG_WRONG_SERVER',
    sqlState: '08001',
    means: 'a server answers, and is not one of those that `target_session_attrs` wants',
    remedy: 'name a server that is, or wait until a standby has become the primary',
  },
  {
    name: 'OwnQueryError',
    code: 'HG_OWN_QUERY',
    means: "a query of the pooler's own failed on a server (`connect_query`, a reset, a lookup); `fields`",
    remedy: 'see the message of the server',
  },
  {
    name: 'SaslMessageError',
    code: 'HG_SASL_MESSAGE',
    sqlState: '08P01, 0A000 or 28000',
    means: 'the other side sent an invalid SASL message, or asked for a mechanism that is not available',
    remedy: 'look at the driver: it may not support SCRAM, or not channel binding',
  },
  {
    name: 'SecretLookupError',
    code: 'HG_SECRET_LOOKUP',
    sqlState: '57P03',
    means:
      'the secret of a user could not be looked up (`auth_query`), so that the login could not be checked; `cause`',
    remedy: 'see `cause` in the log; the client may try again',
  },
  {
    name: 'AuthDatabaseDisabledError',
    code: 'HG_AUTH_DATABASE_DISABLED',
    sqlState: '57P03',
    means: 'the database in which `auth_query` is asked was disabled on the console',
    remedy: 'ENABLE it',
  },
  {
    name: 'ConsoleError',
    code: 'HG_CONSOLE',
    sqlState: '42601, 42501, 42704, 22023, 55000 and others',
    means:
      'the console refused a command, and says why; in `headgate top` and `headgate doctor`: a console can not be reached, or refuses the login',
    remedy: 'see the message and its hint',
  },
  {
    name: 'WorkerCallError',
    code: 'HG_WORKER_CALL',
    sqlState: 'XX000',
    means: 'with several workers: one has ended, or did not answer in time',
    remedy: 'nothing: a worker that has died is replaced. If it stays, look at the log for why',
  },
  {
    name: 'UsageError',
    code: 'HG_USAGE',
    means: 'a mistake in how a command was called; exit code 2',
    remedy: '`headgate <command> --help`',
  },
];

/** Of the stand-in, lint and the simulator.
 * @type {readonly ErrorRow[]} */
export const toolErrors = [
  {
    name: 'ScenarioError',
    code: 'HG_BAD_SCENARIO',
    means: 'a [scenario](simulator.md) makes no sense; `problems` lists all that is wrong, with lines',
    remedy: 'correct the file',
  },
  {
    name: 'PageMissingError',
    code: 'HG_PAGE_MISSING',
    means: "the script of the [simulator](simulator.md)'s HTML report can't be read; `cause`",
    remedy: 'build the package, or leave it out of a bundle',
  },
  {
    name: 'ParserMissingError',
    code: 'HG_PARSER_MISSING',
    means:
      '[lint](dsql-lint.md) and the stand-in need the package `libpg-query`, which could not be loaded; `cause`',
    remedy: 'install it; leave it out of a bundle',
  },
  {
    name: 'TooDeepError',
    code: 'HG_LINT_TOO_DEEP',
    means: 'a text of lint holds more than 10 statements that nest deeper than the parser can follow',
    remedy: 'split the file',
  },
  {
    name: 'PostgresMissingError',
    code: 'HG_POSTGRES_MISSING',
    means: '[the stand-in](dsql-local.md) finds no programs of a PostgreSQL that it can use',
    remedy: 'install what the message names',
  },
  {
    name: 'ClusterStartError',
    code: 'HG_CLUSTER_START',
    means: 'the PostgreSQL of the stand-in could not be started on this folder or with these settings',
    remedy: 'see the message',
  },
  {
    name: 'ClusterEndedError',
    code: 'HG_CLUSTER_ENDED',
    means: 'the PostgreSQL of the stand-in has ended without being asked to',
    remedy: 'start again; the message has what PostgreSQL said',
  },
  {
    name: 'ServerError',
    code: 'HG_DSQL_LOCAL_SERVER',
    means: 'the PostgreSQL of the stand-in refused something that the stand-in needs; `fields`',
    remedy: 'see the message; with a PostgreSQL of your own, look at its settings',
  },
  {
    name: 'LinkClosedError',
    code: 'HG_DSQL_LOCAL_LINK',
    means: 'a connection to the PostgreSQL of the stand-in is closed',
    remedy: 'connect again; if it stays, PostgreSQL has ended',
  },
  {
    name: 'ControlPortError',
    code: 'HG_DSQL_LOCAL_CONTROL',
    means: 'the port of the control interface can not be opened; `cause`',
    remedy: 'choose another port',
  },
  {
    name: 'IdentityOptionsError',
    code: 'HG_BAD_IDENTITY',
    means: 'an identity for the stand-in that can not exist: its ARN, its keys',
    remedy: 'correct it',
  },
];

/** Warnings of the process.
 * @type {readonly WarningRow[]} */
export const warnings = [
  {
    code: 'HG_POOL_STUCK',
    means: 'a caller, `ready()` or `end()` has waited for long: why, and who has the connections',
    remedy:
      'give connections back, or raise `max`; `warnAfterMillis` (`warnAfter`) sets the time, 0 switches it off',
  },
  {
    code: 'HG_CLIENT_LOST',
    means:
      'a client lost its connection while it was checked out; its place in the pool is free. Told once, then summed, a minute apart at least',
    remedy:
      'release clients in `finally`; from the second warning on, or with `leakThresholdMillis`, it says where they were taken',
  },
  {
    code: 'HG_OPEN_TRANSACTION',
    means:
      'a client came back to its pool inside an open transaction, which the next caller continues. Told once, then summed, a minute apart at least',
    remedy:
      'COMMIT or ROLLBACK before the release; `onOpenTransaction` has the pool roll back or close the client, or leave it so in silence',
  },
  {
    code: 'HG_INITIAL_FILL_TIMEOUT',
    means: 'the [reservoir](reservoir.md) was not full after `initialFillTimeout`; what is there serves',
    remedy: 'see the last error in it; raise `initialFillTimeout`, or lower `targetReady`',
  },
  {
    code: 'HG_UNKNOWN_OPTION',
    means: 'an option of the pool that neither Headgate nor pg knows; it does nothing',
    remedy: 'correct its name',
  },
  {
    code: 'HG_TWO_COPIES_OF_PG',
    means:
      'the program and Headgate use different copies of pg, so that type parsers and `pg.defaults` of one do not hold for the other',
    remedy: 'keep one copy (`npm dedupe`), or give the pool `Client`',
  },
  {
    code: 'HG_DSQL_CONFIG',
    means:
      'an environment variable for [Aurora DSQL](dsql.md) has a value that is not used, or a name that is not known',
    remedy: 'correct it',
  },
];
