/** Warns of options that neither the pool nor node-postgres knows: most likely typing mistakes without effect. */
import { nearest } from '../kernel/nearest.js';

/** Options of `pg.Client`, of its parser of connection strings, and of pg-pool. */
const optionsOfPg = [
  ...['user', 'database', 'password', 'host', 'hostaddr', 'port', 'connectionString', 'ssl', 'sslmode'],
  ...['sslcert', 'sslkey', 'sslrootcert', 'sslnegotiation', 'uselibpqcompat', 'enableChannelBinding'],
  ...['keepAlive', 'keepAliveInitialDelayMillis', 'keepalives', 'keepalives_idle', 'stream', 'connection'],
  ...['statement_timeout', 'lock_timeout', 'query_timeout', 'idle_in_transaction_session_timeout'],
  ...['application_name', 'fallback_application_name', 'options', 'types', 'client_encoding', 'encoding'],
  ...['binary', 'replication', 'isDomainSocket', 'domain', 'parseInputDatesAsUTC', 'rows', 'parseInt8'],
  ...['connect_timeout', 'connectionTimeoutMillis', 'quoteIdentifiers', 'native', 'scramMaxIterations'],
  ...['max', 'min', 'poolSize', 'idleTimeoutMillis', 'maxUses', 'maxLifetimeSeconds', 'allowExitOnIdle'],
  ...['log', 'verify', 'onConnect', 'Promise', 'Client', 'pipeline', 'reapIntervalMillis', 'poolIdleTimeout'],
];

const optionsOfHeadgate = [
  ...['name', 'minIdle', 'dialLimit', 'dialTimeoutMillis', 'closeTimeoutMillis', 'maxLifetimeJitterSeconds'],
  ...['guardWindowMillis', 'checkAfterIdleMillis', 'keepaliveMillis', 'checkTimeoutMillis', 'idleOrder'],
  ...['onDialFailure', 'backoffBaseMillis', 'backoffCapMillis', 'breakerThreshold', 'leakThresholdMillis'],
  ...['rateLimiter', 'leases', 'reservoir', 'warmup', 'keeper', 'startJitter', 'warnAfterMillis'],
  ...['onOpenTransaction'],
];

const known = new Set([...optionsOfPg, ...optionsOfHeadgate]);

/** The nearest known option; undefined where there is none. */
export function nearestOption(name: string): string | undefined {
  return nearest(name, known);
}

export function isKnownOption(name: string): boolean {
  return known.has(name);
}

/** Names that were reported in this process; each is reported once. */
const told = new Set<string>();
const toldAtMost = 100;

/** With the program's own client class, options that resemble no known one may belong to that class. */
export function warnOfUnknownOptions(options: object, hasOwnClient: boolean): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || known.has(name) || told.has(name) || told.size >= toldAtMost) continue;
    const guess = nearestOption(name);
    if (guess === undefined && hasOwnClient) continue;
    told.add(name);
    process.emitWarning(
      guess === undefined
        ? `The pool's option ${name} is not known and does nothing.`
        : `The pool's option ${name} is not known and does nothing. Did you mean ${guess}?`,
      { type: 'HeadgateWarning', code: 'HG_UNKNOWN_OPTION' },
    );
  }
}
