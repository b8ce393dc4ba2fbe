/** `-u`: a pooler that was started as root gives that up once it listens. */
import { readFileSync } from 'node:fs';
import { ServingError } from '../pooler/errors.js';

/** Throws a `ServingError`: what is meant to run as another user never runs as root. */
export function becomeUser(user: string | undefined): void {
  if (user === undefined || process.getuid?.() === undefined) return;
  if (process.getuid() !== 0) {
    throw new ServingError(`The pooler can become the user ${user} only if it is started as root.`);
  }
  try {
    const group = groupOf(user);
    (process as { initgroups?: (user: string, group: number) => void }).initgroups?.(user, group);
    process.setgid?.(group);
    process.setuid?.(user);
  } catch (error) {
    throw new ServingError(`The pooler can't become the user ${user}: ${(error as Error).message}`, error);
  }
}

/** The user's own group, which Node can't look up. */
function groupOf(user: string): number {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${user}:`));
  const group = Number(line?.split(':')[3]);
  if (Number.isSafeInteger(group)) return group;
  throw new Error('there is no such user in /etc/passwd');
}
