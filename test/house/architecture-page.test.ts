// docs/architecture.md names files and functions of the source: each of them exists, where the page says.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts'));

/** Text from this heading to the next one. */
function section(heading: string): string {
  const [, text] = page.split(`\n${heading}\n`);
  if (text === undefined) throw new Error(`docs/architecture.md has no heading ${heading}`);
  return text.split(/^#{2,3} /m, 1)[0] as string;
}

function quotedIn(text: string, pattern: RegExp): string[] {
  const spans = Array.from(text.matchAll(/`([^`\n]+)`/g), ([, span = '']) => span);
  return spans.filter((span) => pattern.test(span));
}

/** Files of that path below `src/`, or below a folder of it. */
function filesNamed(name: string): string[] {
  return files.filter((file) => file === name || file.endsWith(`/${name}`));
}

test('docs/architecture.md names no source file that does not exist', () => {
  const names = quotedIn(page, /^[\w/.-]+\.ts$/);
  const missing = names.filter((name) => filesNamed(name).length === 0 && !existsSync(join(root, name)));
  expect(names.length).toBeGreaterThan(80);
  expect(missing).toEqual([]);
});

test('docs/architecture.md lists the parts of the engine by names that they have in core/', () => {
  const rows = section('## The engine')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  const parts = rows.flatMap((row) => quotedIn(row.split('|')[1] as string, /./));
  expect(parts.length).toBeGreaterThan(20);
  expect(parts.filter((part) => !files.includes(`core/${part}.ts`))).toEqual([]);
});

const steps = section('### `select 1` from socket to socket').match(/^\d+\. .*(?:\n {3}.*)*/gm) ?? [];

test('the way of select 1 in docs/architecture.md: The way of select 1 has fewer than ten steps', () => {
  expect(steps.length).toBeGreaterThan(4);
  expect(steps.length).toBeLessThan(10);
});

test.each(steps.map((step) => [step.split('\n')[0], step] as const))(
  'the way of select 1 in docs/architecture.md %s',
  (_name, step) => {
    const named = quotedIn(step, /\.ts$/).flatMap((name) => filesNamed(name));
    const code = named.map((file) => readFileSync(join(root, 'src', file), 'utf8')).join('\n');
    const functions = quotedIn(step, /^#?\w+\(\)$/);
    expect(named.length, 'a step names a file').toBeGreaterThan(0);
    expect(functions.length, 'a step names a function').toBeGreaterThan(0);
    const missing = functions.filter((name) => {
      const own = name.replace('()', '');
      return !new RegExp(`^ *(?:(?:export|async|function) )*${own}(?:<.+>)?\\(.*[{,(]$`, 'm').test(code);
    });
    expect(missing, `in ${named.map((file) => basename(file)).join(', ')}`).toEqual([]);
  },
);
