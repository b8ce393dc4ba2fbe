// @ts-check
// Makes of the ES modules in dist/, for every entry of package.json: CommonJS in dist/cjs/, and one set of declarations in dist/types/.
//
// The declarations count as CommonJS, which every TypeScript program may import, and those of both kinds of entry only pass them on: so
// a class is one type, however it was imported.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { entryNames } from './lib/package-entries.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const cjs = join(dist, 'cjs');
const types = join(dist, 'types');

/** An ES module's export of this name is what `require()` answers in place of an object of exports. */
const moduleExports = 'module.exports';

for (const folder of [cjs, types]) rmSync(folder, { recursive: true, force: true });
await bundle();
for (const name of entryNames(root)) {
  await wrapForImport(name);
  declare(name);
}
writeFileSync(join(types, 'package.json'), '{ "type": "commonjs" }\n');

/** Entries share chunks, so that each class and each registry exists once. */
async function bundle() {
  const build = await rolldown({
    input: Object.fromEntries(entryNames(root).map((name) => [name, join(dist, `${name}.js`)])),
    platform: 'node',
    // src/runtime/own-location.ts knows what to do without it.
    transform: { define: { 'import.meta.url': 'undefined' } },
    // Everything but the package's own files.
    external: (id) => !id.startsWith('.') && !isAbsolute(id),
    onLog(level, { message }) {
      if (level === 'warn') throw new Error(message);
    },
  });
  await build.write({
    dir: cjs,
    format: 'cjs',
    exports: 'named',
    entryFileNames: '[name].cjs',
    // Beside the entries: src/runtime/own-location.ts counts folders.
    chunkFileNames: 'shared-[name].cjs',
    // Functions and classes that had to be renamed: their names reach messages and logs.
    keepNames: true,
  });
  await build.close();
}

/**
 * An ES module over the CommonJS one, for what imports and requires in one program, and can't require ES modules.
 * @param {string} name
 */
async function wrapForImport(name) {
  const exported = Object.keys(await import(pathToFileURL(join(dist, `${name}.js`)).href));
  const file = join(cjs, `${name}.cjs`);
  const named = exported.filter((key) => key !== 'default' && key !== moduleExports);
  const lines = [`import exported from './${name}.cjs';`];
  if (exported.includes(moduleExports)) {
    writeFileSync(file, `${readFileSync(file, 'utf8')}module.exports = exports['${moduleExports}'];\n`);
    // Bundlers take the ES modules for both, and know nothing of such an export.
    const [what, where] = defaultOf(readFileSync(join(dist, `${name}.js`), 'utf8'));
    writeFileSync(join(cjs, `${name}-module.cjs`), `module.exports = require('../${where}').${what};\n`);
    const all = ['default', moduleExports, ...named].map((key) => `exported as '${key}'`);
    lines.push(`export { ${all.join(', ')} };`);
  } else lines.push(`export const { ${named.join(', ')} } = exported;`);
  writeFileSync(join(cjs, `${name}.mjs`), `${lines.join('\n')}\n`);
}

/** @param {string} name */
function declare(name) {
  const entry = join(dist, `${name}.d.ts`);
  copyDeclarations(entry);
  const text = readFileSync(entry, 'utf8');
  const passOn = (/** @type {string} */ from) => `export * from '${from}/types/${name}.js';\n`;
  if (!text.includes(`'${moduleExports}'`)) {
    writeFileSync(entry, passOn('.'));
    writeFileSync(join(cjs, `${name}.d.cts`), passOn('..'));
    return;
  }
  const [what, where] = defaultOf(text);
  writeFileSync(entry, text.replace(`./${where}`, `./types/${where}`));
  writeFileSync(
    join(cjs, `${name}.d.cts`),
    `import { ${what} } from '../types/${where}';\nexport = ${what};\n`,
  );
}

/**
 * The name of what an entry exports by default, and the file that it comes from.
 * @param {string} text
 * @returns {[what: string, where: string]}
 */
function defaultOf(text) {
  const [, what, where] = /\b(\w+) as default\b.*from '\.\/(.+?)'/.exec(text) ?? [];
  if (what === undefined || where === undefined) throw new Error(`no default among the exports of ${text}`);
  return [what, where];
}

/**
 * Copies declarations with all that they import.
 * @param {string} file
 */
function copyDeclarations(file) {
  const copy = join(types, relative(dist, file));
  if (existsSync(copy)) return;
  mkdirSync(dirname(copy), { recursive: true });
  cpSync(file, copy);
  for (const match of readFileSync(file, 'utf8').matchAll(
    // The compiler writes imports that it infers with double quotes.
    /\b(?:from |import\()["'](\.[^"']+)["']/g,
  )) {
    const specifier = match[1] ?? '';
    copyDeclarations(resolve(dirname(file), specifier.replace(/\.js$/, '.d.ts')));
  }
}
