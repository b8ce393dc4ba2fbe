// docs/pooler-configuration.md has every setting, as the table of options says it, and its examples are good.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { optionTable, type SectionName } from '../../../src/pooler/config/option-table.js';
import { load } from './config-files.js';
import { defaultRows, entryRows, iniEntryRows, iniRows, settingRows } from './documented-tables.js';

const page = readFileSync(join(import.meta.dirname, '../../../docs/pooler-configuration.md'), 'utf8');

/** The rows of the first table below a heading. */
function rowsBelow(heading: string): string[] {
  const [, below = ''] = page.split(`\n${heading}\n`);
  const table = /^\|.*\n\|[-|]+\n((?:\|.*\n)+)/m.exec(below)?.[1] ?? '';
  return table.trimEnd().split('\n');
}

test.each(Object.keys(optionTable) as SectionName[])(
  'docs/pooler-configuration.md has every setting of %s',
  (section) => {
    expect(rowsBelow(`### \`${section}\``)).toEqual(settingRows(section));
  },
);

test.each(['databases', 'users'] as const)(
  'docs/pooler-configuration.md has every setting of one of %s',
  (kind) => {
    expect(rowsBelow(`### \`${kind}\``)).toEqual(entryRows(kind));
  },
);

test('docs/pooler-configuration.md says what becomes of every option of pgbouncer.ini', () => {
  expect(rowsBelow('### Section [pgbouncer]')).toEqual(iniRows());
  expect(rowsBelow('### Sections [databases], [users] and [peers]')).toEqual(iniEntryRows());
});

test('docs/pooler-configuration.md has every default that is not that of PgBouncer, and why', () => {
  expect(rowsBelow('### Other defaults')).toEqual(defaultRows());
});

test('docs/pooler-configuration.md has an example that is good', () => {
  const [, yaml = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
  const environment = { APP_DB_PASSWORD: 'x' };
  const files = { 'userlist.txt': '', 'tls/server.key': '', 'tls/server.crt': '' };
  const { config, warnings } = load(yaml, { environment, readsFiles: false }, files);
  expect(warnings).toEqual([]);
  expect([...config.databases.keys()]).toEqual(['app', 'reports', '*']);
});
