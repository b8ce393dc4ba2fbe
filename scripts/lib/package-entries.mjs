// @ts-check
// The entries that package.json exports, by the names of their files.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * `index` for `headgate`, `engine` for `headgate/engine`, and so on.
 * @param {string} root the folder of package.json
 * @returns {string[]}
 */
export function entryNames(root) {
  /** @type {{ exports: Record<string, unknown> }} */
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return Object.keys(manifest.exports)
    .filter((path) => !path.endsWith('.json'))
    .map((path) => (path === '.' ? 'index' : path.replace('./', '')));
}
