/** Commands of the console: their list, permissions and notation. */

export const showNames = [
  'active_queries',
  'active_sockets',
  'classes',
  'clients',
  'config',
  'databases',
  'discards',
  'dns_hosts',
  'dns_zones',
  'fds',
  'fleet',
  'help',
  'ledger',
  'lists',
  'mem',
  'peer_pools',
  'peers',
  'pins',
  'pools',
  'query_stats',
  'rebalances',
  'servers',
  'shares',
  'sockets',
  'state',
  'stats',
  'stats_averages',
  'stats_totals',
  'totals',
  'users',
  'version',
  'waiting',
  'workers',
] as const;

export type ShowName = (typeof showNames)[number];

/** Commands for one database, or for all if none is named. */
export const optionalDatabaseVerbs = ['kill', 'pause', 'reconnect', 'resume', 'wait_close'] as const;
export const databaseVerbs = ['disable', 'enable'] as const;
export const bareVerbs = ['reload', 'suspend'] as const;
export const shutdownWaits = ['wait_for_clients', 'wait_for_servers'] as const;

export type Command =
  | { readonly verb: 'show'; readonly what: ShowName }
  /** A setting of PostgreSQL's. */
  | { readonly verb: 'show setting'; readonly name: string }
  | { readonly verb: 'ignored set' }
  /** A query by which clients check that the server is alive. */
  | { readonly verb: 'select one' }
  | { readonly verb: 'set'; readonly key: string; readonly value: string }
  | { readonly verb: (typeof optionalDatabaseVerbs)[number]; readonly database: string | undefined }
  | { readonly verb: (typeof databaseVerbs)[number]; readonly database: string }
  | { readonly verb: (typeof bareVerbs)[number] }
  | { readonly verb: 'kill_client'; readonly id: number }
  | { readonly verb: 'shutdown'; readonly mode: (typeof shutdownWaits)[number] | 'immediate' };

/** First words of all commands. */
export const verbs: readonly string[] = [
  'show',
  'set',
  ...optionalDatabaseVerbs,
  ...databaseVerbs,
  ...bareVerbs,
  'kill_client',
  'shutdown',
];

export type Role = 'admin' | 'stats';

/** True for commands that change nothing. */
export function isHarmless(command: Command): boolean {
  return ['show', 'show setting', 'ignored set', 'select one'].includes(command.verb);
}

/** Users with read access may see everything but file descriptors. */
export function mayGive(role: Role, command: Command): boolean {
  if (role === 'admin') return true;
  return isHarmless(command) && !(command.verb === 'show' && command.what === 'fds');
}

/** For a log or a text: `PAUSE app`. A setting's value is left out. */
export function describeCommand(command: Command): string {
  switch (command.verb) {
    case 'show':
      return `SHOW ${command.what.toUpperCase()}`;
    case 'show setting':
      return `SHOW ${command.name}`;
    case 'ignored set':
      return 'SET';
    case 'select one':
      return 'SELECT 1';
    case 'set':
      return `SET ${command.key}`;
    case 'kill_client':
      return `KILL_CLIENT ${command.id}`;
    case 'shutdown':
      return command.mode === 'immediate' ? 'SHUTDOWN' : `SHUTDOWN ${command.mode.toUpperCase()}`;
    case 'reload':
    case 'suspend':
      return command.verb.toUpperCase();
    default:
      return command.verb.toUpperCase() + (command.database === undefined ? '' : ` ${command.database}`);
  }
}

/** Text of SHOW HELP. */
export const help: string = [
  ...linesOf(showNames.map((name) => name.toUpperCase())).map((names) => `SHOW ${names}`),
  'SET key = value',
  ...optionalDatabaseVerbs.map((verb) => `${verb.toUpperCase()} [database]`),
  ...databaseVerbs.map((verb) => `${verb.toUpperCase()} database`),
  ...bareVerbs.map((verb) => verb.toUpperCase()),
  'KILL_CLIENT id',
  `SHUTDOWN [${shutdownWaits.join('|').toUpperCase()}]`,
]
  .map((line) => `\n\t${line}`)
  .join('');

/** A few names per line. */
function linesOf(names: readonly string[]): string[] {
  const lines: string[] = [];
  for (let at = 0; at < names.length; at += 7) lines.push(names.slice(at, at + 7).join('|'));
  return lines;
}
