// @ts-check
// publint's rules for package.json and the files that it names, all but one.
import { fileURLToPath } from 'node:url';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

/**
 * Bundlers take CommonJS for `require('headgate/pg-pool')`, though they take ES modules for all else: an ES module can't answer
 * `require()` with a class in any bundler. It passes on the class of the ES modules, so there is one.
 */
const isMeant = (/** @type {import('publint').Message} */ { code, path }) =>
  code === 'EXPORTS_MODULE_SHOULD_BE_ESM' && path.join('/') === 'exports/./pg-pool/module/require';

const { messages, pkg } = await publint({
  pkgDir: fileURLToPath(new URL('..', import.meta.url)),
  strict: true,
});
const problems = messages.filter((message) => !isMeant(message));
for (const problem of problems) console.error(formatMessage(problem, pkg, { color: false }));
if (problems.length > 0) process.exitCode = 1;
