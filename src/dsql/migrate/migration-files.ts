/** Finds the migrations of a folder: `*.sql`, and `migration.sql` of each folder in it, as Prisma writes them. */
import type { Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MigrationError } from './errors.js';
import { compareNames, compareVersions, isFlyway, versionOf } from './migration-order.js';

export interface MigrationFile {
  /** As recorded: `V1__accounts.sql`, `20260101120000_init/migration.sql`. */
  readonly name: string;
  readonly text: string;
}

/** The key of a record. */
const longestName = 400;
const prismaFile = 'migration.sql';

/** Both directions in one file: running it whole would undo what it did. */
const downPart = /^--\s*(?:\+goose\s+down|\+migrate\s+down|migrate:down)\b/im;

export async function readMigrations(directory: string): Promise<MigrationFile[]> {
  const names = (await namesIn(directory)).sort(compareNames);
  checkVersions(names);
  return Promise.all(names.map((name) => readMigration(directory, name)));
}

async function namesIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    throw new MigrationError(
      'files',
      `The folder ${directory} can't be read: ${String((error as Error).message)}`,
    );
  });
  const names = await Promise.all(entries.map((entry) => nameOf(directory, entry)));
  const found = names.filter((name) => name !== undefined);
  if (found.length > 0) return found;
  throw new MigrationError(
    'files',
    `There is no migration in ${directory}: neither *.sql nor */${prismaFile}.`,
  );
}

async function nameOf(directory: string, entry: Dirent): Promise<string | undefined> {
  const { name } = entry;
  if (entry.isDirectory()) {
    const inside = await readdir(join(directory, name)).catch((): string[] => []);
    return inside.includes(prismaFile) ? `${name}/${prismaFile}` : undefined;
  }
  if (!name.endsWith('.sql') || isUndo(name)) return undefined;
  if (name.startsWith('R__'))
    throw new MigrationError(
      'files',
      `${name} is a repeatable migration, and each is run once. Give it a version.`,
    );
  return name;
}

/** Flyway's U1__x.sql, and x.down.sql. */
function isUndo(name: string): boolean {
  return name.endsWith('.down.sql') || /^U\d[\d._]*__/.test(name);
}

function checkVersions(names: readonly string[]): void {
  for (const [index, name] of names.entries()) {
    if (name.length > longestName)
      throw new MigrationError(
        'files',
        `A name has ${name.length} characters, more than ${longestName}: ${name}`,
      );
    const next = names[index + 1];
    if (next === undefined || !isFlyway(name) || !isFlyway(next)) continue;
    if (compareVersions(versionOf(name) ?? '', versionOf(next) ?? '') === 0)
      throw new MigrationError(
        'files',
        `${name} and ${next} have the same version. Give one of them another.`,
      );
  }
}

async function readMigration(directory: string, name: string): Promise<MigrationFile> {
  const bytes = await readFile(join(directory, name)).catch((error: unknown) => {
    throw new MigrationError('files', `can't be read: ${String((error as Error).message)}`, { file: name });
  });
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new MigrationError('files', 'is not UTF-8. Convert it.', { file: name });
  }
  if (downPart.test(text))
    throw new MigrationError('files', 'has a part that undoes it. Move that part to another file.', {
      file: name,
    });
  return { name, text };
}

/** The file that a name, a part of its path or a version means. */
export function findMigration(names: readonly string[], wanted: string): string {
  const exact = names.filter(
    (name) => name === wanted || name === `${wanted}.sql` || name === `${wanted}/${prismaFile}`,
  );
  const version = wanted.replace(/^V(?=\d)/, '');
  const byVersion = names.filter((name) => {
    const has = versionOf(name);
    return has !== undefined && /^\d+(?:\.\d+)*$/.test(version) && compareVersions(has, version) === 0;
  });
  const found = exact.length > 0 ? exact : byVersion;
  if (found.length === 1) return found[0] as string;
  const why = found.length === 0 ? 'is none of the migrations' : `is several: ${found.join(', ')}`;
  throw new MigrationError('files', `${wanted} ${why}. Name a file.`);
}
