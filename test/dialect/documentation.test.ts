// The tables of docs/dsql-local-dialect.md are those of the code. `vitest --update` writes them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { refusedFunctions } from '../../src/dialect/expressions.js';
import { featureDays } from '../../src/dialect/profile.js';
import { settableParameters } from '../../src/dialect/settings.js';
import { refusals } from './refusals.js';

const path = join(import.meta.dirname, '../../docs/dsql-local-dialect.md');
/** Longer examples are of no use to a reader. */
const longestExample = 150;

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n');
}

const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``;

const list = (names: ReadonlySet<string>) => [...names].sort().map(code).join(', ');

const generated: Readonly<Record<string, string>> = {
  functions: list(refusedFunctions),
  parameters: list(settableParameters),
  profiles: table(
    ['from', 'DSQL has'],
    Object.entries(featureDays).map(([feature, day]) => [day, feature]),
  ),
  refusals: Object.entries(refusals)
    .map(([topic, refused]) => {
      const rows = refused
        .filter(([sql]) => sql.length <= longestExample)
        .map(([sql, state, message]) => [code(sql), state, code(message)]);
      return `### ${topic}\n\n${table(['statement', 'SQLSTATE', 'message'], rows)}`;
    })
    .join('\n\n'),
};

test('The documentation of the dialect has the tables of the code', async () => {
  let page = readFileSync(path, 'utf8');
  for (const [name, text] of Object.entries(generated)) {
    const start = `<!-- generated: ${name} -->\n`;
    const from = page.indexOf(start) + start.length;
    const to = page.indexOf('<!-- end -->', from);
    expect(from).toBeGreaterThan(start.length);
    page = `${page.slice(0, from)}\n${text}\n\n${page.slice(to)}`;
  }
  await expect(page).toMatchFileSnapshot(path);
});
