/** The address at which clients can connect, and its notation. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { ListenError } from './errors.js';

export interface TcpEndpoint {
  readonly kind: 'tcp';
  /** An address, a name, or `*` for all addresses. */
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
}

export interface UnixEndpoint {
  readonly kind: 'unix';
  /** Begins with `@` if it is an abstract name, which is in no folder (Linux only). */
  readonly path: string;
  /** The end of the path, by the convention of PostgreSQL's clients. */
  readonly port: number;
  readonly mode: number;
}

export type Endpoint = TcpEndpoint | UnixEndpoint;

/** The kernel's limit in bytes, without the zero at the end. */
const longestPath = process.platform === 'linux' ? 107 : 103;

/** The socket in a folder at which PostgreSQL's clients look for a port. */
export function unixEndpoint(folder: string, port: number, mode = 0o777): UnixEndpoint {
  const path = `${folder.replace(/\/+$/, '')}/.s.PGSQL.${port}`;
  const bytes = Buffer.byteLength(path);
  if (bytes > longestPath)
    throw new ListenError(path, `the path has ${bytes} bytes, and at most ${longestPath} are possible.`);
  return { kind: 'unix', path, port, mode };
}

export function isAbstract({ path }: UnixEndpoint): boolean {
  return path.startsWith('@');
}

/** The path in the form that the system expects. */
export function systemPath(endpoint: UnixEndpoint): string {
  return isAbstract(endpoint) ? `\0${endpoint.path.slice(1)}` : endpoint.path;
}

export function showEndpoint(endpoint: Endpoint): string {
  if (endpoint.kind === 'unix') return endpoint.path;
  const { host, port } = endpoint;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** A name may stand for several addresses; all of them are listened on. */
export async function withAddresses(endpoint: Endpoint): Promise<readonly Endpoint[]> {
  if (endpoint.kind === 'unix' || endpoint.host === '*' || isIP(endpoint.host) !== 0) return [endpoint];
  try {
    const found = await lookup(endpoint.host, { all: true });
    const addresses = new Set(found.map(({ address }) => address));
    return [...addresses].map((host) => ({ ...endpoint, host }));
  } catch (error) {
    throw new ListenError(
      showEndpoint(endpoint),
      `the name has no address (${(error as Error).message}).`,
      error,
    );
  }
}
