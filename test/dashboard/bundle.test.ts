// The page as it is built: small, and whole without a network.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('../../dist/page', import.meta.url));

const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name));

test('all files of the page together are less than 150 kB when packed', () => {
  const size = files.reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
  expect(size).toBeGreaterThan(20_000);
  expect(size).toBeLessThan(150_000);
});

test('the page loads nothing from elsewhere', () => {
  for (const file of files.filter((name) => /\.(?:html|css)$/.test(name)))
    expect(readFileSync(file, 'utf8')).not.toMatch(/(?:src|href)="(?:https?:)?\/\/|url\((?!data:)|@import/);
});
