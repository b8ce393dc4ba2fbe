/** Warns of options that neither the pool nor node-postgres knows: most likely typing mistakes without effect. */
import { nearest } from '../kernel/nearest.js';
import { warn } from '../runtime/warn.js';
import { userNames } from './engine-options.js';

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
  ...Object.values(userNames),
  ...['name', 'minIdle', 'dialLimit', 'idleOrder', 'onDialFailure', 'breakerThreshold', 'onOpenTransaction'],
  ...['rateLimiter', 'leases', 'reservoir', 'warmup', 'keeper', 'startJitter'],
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
    const hint = guess === undefined ? '' : ` Did you mean ${guess}?`;
    warn('HG_UNKNOWN_OPTION', `The pool's option ${name} is not known and does nothing.${hint}`);
  }
}
