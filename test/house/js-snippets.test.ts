// What the documentation prints for plain JavaScript: it is valid on the oldest Node, programs that need no cluster run as printed, and nothing is installed under a name that another package may have.
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestDatabase, withDatabase } from '../support/postgres.js';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);

const pages = ['README.md', 'CONTRIBUTING.md', ...below('docs'), ...below('examples')];
const snippets = pages.flatMap((page) =>
  Array.from(read(page).matchAll(/^```js\n([\s\S]*?)^```$/gm), ([, code = ''], index) => ({
    name: `${page}, snippet ${index + 1}`,
    file: `${page.replace(/\W/g, '-')}-${index + 1}.mjs`,
    code,
  })),
);

describe('a JavaScript snippet', () => {
  let folder: string;
  let db: TestDatabase;
  beforeAll(async () => {
    db = await withDatabase();
    folder = mkdtempSync(join(tmpdir(), 'headgate-snippets-'));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules/headgate'), 'junction');
    // Pages name built files of the package from their own folder.
    symlinkSync(join(root, 'dist'), join(folder, 'dist'), 'junction');
    mkdirSync(join(folder, 'docs'));
    for (const { file, code } of snippets) writeFileSync(join(folder, 'docs', file), code);
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await db.drop();
  });

  test.each(snippets.map((snippet) => [snippet.name, snippet] as const))(
    '%s is JavaScript of the oldest Node that is supported',
    async (_name, { file }) => {
      await run(process.execPath, ['--check', join(folder, 'docs', file)]);
    },
  );

  const ofReadme = snippets.filter(({ name }) => name.startsWith('README.md'));
  const programs = snippets.filter(({ name }) => !isRunElsewhere(name));
  test.each(programs.map((snippet) => [snippet.name, snippet] as const))(
    '%s runs as it is printed, and ends by itself',
    async (_name, { file }) => {
      const env = { ...process.env, NODE_OPTIONS: '', DATABASE_URL: db.url };
      const { stderr } = await run(process.execPath, [join(folder, 'docs', file)], { env });
      expect(stderr).toBe('');
    },
  );

  test('a JavaScript snippet is the first snippet of the README', () => {
    expect(ofReadme.length).toBeGreaterThan(0);
    expect(read('README.md').indexOf('```')).toBe(read('README.md').indexOf('```js'));
  });
});

test.each([...pages, 'SECURITY.md', 'bench/README.md'])('%s says the language of every snippet', (page) => {
  expect(unmarkedFences(read(page))).toEqual([]);
});

test('a snippet without a language is found, and the end of a snippet is none', () => {
  expect(unmarkedFences('```js\na();\n```\n\n```\nsecret\n```\n')).toEqual([5]);
});

/** Tests of the stand-in run the snippets for Aurora DSQL, and `test/pg/override.test.ts` that of an example. */
function isRunElsewhere(name: string): boolean {
  return /^docs\/(?:dsql-local|try-on-dsql|dsql-transactions|drop-in)\.md/.test(name.replaceAll('\\', '/'));
}

/** Lines on which a snippet begins without its language. */
function unmarkedFences(text: string): number[] {
  const fences = text
    .split('\n')
    .flatMap((line, index) => (/^\s*```/.test(line) ? [[line, index + 1] as const] : []));
  return fences.flatMap(([line, number], index) =>
    index % 2 === 0 && /^\s*```\s*$/.test(line) ? [number] : [],
  );
}

test.each(pages)('%s does not have the package fetched from the registry, where it is not', (page) => {
  const fetching = read(page)
    .split('\n')
    .filter((line) =>
      /npm (?:install|i|add)(?: --?[\w-]+)* headgate\b|npx (?:-y |--yes )?headgate\b/.test(line),
    );
  expect(fetching).toEqual([]);
});

function below(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
    .map((name) => join(folder, name))
    .sort();
}

function read(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}
