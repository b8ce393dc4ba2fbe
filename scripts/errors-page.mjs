// @ts-check
// Writes docs/errors.md from the tables of errors: node scripts/errors-page.mjs --write. Without that it says whether the page is up to
// date; a test does so, too.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './lib/bootstrap.mjs';
import { errorsPage } from './lib/errors-page.mjs';

const file = join(root, 'docs/errors.md');
if (process.argv.includes('--write')) {
  writeFileSync(file, errorsPage());
  console.log('wrote docs/errors.md');
} else if (readFileSync(file, 'utf8') !== errorsPage()) {
  console.error('docs/errors.md is not up to date: node scripts/errors-page.mjs --write');
  process.exitCode = 1;
}
