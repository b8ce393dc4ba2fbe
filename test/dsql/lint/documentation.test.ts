// The table of docs/dsql-lint.md is that of the code. `vitest --update` writes it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lintRules } from '../../../src/dsql-lint.js';

const path = join(import.meta.dirname, '../../../docs/dsql-lint.md');
const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('*', '\\*');

const table = [
  '| rule | severity | reason | what to do | fix | until |',
  `|${'---|'.repeat(6)}`,
  ...lintRules.map(
    ({ id, severity, reason, advice, fix = 'by hand', until = '' }) =>
      `| \`${id}\` | ${severity} | ${cell(reason)} | ${cell(advice)} | ${fix} | ${until} |`,
  ),
].join('\n');

test('The documentation of lint has the rules of the code', async () => {
  const page = readFileSync(path, 'utf8');
  const start = '<!-- generated: rules -->\n';
  const from = page.indexOf(start) + start.length;
  const to = page.indexOf('<!-- end -->', from);
  expect(from).toBeGreaterThan(start.length);
  await expect(`${page.slice(0, from)}\n${table}\n\n${page.slice(to)}`).toMatchFileSnapshot(path);
});

test('Ids of rules are in kebab-case, and each rule has texts and a page', () => {
  for (const { id, reason, advice, url } of lintRules) {
    expect(id).toMatch(/^[a-z]+(?:-[a-z]+)*$/);
    expect(reason).toMatch(/\.$/);
    expect(advice).toMatch(/[.)]$|\w$/);
    expect(url).toMatch(/^https:\/\//);
  }
});
