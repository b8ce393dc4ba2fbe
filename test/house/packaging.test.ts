// What is in the package: the build of every entry, in all its forms, and the pages that belong with it.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

type Target = string | { readonly [condition: string]: Target };
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
  'exports' | 'main' | 'module' | 'types' | 'typesVersions',
  Target
>;

test('the package holds the build and the pages that belong with it, and nothing else', () => {
  const { stdout, status } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  expect(status).toBe(0);
  const [pack] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const files = pack.files.map(({ path }) => path);
  const outside = files.filter(
    (path) =>
      !/^dist\/(?:.+\.js|[\w-]+\.d\.ts|cjs\/[\w-]+\.(?:cjs|mjs|d\.cts)|types\/.+\.d\.ts)$|^scenarios\/[\w-]+\.yaml$/.test(
        path,
      ),
  );
  expect(outside.sort()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'dist/types/package.json',
    'package.json',
  ]);
  const { exports, main, module, types, typesVersions } = manifest;
  for (const target of [exports, main, module, types, typesVersions]) {
    for (const path of pathsIn(target)) expect(files).toContain(path.replace('./', ''));
  }
});

function pathsIn(target: Target): string[] {
  return typeof target === 'string' ? [target] : Object.values(target).flatMap(pathsIn);
}
