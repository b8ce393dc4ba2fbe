/** Options: authentication, administration of the console, and observability. */
import { Misread } from './config-problems.js';
import { iniInteger } from './kind.js';
import { boolean, duration, integer, list, oneOf, query, text } from './kinds.js';
import { option } from './option.js';
import { path } from './special-kinds.js';

const authTypes = ['scram-sha-256', 'md5', 'plain', 'cert', 'hba', 'trust', 'any'] as const;

const consoleOfAny = 'any does not open the console, which stays with admin_users and stats_users';

function isUnsupported(authType: string): boolean {
  return /^(?:ldap|pam)$/i.test(authType);
}

export const authOptions = {
  type: option(oneOf(...authTypes), 'scram-sha-256', {
    name: 'auth_type',
    meaning:
      'how clients authenticate; hba: by the rules of the HBA file; trust: without a password, but where there is a list of users the name must be in it; any: without a password, by any name',
    reload: 'new-clients',
    pgbouncer: {
      otherDefault: {
        ini: 'md5',
        why: 'an eavesdropper can crack md5, and PostgreSQL is about to drop it',
      },
      difference: `ldap and pam do not exist; scram-sha-256 is used in their place; ${consoleOfAny}`,
      differsFor: (value) => isUnsupported(value) || value.toLowerCase() === 'any',
      toData: (value) => (isUnsupported(value) ? 'scram-sha-256' : value.toLowerCase()),
    },
  }),
  file: option(path, undefined, {
    name: 'auth_file',
    meaning: "users and their secrets, in the format of PgBouncer's userlist.txt",
    reload: 'new-clients',
    pgbouncer: {},
  }),
  hbaFile: option(path, undefined, {
    name: 'auth_hba_file',
    meaning: 'rules in the format of pg_hba.conf; used where the type is hba',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  identFile: option(path, undefined, {
    name: 'auth_ident_file',
    meaning:
      'which system users and certificates may be which users, in the format of pg_ident.conf; used where the type is hba',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  user: option(text, undefined, {
    name: 'auth_user',
    meaning:
      'asks the server for the secrets of users that are not in the file; its own secret is in the file',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  query: option(
    query,
    'SELECT rolname, CASE WHEN rolvaliduntil < pg_catalog.now() THEN NULL ELSE rolpassword END FROM pg_catalog.pg_authid WHERE rolname = $1 AND rolcanlogin',
    {
      name: 'auth_query',
      meaning: 'what it asks: name and secret of the user $1, in two columns',
      reload: 'new-clients',
      pgbouncer: {},
    },
  ),
  dbname: option(text, undefined, {
    name: 'auth_dbname',
    meaning: 'the database in which it asks: a configured one, or one that matches *',
    reload: 'new-clients',
    pgbouncer: {},
    defaultText: "the client's",
  }),
  queryCacheTime: option(duration('never kept'), 60_000, {
    name: 'auth_query_cache_time',
    meaning: 'how long an answer is kept; a login that fails asks again',
    reload: 'new-clients',
    pgbouncer: {
      otherDefault: { ini: '0', why: 'a server need not be asked for every login of a busy user' },
    },
  }),
  scramIterations: option(integer({ min: 1, max: 1_000_000 }), 4096, {
    name: 'scram_iterations',
    meaning: 'iterations of SCRAM secrets that are made of a password in the file',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  failedLoginsFree: option(integer({ min: 0, max: 1_000_000 }), 3, {
    name: 'failed_logins_free',
    meaning: 'wrong passwords of a user from one address that are answered at once',
    reload: 'new-clients',
  }),
  failedLoginDelay: option(duration('never'), 250, {
    name: 'failed_login_delay',
    meaning: 'how late the next login, right or wrong, is answered; each further wrong one doubles it',
    reload: 'new-clients',
    pgbouncer: { otherDefault: { ini: '0', why: 'guessing passwords must be slow' } },
  }),
  failedLoginDelayMax: option(duration(undefined), 10_000, {
    name: 'failed_login_delay_max',
    meaning: 'the longest that an answer is held back',
    reload: 'new-clients',
  }),
  failedLoginMemory: option(duration(undefined), 120_000, {
    name: 'failed_login_memory',
    meaning: 'after this time without a wrong password, the count of a user at an address starts again',
    reload: 'new-clients',
  }),
  failedLoginsAtOnce: option(integer({ min: 1, max: 1_000_000 }), 10, {
    name: 'failed_logins_at_once',
    meaning: 'logins of a user from one address whose answers are held back at once; more are refused unread',
    reload: 'new-clients',
  }),
  failedLoginsAtOncePerAddress: option(integer({ min: 1, max: 1_000_000 }), 100, {
    name: 'failed_logins_at_once_per_address',
    meaning:
      'such logins of all users from one address; users without wrong passwords are not held back, and not counted',
    reload: 'new-clients',
  }),
  allowUnencryptedPasswords: option(boolean, false, {
    name: 'allow_unencrypted_passwords',
    meaning: 'asks clients for passwords in clear text, and sends them to servers that ask, also without TLS',
    reload: 'new-clients',
  }),
};

export const adminOptions = {
  compatibility: option(oneOf('headgate', 'pgbouncer'), 'headgate', {
    name: 'compatibility',
    meaning:
      "pgbouncer: errors and log in PgBouncer's words, and its behaviour where Headgate's differs, for programs and rules that depend on them",
    reload: 'restart',
    whyRestart: 'who reads the log goes by it from the start',
    pgbouncer: {
      otherDefault: { ini: 'pgbouncer', why: 'our errors say more, and have SQLSTATEs of their own' },
    },
  }),
  adminUsers: option(list, Object.freeze([]), {
    name: 'admin_users',
    meaning: 'users who may do everything on the console',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  statsUsers: option(list, Object.freeze([]), {
    name: 'stats_users',
    meaning: 'users who may look at everything on the console',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  loginNotifyMessage: option(text, undefined, {
    name: 'login_notify_message',
    meaning: 'a notice that clients get after the login',
    reload: 'new-clients',
    pgbouncer: {},
  }),
  pidFile: option(path, undefined, {
    name: 'pidfile',
    meaning:
      'file for the process id while the pooler runs; the pooler does not start if the process in the file is alive, or if the file holds anything but a process id',
    reload: 'restart',
    whyRestart: 'it is written at the start',
    pgbouncer: {},
  }),
  runAs: option(text, undefined, {
    name: 'run_as',
    meaning: 'the system user that the pooler becomes once it listens, if it was started as root',
    reload: 'restart',
    whyRestart: 'who has given up being root can not take it back',
    pgbouncer: { name: 'user' },
  }),
  sigtermMode: option(oneOf('wait_for_servers', 'wait_for_clients'), 'wait_for_servers', {
    name: 'sigterm_mode',
    meaning:
      'what SIGTERM waits for, as long as shutdown_timeout says: for open transactions and clients that keep a server, or for all clients to leave',
    reload: 'now',
    pgbouncer: {
      otherDefault: {
        ini: 'wait_for_clients',
        why: 'container platforms give a program some seconds to end',
      },
    },
  }),
};

/** PgBouncer's `verbose` is a number; Headgate's levels have names. */
function levelOfVerbosity(ini: string): string {
  const verbosity = iniInteger(ini);
  if (verbosity < 0) throw new Misread('must be 0 or more');
  return verbosity === 0 ? 'info' : 'debug';
}

export const loggingOptions = {
  file: option(path, undefined, {
    name: 'logfile',
    meaning: 'file for the log, besides standard error; opened again by a reload, so that it can be rotated',
    reload: 'now',
    pgbouncer: {},
  }),
  syslog: option(boolean, false, {
    name: 'syslog',
    meaning: "sends the log to the system's log, too; needs Linux and the optional package koffi",
    reload: 'restart',
    whyRestart: 'it is opened at the start',
    pgbouncer: {},
  }),
  syslogIdent: option(text, 'pgbouncer', {
    name: 'syslog_ident',
    meaning: 'name of the pooler in the system log',
    reload: 'restart',
    whyRestart: 'it is opened at the start',
    pgbouncer: {},
  }),
  syslogFacility: option(
    oneOf(
      'auth',
      'authpriv',
      'daemon',
      'user',
      'local0',
      'local1',
      'local2',
      'local3',
      'local4',
      'local5',
      'local6',
      'local7',
    ),
    'daemon',
    {
      name: 'syslog_facility',
      meaning: 'the kind of program in the system log',
      reload: 'restart',
      whyRestart: 'it is opened at the start',
      pgbouncer: {},
    },
  ),
  level: option(oneOf('error', 'warn', 'info', 'debug'), 'info', {
    name: 'log_level',
    meaning: 'what is written to standard error',
    reload: 'now',
    pgbouncer: {
      name: 'verbose',
      difference: '0 becomes info, more becomes debug',
      differsFor: (value) => value !== '0',
      toData: levelOfVerbosity,
    },
  }),
  format: option(oneOf('text', 'json'), 'text', {
    name: 'log_format',
    meaning: 'lines for people, or objects for programs',
    reload: 'now',
  }),
  connections: option(boolean, true, {
    name: 'log_connections',
    meaning: 'logs clients that connect and server connections that open',
    reload: 'now',
    pgbouncer: {},
  }),
  disconnections: option(boolean, true, {
    name: 'log_disconnections',
    meaning: 'logs clients that disconnect and server connections that close, with the reason',
    reload: 'now',
    pgbouncer: {},
  }),
  poolerErrors: option(boolean, true, {
    name: 'log_pooler_errors',
    meaning: 'logs errors that clients are told by the pooler, not by the server',
    reload: 'now',
    pgbouncer: {},
  }),
  stats: option(boolean, true, {
    name: 'log_stats',
    meaning: 'logs statistics every stats_period',
    reload: 'now',
    pgbouncer: {},
  }),
  statsPeriod: option(duration(undefined), 60_000, {
    name: 'stats_period',
    meaning: 'how often averages are made',
    reload: 'now',
    pgbouncer: {},
  }),
};
