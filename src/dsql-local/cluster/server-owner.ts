/** The user that PostgreSQL runs as when this process is root, which PostgreSQL refuses to run as. */
import { execFileSync } from 'node:child_process';
import { ClusterStartError } from './errors.js';

export interface ServerOwner {
  readonly uid: number;
  readonly gid: number;
}

/** The user `postgres` where there is one, else `nobody`; undefined when this process is not root and needs no other. */
export function findServerOwner(): ServerOwner | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      return { uid: idOf('-u', name), gid: idOf('-g', name) };
    } catch {
      // No such user here.
    }
  }
  throw new ClusterStartError(
    'PostgreSQL refuses to run as root, and this system has neither a user "postgres" nor a user "nobody" to run it as. ' +
      'Add one (useradd --system postgres), or do not run as root.',
  );
}

function idOf(flag: string, name: string): number {
  return Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
}
