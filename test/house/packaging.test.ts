// What a user's program gets from the published package, however it asks for it.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { types: string; default: string }>;
};
const names = Object.keys(manifest.exports).map((path) => path.replace(/^\./, 'headgate'));
const modules = names.filter((name) => !name.endsWith('.json'));

describe('a program with headgate among its packages', () => {
  let project: string;
  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), 'headgate-packaging-'));
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(root, join(project, 'node_modules', 'headgate'), 'junction');
  });
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  /** Runs a program there and answers what it printed as JSON; anything on standard error fails the test. */
  function run(inputType: 'commonjs' | 'module', program: string): unknown {
    const { NODE_OPTIONS: _options, ...env } = process.env;
    const result = spawnSync(process.execPath, [`--input-type=${inputType}`, '-e', program], {
      cwd: project,
      env: { ...env, FORCE_COLOR: '0' },
      encoding: 'utf8',
    });
    expect(result.stderr).toBe('');
    expect(result.status).toBe(0);
    return JSON.parse(result.stdout);
  }

  test.each(modules)('can import %s and require it, and gets the same without a warning', (name) => {
    const print = (loaded: string) => `console.log(JSON.stringify(Object.keys(${loaded}).sort()));`;
    const imported = run('module', `const loaded = await import('${name}'); ${print('loaded')}`) as string[];
    expect(imported.length).toBeGreaterThan(0);
    if (imported.includes('module.exports')) {
      expect(run('commonjs', `console.log(JSON.stringify(typeof require('${name}')))`)).toBe('function');
    } else {
      const required = run('commonjs', print(`require('${name}')`)) as string[];
      expect(required.filter((key) => key !== '__esModule')).toEqual(imported);
    }
  });

  test('gets one and the same class from import and from require', () => {
    const program = `import { createRequire } from 'node:module';
      import { Pool } from 'headgate';
      import PgPool from 'headgate/pg-pool';
      const require = createRequire(process.cwd() + '/');
      console.log(JSON.stringify([require('headgate').Pool === Pool, require('headgate/pg-pool') === PgPool]));`;
    expect(run('module', program)).toEqual([true, true]);
  });

  test('can read the package.json', () => {
    expect(run('commonjs', "console.log(JSON.stringify(require('headgate/package.json').name))")).toBe(
      'headgate',
    );
  });

  test('can not reach past what is exported', () => {
    const program = `import('headgate/dist/index.js').catch((error) => console.log(JSON.stringify(error.code)));`;
    expect(run('module', program)).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });
});

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
      !/^dist\/.+\.(?:js|d\.ts)(?:\.map)?$|^dist\/page\/(?:index\.html|icon\.svg|assets\/[\w-]+\.css)$|^scenarios\/[\w-]+\.yaml$/.test(
        path,
      ),
  );
  expect(outside.sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']);
  for (const entry of Object.values(manifest.exports)) {
    for (const path of typeof entry === 'string' ? [entry] : [entry.types, entry.default]) {
      expect(files).toContain(path.replace('./', ''));
    }
  }
});
