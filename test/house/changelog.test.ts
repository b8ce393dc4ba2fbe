/** Entries of CHANGELOG.md are short: one fact each, which a reader takes in at a glance. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const longest = 180;
const text = readFileSync(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8');

function entriesOf(page: string): string[] {
  return page
    .split(/\n(?=- |\n)/)
    .filter((part) => part.startsWith('- '))
    .map((entry) => entry.replace(/\s+/g, ' ').trim());
}

test(`entries of CHANGELOG.md have at most ${longest} characters`, () => {
  const entries = entriesOf(text);
  expect(entries.length).toBeGreaterThan(30);
  expect(entries.filter((entry) => entry.length > longest)).toEqual([]);
});

test('entries of CHANGELOG.md are counted with the lines that continue them', () => {
  expect(entriesOf('# A\n\n- one\n  more\n- two\n\n## B\n')).toEqual(['- one more', '- two']);
});
