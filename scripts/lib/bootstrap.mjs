// @ts-check
// Makes a clean clone ready to run: the right Node, the packages installed once, the source built once.
// It uses nothing but Node itself, since it runs before anything is installed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { entryNames } from './package-entries.mjs';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const modules = join(root, 'node_modules');
const installStamp = join(modules, '.headgate-stamp');
const buildStamp = join(modules, '.headgate-build-stamp');
const pageStamp = join(modules, '.headgate-page-stamp');
const pageFolder = join(root, 'dist', 'page');
const reportFolder = join(root, 'dist', 'page-report');
const commonjsBuilder = join(root, 'scripts/build-commonjs.mjs');

/** A failure that the user can act on: its message is printed alone, without a stack. */
export class BootstrapError extends Error {}

/** Installs and builds what is missing or out of date, and says so in a line each. */
export function bootstrap() {
  checkNode();
  ensureDependencies();
  ensureBuilt();
}

export function checkNode() {
  const required = readJson(join(root, 'package.json')).engines.node.replace('>=', '');
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [requiredMajor, requiredMinor] = required.split('.').map(Number);
  if (major > requiredMajor || (major === requiredMajor && minor >= requiredMinor)) return;
  throw new BootstrapError(
    `Headgate needs Node ${required} or newer, and this is Node ${process.versions.node} (${process.execPath}). ` +
      'Install a newer one, or put it first in PATH.',
  );
}

export function ensureDependencies() {
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
  const stamp = hash([lock, process.platform, process.arch]);
  if (readIfThere(installStamp) === stamp) return;
  if (!installedAsLocked(JSON.parse(lock))) installPackages();
  writeFileSync(installStamp, stamp);
}

/** Compiles `src/` into `dist/`, and `web/` into `dist/page/`, unless that has been done for this very source. */
function ensureBuilt() {
  if (isBuilt()) return;
  say('building (tsc and vite)');
  const { good, output } = build();
  if (!good) throw new BootstrapError(`the source does not compile:\n${output}`);
}

/** True if `dist/` was built from `src/` and `web/` as they are now. */
export function isBuilt() {
  const { stamp, outputs } = describeBuild();
  return readIfThere(buildStamp) === stamp && outputs.every((file) => existsSync(file)) && isPageBuilt();
}

/**
 * Compiles `src/` into `dist/`, removes from there what no longer has a source, makes CommonJS of what is exported, and builds
 * the page where it has changed.
 */
export function build() {
  const { stamp, outputs } = describeBuild();
  rmSync(buildStamp, { force: true });
  const result = runQuietly(join(modules, 'typescript/bin/tsc'), '-p', 'tsconfig.json');
  if (!result.good) return result;
  for (const file of listFiles(join(root, 'dist')))
    if (!outputs.includes(file) && !isOfPages(file)) rmSync(file);
  const commonjs = runQuietly(commonjsBuilder);
  if (!commonjs.good) return commonjs;
  writeFileSync(buildStamp, stamp);
  return isPageBuilt() ? commonjs : buildPage();
}

/** @param {string} file */
function isOfPages(file) {
  return [pageFolder, reportFolder].some((folder) => file.startsWith(folder + sep));
}

/** Builds `web/` into `dist/page/` and `dist/page-report/`. */
function buildPage() {
  rmSync(pageStamp, { force: true });
  const result = runQuietly('scripts/build-page.mjs');
  if (result.good) writeFileSync(pageStamp, describePage());
  return result;
}

function isPageBuilt() {
  const made = [join(pageFolder, 'index.html'), join(reportFolder, 'report.js')];
  return readIfThere(pageStamp) === describePage() && made.every((file) => existsSync(file));
}

/** The sources of the page as a hash. */
function describePage() {
  const inputs = [
    ...listFiles(join(root, 'web')),
    join(root, 'scripts/build-page.mjs'),
    join(root, 'package-lock.json'),
  ];
  return hash(inputs.flatMap((file) => [relative(root, file), readFileSync(file)]));
}

/**
 * Runs a program with this very Node, so that neither PATH nor a shell matters, and keeps what it prints.
 * @param {string} program its file, below the project's folder or anywhere
 * @param {string[]} args
 * @returns {{ good: boolean, output: string }}
 */
export function runQuietly(program, ...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [resolve(root, program), ...args], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' },
  });
  return { good: status === 0, output: `${stdout}${stderr}` };
}

/**
 * Runs the body of a command; a failure the user can act on is said in one line.
 * @param {() => void | Promise<void>} body
 */
export async function command(body) {
  try {
    await body();
  } catch (error) {
    process.exitCode = 1;
    console.error(error instanceof BootstrapError ? `headgate: ${error.message}` : error);
  }
}

/** @param {string} text */
function say(text) {
  console.log(`headgate: ${text}`);
}

/**
 * True if an `npm install` of the user's has already installed what the lock file asks for.
 * @param {LockFile} lock
 */
function installedAsLocked(lock) {
  const record = readIfThere(join(modules, '.package-lock.json'));
  if (record === undefined) return false;
  const installed = /** @type {LockFile} */ (JSON.parse(record)).packages;
  return Object.entries(lock.packages).every(([path, wanted]) => {
    if (path === '') return true;
    const found = installed[path];
    return found === undefined ? !neededHere(wanted) : found.version === wanted.version;
  });
}
/** @typedef {{ version?: string, optional?: boolean, os?: string[], cpu?: string[], libc?: string[] }} LockedPackage */
/** @typedef {{ packages: Record<string, LockedPackage> }} LockFile */

/**
 * npm leaves out the optional packages of other platforms. Those with a `libc` come in pairs of which one is right; which,
 * npm knows.
 * @param {LockedPackage} wanted
 */
function neededHere({ optional, os, cpu, libc }) {
  if (optional !== true) return true;
  return (
    libc === undefined && os?.includes(process.platform) === true && cpu?.includes(process.arch) === true
  );
}

function installPackages() {
  say('installing the npm packages with "npm ci" (once; about a minute)');
  // Another user's settings could leave out the tools that build and test; these do not.
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  const npm = process.env.npm_execpath;
  const options = /** @type {const} */ ({ cwd: root, stdio: 'inherit' });
  const { status, error } =
    npm !== undefined && /\.c?js$/.test(npm)
      ? spawnSync(process.execPath, [npm, ...args], options)
      : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
  if (error !== undefined) throw new BootstrapError(`npm could not be run: ${error.message}`);
  if (status !== 0)
    throw new BootstrapError('"npm ci" failed; see its messages above. Is the npm registry reachable?');
}

/** A hash of everything to compile, and the files that compiling makes. */
function describeBuild() {
  const sources = listFiles(join(root, 'src')).filter((file) => file.endsWith('.ts'));
  const settings = ['tsconfig.json', 'package.json', 'package-lock.json'].map((name) => join(root, name));
  const inputs = [...sources, ...settings, commonjsBuilder];
  const commonjs = entryNames(root).flatMap((name) =>
    ['.cjs', '.mjs', '.d.cts'].map((ending) => join(root, 'dist/cjs', name + ending)),
  );
  return {
    stamp: hash(inputs.flatMap((file) => [relative(root, file), readFileSync(file)])),
    outputs: [...sources.flatMap(outputsOf), ...commonjs],
  };
}

/** @param {string} source */
function outputsOf(source) {
  const base = join(root, 'dist', relative(join(root, 'src'), source).replace(/\.ts$/, ''));
  return ['.js', '.d.ts'].map((ending) => base + ending);
}

/**
 * @param {string} folder
 * @returns {string[]}
 */
function listFiles(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** @param {(string | Buffer)[]} parts */
function hash(parts) {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part).update('\0');
  return digest.digest('hex');
}

/** @param {string} file */
function readIfThere(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** @param {string} file */
function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}
