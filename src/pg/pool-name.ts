/** The target of a pool, as its name: what node-postgres will connect to, without anything that could be secret. */

interface Target {
  readonly host?: string | undefined;
  readonly port?: string | undefined;
  readonly database?: string | undefined;
  readonly user?: string | undefined;
}

/** In node-postgres' order: the connection string, then the options, then the environment, then the defaults. */
export function poolNameOf(
  options: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const { connectionString } = options;
  const url = typeof connectionString === 'string' ? readUrl(connectionString) : {};
  const pick = (name: keyof Target, variable: string): string | undefined =>
    url[name] || text(options[name]) || environment[variable] || undefined;
  const host = pick('host', 'PGHOST') ?? 'localhost';
  const port = pick('port', 'PGPORT') ?? '5432';
  const userOfSystem = environment[process.platform === 'win32' ? 'USERNAME' : 'USER'];
  const database = pick('database', 'PGDATABASE') ?? pick('user', 'PGUSER') ?? userOfSystem;
  const place = host.includes(':') && !host.startsWith('[') && !host.startsWith('/') ? `[${host}]` : host;
  return database === undefined ? `${place}:${port}` : `${place}:${port}/${database}`;
}

function readUrl(connectionString: string): Target {
  // A path of a socket, and after a blank the database.
  if (connectionString.startsWith('/')) {
    const [host, database] = connectionString.split(' ');
    return { host, database };
  }
  if (!URL.canParse(connectionString)) return {};
  const { hostname, port, pathname, searchParams, username } = new URL(connectionString);
  const given = (name: string, fallback: string): string | undefined =>
    searchParams.get(name) || decoded(fallback) || undefined;
  return {
    host: given('host', hostname),
    port: given('port', port),
    database: searchParams.get('dbname') || given('database', pathname.slice(1)),
    user: given('user', username),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}
