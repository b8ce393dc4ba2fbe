// The table of classes in docs/dsql-transactions.md is that of the code. `vitest --update` writes it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { errorClasses } from '../../../src/dsql/classify/error-class.js';
import { errorRules } from '../../../src/dsql/classify/rules.js';

const path = join(import.meta.dirname, '../../../docs/dsql-transactions.md');

function table(): string {
  const rows = Object.entries(errorClasses).map(([name, { meaning, remedy }]) => {
    const shown = errorRules.filter((rule) => rule.class === name).map((rule) => sourceOf(rule, remedy));
    return `| \`${name}\` | ${meaning} | \`${remedy}\` | ${shown.join('; ') || 'all else'} |`;
  });
  return ['| class | meaning | remedy | errors |', '|---|---|---|---|', ...rows].join('\n');
}

function sourceOf(
  rule: { readonly shown: string; readonly remedy?: string; readonly conflict?: string },
  usual: string,
): string {
  const notes = [rule.conflict, rule.remedy === usual ? undefined : rule.remedy && `\`${rule.remedy}\``];
  const said = notes.filter((note) => note !== undefined).join(', ');
  return `${rule.shown.replaceAll('|', '\\|')}${said === '' ? '' : ` (${said})`}`;
}

test('The documentation of errors has the table of the code', async () => {
  const page = readFileSync(path, 'utf8');
  const start = '<!-- generated: classes -->\n';
  const from = page.indexOf(start) + start.length;
  const to = page.indexOf('<!-- end -->', from);
  expect(from).toBeGreaterThan(start.length);
  expect(to).toBeGreaterThanOrEqual(from);
  await expect(`${page.slice(0, from)}\n${table()}\n\n${page.slice(to)}`).toMatchFileSnapshot(path);
});
