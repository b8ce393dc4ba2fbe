// The order of files by their names, and which file a version means.
import { expect, test } from 'vitest';
import { findMigration, readMigrations } from '../../../src/dsql/migrate/migration-files.js';
import { compareNames } from '../../../src/dsql/migrate/migration-order.js';
import { rejectionOf } from '../../support/outcomes.js';
import { type Files, Folder } from './scene.js';

test.each<[string, string[]]>([
  ['Flyway', ['V1__b.sql', 'V1.1__a.sql', 'V1_2__a.sql', 'V2__a.sql', 'V10__a.sql']],
  ['Rails', ['20260101120000_z.sql', '20260101120001_a.sql', '20270101000000_a.sql']],
  ['Drizzle', ['0000_z.sql', '0001_a.sql', '0010_a.sql', '10000_a.sql']],
  ['Prisma', ['20260101120000_z/migration.sql', '20260102120000_a/migration.sql']],
  ['plain', ['a.sql', 'b2.sql', 'b10.sql', 'c.sql']],
  ['numbered', ['1.sql', '2-b.sql', '2_a.sql', '10.sql']],
])('Names as of %s are sorted by their versions', (_tool, names) => {
  expect([...names].reverse().sort(compareNames)).toEqual(names);
  expect([...names].sort(compareNames)).toEqual(names);
});

test.each<[string, string]>([
  ['V2__b.sql', 'V2__b.sql'],
  ['V2__b', 'V2__b.sql'],
  ['2', 'V2__b.sql'],
  ['V2', 'V2__b.sql'],
  ['2.0', 'V2__b.sql'],
  ['20260101', '20260101_x/migration.sql'],
  ['20260101_x', '20260101_x/migration.sql'],
])('%s means the file %s', (wanted, found) => {
  expect(findMigration(['V2__b.sql', 'V20__b.sql', '20260101_x/migration.sql'], wanted)).toBe(found);
});

async function readAll(files: Files): Promise<string[]> {
  const folder = new Folder(files);
  try {
    return (await readMigrations(folder.path)).map(({ name }) => name);
  } finally {
    folder.remove();
  }
}

test('Files of all tools are found, and those that undo are left out', async () => {
  const files = [
    '1_a.up.sql',
    '1_a.down.sql',
    'U1__a.sql',
    '2_b/migration.sql',
    'meta/_journal.json',
    'migration_lock.toml',
  ];
  expect(await readAll(Object.fromEntries(files.map((name) => [name, 'SELECT 1'])))).toEqual([
    '1_a.up.sql',
    '2_b/migration.sql',
  ]);
});

test.each<[Files, string]>([
  [{ 'a.txt': '' }, 'There is no migration in'],
  [{ 'V1__a.sql': '', 'V01__b.sql': '' }, 'V1__a.sql and V01__b.sql have the same version.'],
  [{ 'R__view.sql': '' }, 'R__view.sql is a repeatable migration'],
  [{ '1.sql': 'SELECT 1;\n-- +goose Down\nDROP TABLE t;' }, '1.sql: has a part that undoes it.'],
  [{ '1.sql': '-- migrate:up\nSELECT 1;\n-- migrate:down\nSELECT 2' }, '1.sql: has a part that undoes it.'],
])('A folder with %o is refused', async (files, message) => {
  const error = await rejectionOf(readAll(files));
  expect(error).toMatchObject({ code: 'HG_DSQL_MIGRATION', reason: 'files' });
  expect(error.message).toContain(message);
});
