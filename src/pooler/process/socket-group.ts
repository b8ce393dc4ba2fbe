/** Sets the group of a Unix socket. */
import { chownSync, readFileSync } from 'node:fs';
import type { Endpoint } from '../../net/endpoint.js';
import { ServingError } from '../errors.js';

/** Throws a `ServingError` for a group that does not exist or may not be used. */
export function giveToGroup(endpoints: Iterable<Endpoint>, group: string): void {
  const id = groupIdOf(group);
  for (const endpoint of endpoints) {
    // An abstract socket is no file and has no owner.
    if (endpoint.kind !== 'unix' || endpoint.path.startsWith('\0') || endpoint.path.startsWith('@')) continue;
    try {
      chownSync(endpoint.path, -1, id);
    } catch (error) {
      throw new ServingError(
        `${endpoint.path} can't be given to the group ${group}: ${(error as Error).message}`,
        error,
      );
    }
  }
}

function groupIdOf(group: string): number {
  if (/^\d+$/.test(group)) return Number(group);
  const groups = readFileSync('/etc/group', 'utf8').split('\n');
  const [, , id] = groups.map((line) => line.split(':')).find(([name]) => name === group) ?? [];
  if (id === undefined)
    throw new ServingError(`unixSocket.group is ${group}, and there is no such group in /etc/group.`);
  return Number(id);
}
