/** The name of a cluster without its region: 26 letters, as AWS gives them. */
import { randomInt } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const letters = 'abcdefghijklmnopqrstuvwxyz234567';

/** Kept in the folder, so that connection strings stay valid at the next start. */
export function keptClusterId(folder: string): string {
  const file = join(folder, 'cluster-id');
  if (existsSync(file)) {
    const id = readFileSync(file, 'utf8').trim();
    if (/^[a-z2-7]{26}$/.test(id)) return id;
  }
  const id = Array.from({ length: 26 }, () => letters[randomInt(letters.length)]).join('');
  writeFileSync(file, `${id}\n`, { mode: 0o600 });
  return id;
}
