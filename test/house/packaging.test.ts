// What is in the package: the build of every entry, in all its forms, and the pages that belong with it.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

type Target = string | { readonly [condition: string]: Target };
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
  'exports' | 'main' | 'module' | 'types' | 'typesVersions',
  Target
>;

interface Pack {
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

let pack: Pack;
let files: string[];
beforeAll(() => {
  const { stdout, status } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  expect(status).toBe(0);
  // A list in older versions of npm, an object by names in newer ones.
  pack = Object.values(JSON.parse(stdout) as Record<string, Pack>)[0] as Pack;
  files = pack.files.map(({ path }) => path);
});

test('the package holds the build, the documentation and the examples, and nothing else', () => {
  const known =
    /^dist\/(?:.+\.js|[\w-]+\.d\.ts|cjs\/[\w-]+\.(?:cjs|mjs|d\.cts)|types\/.+\.d\.ts|page\/(?:index\.html|icon\.svg|assets\/[\w-]+\.css)|page(?:-report)?\/licenses\.md)$|^(?:docs|examples)\/|^scenarios\/[\w-]+\.yaml$/;
  const others = ['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'SECURITY.md'];
  expect(files.filter((path) => !known.test(path)).sort()).toEqual(
    [...others, 'bench/README.md', 'dist/types/package.json', 'package.json'].sort(),
  );
});

test('the package holds every file that package.json names', () => {
  const { exports, main, module, types, typesVersions } = manifest;
  for (const target of [exports, main, module, types, typesVersions]) {
    for (const path of pathsIn(target)) expect(files).toContain(path.replace('./', ''));
  }
});

test('compilers that do not read exports find the types of every entry', () => {
  const subpaths = Object.keys(manifest.exports).filter((path) => path !== '.' && !path.endsWith('.json'));
  const { '*': types } = manifest.typesVersions as { readonly '*': object };
  expect(types).toEqual(
    Object.fromEntries(subpaths.map((path) => [path.slice(2), [`./dist/cjs/${path.slice(2)}.d.cts`]])),
  );
});

test('links of its pages lead to files of the package, or to the tests and the source in the repository', () => {
  const pages = files.filter((path) => path.endsWith('.md'));
  const broken = pages.flatMap((page) =>
    Array.from(
      readFileSync(join(root, page), 'utf8').matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g),
      ([, link = '']) => link,
    )
      .filter((link) => !/^[a-z]+:/.test(link))
      .map((link) => posix.join(posix.dirname(page), link).replace(/\/$/, ''))
      .filter((path) => !files.includes(path) && !files.some((file) => file.startsWith(`${path}/`)))
      .filter((path) => !/^(?:test|src|bench|scripts)\b/.test(path))
      .map((path) => `${page}: ${path}`),
  );
  expect(broken).toEqual([]);
  expect(files).toEqual(
    expect.arrayContaining(['docs/prometheus-alerts.yml', 'examples/systemd/headgate.service']),
  );
});

test('the package has no source maps, says nothing of any, and is of a sensible size', () => {
  expect(files.filter((path) => path.endsWith('.map'))).toEqual([]);
  const mapped = files.filter(
    (path) => /\.[cm]?js$/.test(path) && readFileSync(join(root, path), 'utf8').includes('sourceMappingURL='),
  );
  expect(mapped).toEqual([]);
  expect(pack.size).toBeLessThan(2_500_000);
  expect(pack.unpackedSize).toBeLessThan(8_000_000);
});

function pathsIn(target: Target): string[] {
  return typeof target === 'string' ? [target] : Object.values(target).flatMap(pathsIn);
}
