// A link in the documentation leads somewhere: to a file of the repository, and to a heading where it names one.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** The pages in the root, and all below these folders. */
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...['docs', 'examples', 'bench'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
      .map((name) => join(folder, name)),
  ),
].sort();

test('the links are looked for in every page that a reader begins with', () => {
  expect(pages).toEqual(expect.arrayContaining(['README.md', 'CONTRIBUTING.md', join('docs', 'errors.md')]));
});

test.each(pages)('the links of %s lead to files and headings that exist', (page) => {
  const broken = linksOf(read(page)).filter((link) => !leadsSomewhere(page, link));
  expect(broken).toEqual([]);
});

test('the links are seen in text, tables and footnotes, and not in code', () => {
  const text = [
    'See [one](a.md), [`two`](b.md#part "title") and ![a picture](c.png).',
    '| [three](d.md) |',
    '[four]: e.md',
    'Not `[code](f.md)`.',
    '```ts',
    'const not = [code](g.md);',
    '```',
  ].join('\n');
  expect(linksOf(text)).toEqual(['a.md', 'b.md#part', 'c.png', 'd.md', 'e.md']);
});

test('the links name headings in the way that GitHub does', () => {
  const text =
    '# `Pool`: the drop-in for `pg.Pool`\n## What is, & what is not\n## Same\n```\n# no\n```\n## Same';
  expect(headingsOf(text)).toEqual(['pool-the-drop-in-for-pgpool', 'what-is--what-is-not', 'same', 'same-1']);
});

function linksOf(text: string): string[] {
  const prose = withoutFences(text).replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ' '));
  const inline = /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g;
  const reference = /^\[[^\]]+\]:\s+(\S+)/gm;
  return [...prose.matchAll(inline), ...prose.matchAll(reference)].map((match) => match[1] ?? '');
}

function leadsSomewhere(page: string, link: string): boolean {
  if (/^[a-z][a-z+.-]*:/.test(link)) return true; // Another site, which is not ours to keep.
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? join(root, page) : resolve(root, dirname(page), decodeURIComponent(path));
  if (relative(root, target).startsWith('..') || !existsSync(target)) return false;
  return anchor === undefined || headingsOf(readFileSync(target, 'utf8')).includes(anchor);
}

/** The anchors of a page's headings. */
function headingsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return [...withoutFences(text).matchAll(/^#{1,6}\s+(.+?)\s*$/gm)].map((match) => {
    const slug = (match[1] ?? '')
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  });
}

function withoutFences(text: string): string {
  return text.replace(/^(`{3,}|~{3,})[\s\S]*?^\1\s*$/gm, '');
}

function read(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}
