/** Folders for a server's files while it runs: temporary ones, in memory where the system offers that as a folder. */
import { accessSync, constants, existsSync, mkdtempSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ClusterStartError } from './errors.js';

const isWindows = process.platform === 'win32';

/** Linux keeps files in here in memory. Containers often have no more than 64 MB of it. */
const memoryFolder = '/dev/shm';
const neededMemoryBytes = 1024 ** 3;

/** Bytes of the longest path of a Unix socket, without the zero behind it. */
const longestSocketPath = process.platform === 'linux' ? 107 : 103;

export interface FolderNeeds {
  /** PostgreSQL runs as another user, who must be able to enter. */
  readonly forAnotherUser: boolean;
  /** The folder will hold the socket of this port. */
  readonly socketPort?: number | undefined;
}

/** Makes a folder that this process can write to. Its name is random, and only its owner may enter (mode 0700). */
export function temporaryFolder({ forAnotherUser, socketPort }: FolderNeeds): string {
  const candidates = isWindows ? [tmpdir()] : [...new Set([tmpdir(), '/tmp', '/var/tmp'])];
  const parent = candidates.find(
    (folder) =>
      isUsable(folder, forAnotherUser) && (socketPort === undefined || fitsSocket(folder, socketPort)),
  );
  if (parent === undefined) {
    throw new ClusterStartError(
      `None of ${candidates.join(', ')} can hold the files of a PostgreSQL server: each is missing, not writable, ` +
        `too long a path for a socket${forAnotherUser ? ', or closed to the user that PostgreSQL must run as in place of root' : ''}. ` +
        `Set TMPDIR to a short path${forAnotherUser ? ' that every user may enter (chmod a+x it and each folder above it)' : ''}.`,
    );
  }
  return mkdtempSync(join(parent, prefix));
}

/** A new folder in memory; undefined where there is too little, so that data belongs into a temporary folder. */
export function folderInMemory(forAnotherUser: boolean): string | undefined {
  if (process.platform !== 'linux' || !isUsable(memoryFolder, forAnotherUser)) return undefined;
  const { bavail, bsize } = statfsSync(memoryFolder);
  return bavail * bsize < neededMemoryBytes ? undefined : mkdtempSync(join(memoryFolder, prefix));
}

/** True if any user may enter this folder, which takes every folder above it. */
export function isOpenToAll(folder: string): boolean {
  if (isWindows) return true;
  if ((statSync(folder).mode & 0o001) === 0) return false;
  const parent = dirname(folder);
  return parent === folder || isOpenToAll(parent);
}

const prefix = 'headgate-postgres-';

function isUsable(folder: string, forAnotherUser: boolean): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch {
    return false;
  }
  return existsSync(folder) && (!forAnotherUser || isOpenToAll(folder));
}

function fitsSocket(parent: string, port: number): boolean {
  const path = join(parent, `${prefix}XXXXXX`, `.s.PGSQL.${port}.lock`);
  return Buffer.byteLength(path) <= longestSocketPath;
}
