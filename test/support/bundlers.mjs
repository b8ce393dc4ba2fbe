// @ts-check
// Bundles a program: `node bundlers.mjs BUNDLER FILE FOLDER` prints the files that came of it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const [bundler = '', file = '', folder = ''] = process.argv.slice(2);
const entry = resolve(file);
const out = resolve(folder);

/** Left out: packages that bring programs of their own, pg's other client, which is not used, and what only takes long. */
const external = ['pg-native', 'libpg-query', '@aws-sdk/client-dynamodb', '@aws-sdk/dsql-signer', 'yaml'];

/** @type {Record<string, () => Promise<string[]>>} */
const bundlers = { esbuild: withEsbuild, rollup: withRollup, webpack: withWebpack, ncc: withNcc };
const run = bundlers[bundler];
if (run === undefined) throw new Error(`no such bundler: ${bundler}`);
console.log(JSON.stringify(await run()));

async function withEsbuild() {
  const { build } = await import('esbuild');
  const common = /** @type {const} */ ({
    bundle: true,
    platform: 'node',
    logLevel: 'error',
  });
  const files = /** @type {const} */ ([join(out, 'bundle.cjs'), join(out, 'bundle.mjs')]);
  await build({ ...common, entryPoints: [entry], external, format: 'cjs', outfile: files[0] });
  // esbuild's own advice for packages that call require() in an ES module.
  const js =
    "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";
  await build({
    ...common,
    entryPoints: [entry],
    external,
    format: 'esm',
    outfile: files[1],
    banner: { js },
  });
  return [...files];
}

async function withRollup() {
  const { rollup } = await import('rollup');
  const { nodeResolve } = await import('@rollup/plugin-node-resolve');
  const commonjs = pluginOf(await import('@rollup/plugin-commonjs'));
  const json = pluginOf(await import('@rollup/plugin-json'));
  const plugins = [nodeResolve({ preferBuiltins: true }), commonjs(), json()];
  const build = await rollup({ input: entry, external, plugins, onwarn() {} });
  const files = [join(out, 'bundle.cjs'), join(out, 'bundle.mjs')];
  await build.write({ file: files[0], format: 'cjs', inlineDynamicImports: true });
  await build.write({ file: files[1], format: 'es', inlineDynamicImports: true });
  await build.close();
  return files;
}

/**
 * Their types say that the module itself is the function.
 * @param {unknown} module
 */
function pluginOf(module) {
  return /** @type {{ default: () => import('rollup').Plugin }} */ (module).default;
}

async function withWebpack() {
  const { default: webpack } = await import('webpack');
  const compiler = webpack({
    mode: 'none',
    target: 'node',
    entry,
    output: { path: out, filename: 'bundle.cjs' },
    externals: Object.fromEntries(external.map((name) => [name, `commonjs ${name}`])),
  });
  await new Promise((done, fail) =>
    compiler.run((error, stats) => {
      if (error) fail(error);
      else if (stats?.hasErrors()) fail(new Error(stats.toString({ all: false, errors: true })));
      else compiler.close(done);
    }),
  );
  return [join(out, 'bundle.cjs')];
}

async function withNcc() {
  // @ts-expect-error: it has no types.
  const { default: ncc } = await import('@vercel/ncc');
  const { code, assets } = await ncc(entry, { externals: external, quiet: true, cache: false });
  mkdirSync(out, { recursive: true });
  // An entry that is an ES module makes a bundle that is one.
  const target = join(out, 'bundle.mjs');
  writeFileSync(target, code);
  for (const name of Object.keys(assets)) writeFileSync(join(out, name), assets[name].source);
  return [target];
}
