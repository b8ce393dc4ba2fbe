// What a bundle of a program that uses `Pool` and nothing else has of Headgate.
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
/** Minified, without pg, which takes 86 kB beside it. */
const allowed = 120_000;

test('Pool alone brings no more of the package than it needs, and stays below 120 kB minified', async () => {
  const { outputFiles, metafile } = await build({
    stdin: { contents: "export { Pool } from './dist/index.js';", resolveDir: root },
    absWorkingDir: root,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    external: ['pg'],
    metafile: true,
    write: false,
  });
  const parts = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs));
  const rooms = parts
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([file]) => file.split('/')[1]);
  expect([...new Set(rooms)].sort()).toEqual(['core', 'kernel', 'pg', 'runtime', 'sql']);
  const bytes = outputFiles[0]?.contents.length ?? Number.POSITIVE_INFINITY;
  expect(bytes).toBeLessThan(allowed);
});
