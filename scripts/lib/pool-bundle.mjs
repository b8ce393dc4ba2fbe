// @ts-check
// The bundle of a program that uses `Pool` and nothing else, minified, after a build; whole, or without some parts.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What a program can do without, and the files that are there for nothing else. */
export const optionalParts = {
  'pipelining, and the readers of SQL that it needs': [
    ...['pg/pipeline', 'pg/lane', 'pg/shared-query', 'pg/session-guard', 'sql/'],
  ],
  'reservoir, warm-up, keeper, ends of lives': [
    ...['core/reservoir', 'core/first-fill', 'core/warmup', 'core/keeper', 'core/readiness'],
    ...['core/refiller', 'core/expiry-scanner', 'core/expiry-calendar', 'core/scan-situation'],
  ],
  'leases, rates, dialing again after a failure': [
    ...['core/lease-', 'core/excess', 'core/permit-waits', 'core/breaker', 'core/backoff'],
  ],
  'figures, causes of waiting, warnings, diagnostics channels': [
    ...['core/pool-figures', 'core/pool-view', 'core/wait-cause', 'core/stuck-watch', 'core/tally'],
    ...['runtime/channels', 'runtime/stuck-warning', 'runtime/summed-warning', 'pg/pool-listener'],
    ...['pg/pg-copies', 'pg/unknown-options', 'kernel/nearest'],
  ],
  'async context, tracers, fake timers': [
    ...['runtime/async-context', 'runtime/time-source', 'runtime/fake-functions'],
    ...['pg/held-client', 'pg/replaced-methods', 'pg/connect-calls'],
  ],
  'lost clients, open transactions, silent servers': [
    ...['pg/client-losses', 'pg/lasting-listeners', 'pg/open-transaction', 'pg/client-closing'],
  ],
};

/**
 * A bundle without some files: each is replaced by its bare names. It would not run; it is there to be measured.
 * @param {{ external: string[], without?: readonly string[] }} options
 */
export function bundlePool({ external, without = [] }) {
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
    plugins: [
      {
        name: 'bare names',
        setup({ onLoad }) {
          onLoad({ filter: /\.js$/ }, async ({ path }) => {
            const file = path.slice(join(root, 'dist/').length);
            if (!without.some((beginning) => file.startsWith(beginning))) return undefined;
            const text = await readFile(path, 'utf8');
            const names = text.matchAll(/^export (?:async )?(?:class|function|const|let) (\w+)/gm);
            return {
              loader: 'js',
              contents: Array.from(names, ([, name]) => `export let ${name};`).join('\n'),
            };
          });
        },
      },
    ],
  });
}

/** @param {import('esbuild').BuildResult<{ write: false }>} bundle */
export function sizeOf({ outputFiles }) {
  return outputFiles[0]?.contents.length ?? Number.POSITIVE_INFINITY;
}
