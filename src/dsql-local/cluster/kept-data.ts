/** A data folder that the user keeps between runs: made when it is missing, refused when it can't be used. */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ClusterStartError } from './errors.js';
import { postgresMajor } from './find-postgres.js';
import { isOpenToAll } from './folders.js';

/** PostgreSQL's own data is in a folder below, beside which the stand-in has its certificates and keys. */
const subfolder = 'postgres';

/** The folder for PostgreSQL's data below `dataFolder`; only its owner may enter it. */
export function prepareKeptData(dataFolder: string, forAnotherUser: boolean): string {
  const parent = resolve(dataFolder);
  if (existsSync(join(parent, 'PG_VERSION')))
    throw new ClusterStartError(
      `${parent} is the data folder of another PostgreSQL server. Name an empty folder, or one that does not exist yet.`,
    );
  if (existsSync(parent) && !statSync(parent).isDirectory())
    throw new ClusterStartError(
      `${parent} is not a folder. Name an empty folder, or one that does not exist yet.`,
    );
  const made = mkdirSync(parent, { recursive: true, mode: 0o700 });
  // The other user passes through to its own folder, and can't list the others.
  if (forAnotherUser && made !== undefined)
    for (let path = parent; path.startsWith(made); path = dirname(path)) chmodSync(path, 0o711);
  if (forAnotherUser && !isOpenToAll(parent))
    throw new ClusterStartError(
      `PostgreSQL refuses to run as root, and the user that it runs as may not enter ${parent}. ` +
        'Make it and each folder above it enterable (chmod a+x), name another folder, or do not run as root.',
    );
  const folder = join(parent, subfolder);
  checkVersion(folder);
  return folder;
}

function checkVersion(folder: string): void {
  if (!existsSync(folder)) return;
  const file = join(folder, 'PG_VERSION');
  if (!existsSync(file)) {
    if (readdirSync(folder).length === 0) return;
    throw new ClusterStartError(
      `${folder} has files that are not of PostgreSQL. Remove them, or name another data folder.`,
    );
  }
  const version = readFileSync(file, 'utf8').trim();
  if (version !== postgresMajor)
    throw new ClusterStartError(
      `${folder} was made by PostgreSQL ${version}, and ${postgresMajor} is needed. Remove it, or name another data folder.`,
    );
}

/** The superuser's password, which PostgreSQL was given when its data was made, and which is kept beside that. */
export function keptPassword(folder: string): string {
  const file = `${folder}.password`;
  if (existsSync(file)) return readFileSync(file, 'utf8');
  if (existsSync(join(folder, 'PG_VERSION')))
    throw new ClusterStartError(
      `${folder} was made without a password. Remove it, or name another data folder.`,
    );
  const password = randomPassword();
  writeFileSync(file, password, { mode: 0o600 });
  return password;
}

export function randomPassword(): string {
  return randomBytes(24).toString('base64url');
}
