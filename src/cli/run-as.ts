/** `-u`: a pooler that was started as root gives that up once it listens. */
import { lchownSync, readFileSync } from 'node:fs';
import { ServingError } from '../pooler/errors.js';
import type { LogFile } from './log-file.js';

/** Files that root has made and the user needs: the log is opened again after a rotation, sockets are removed at the end. */
export interface HandedOver {
  readonly log: LogFile;
  /** Paths of Unix sockets. */
  readonly sockets: readonly string[];
}

/** Throws a `ServingError`: what is meant to run as another user never runs as root. */
export function becomeUser(user: string | undefined, handed?: HandedOver): void {
  if (user === undefined || process.getuid?.() === undefined) return;
  if (process.getuid() !== 0) {
    throw new ServingError(`The pooler can become the user ${user} only if it is started as root.`);
  }
  try {
    const { id, group } = accountOf(user);
    handed?.log.giveTo(id, group);
    // The group stays that of unix_socket_group.
    for (const socket of handed?.sockets ?? []) lchownSync(socket, id, -1);
    (process as { initgroups?: (user: string, group: number) => void }).initgroups?.(user, group);
    process.setgid?.(group);
    process.setuid?.(user);
  } catch (error) {
    throw new ServingError(`The pooler can't become the user ${user}: ${(error as Error).message}`, error);
  }
}

/** The numbers of a user and its own group, which Node can't look up. */
function accountOf(user: string): { readonly id: number; readonly group: number } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${user}:`));
  const [id, group] = line?.split(':').slice(2, 4).map(Number) ?? [];
  if (Number.isSafeInteger(id) && Number.isSafeInteger(group))
    return { id: id as number, group: group as number };
  throw new Error('there is no such user in /etc/passwd');
}
