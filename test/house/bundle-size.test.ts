// What a bundle of a program that uses `Pool` and nothing else has of Headgate, and of pg.
import { join } from 'node:path';
import { type BuildResult, build } from 'esbuild';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

type Bundle = BuildResult<{ metafile: true; write: false }>;

/** Minified. */
function bundleOfPool(external: string[]): Promise<Bundle> {
  return build({
    stdin: { contents: "export { Pool } from './dist/index.js';", resolveDir: root },
    absWorkingDir: root,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    external,
    metafile: true,
    write: false,
  });
}

function sizeOf({ outputFiles }: Bundle): number {
  return outputFiles[0]?.contents.length ?? Number.POSITIVE_INFINITY;
}

test('Pool alone brings no more of the package than it needs, and stays below 119 kB minified', async () => {
  const bundle = await bundleOfPool(['pg']);
  const parts = Object.values(bundle.metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs));
  const rooms = parts
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([file]) => file.split('/')[1]);
  expect([...new Set(rooms)].sort()).toEqual(['core', 'kernel', 'pg', 'runtime', 'sql']);
  expect(sizeOf(bundle)).toBeLessThan(119_000);
});

test('Pool with pg stays below 206 kB minified', async () => {
  expect(sizeOf(await bundleOfPool(['pg-native']))).toBeLessThan(206_000);
});
