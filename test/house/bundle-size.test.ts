// What a bundle of a program that uses `Pool` and nothing else has of Headgate, and of pg.
import { expect, test } from 'vitest';
import { bundlePool, optionalParts, sizeOf } from '../../scripts/lib/pool-bundle.mjs';

test('Pool alone brings no more of the package than it needs, and stays below 117 kB minified', async () => {
  const bundle = await bundlePool({ external: ['pg'] });
  const parts = Object.values(bundle.metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs));
  const rooms = parts
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([file]) => file.split('/')[1]);
  expect([...new Set(rooms)].sort()).toEqual(['core', 'kernel', 'pg', 'runtime', 'sql']);
  expect(sizeOf(bundle)).toBeLessThan(117_000);
});

test('Pool with pg stays below 204 kB minified', async () => {
  expect(sizeOf(await bundlePool({ external: ['pg-native'] }))).toBeLessThan(204_000);
});

test('Pool with pg would be above 120 kB without every part that a program can do without', async () => {
  const without = Object.values(optionalParts).flat();
  const files = Object.keys((await bundlePool({ external: ['pg'] })).metafile.inputs);
  for (const beginning of without)
    expect(files, beginning).toContainEqual(expect.stringMatching(`^dist/${beginning}`));
  expect(sizeOf(await bundlePool({ external: ['pg-native'], without }))).toBeGreaterThan(120_000);
});
