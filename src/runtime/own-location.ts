/**
 * Finds the folder of this package, and loads packages that must not be loaded before they are needed.
 *
 * The same source runs as an ES module, as CommonJS and inside bundles. CommonJS has `__filename`, ES modules have
 * `import.meta.url`, and some bundles have neither: packages that were left out of those are searched from the working
 * folder. From `src/runtime/`, `dist/runtime/` and `dist/cjs/`, two folders up is the package's folder.
 */
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ownUrl = import.meta.url as string | undefined;
const ownFile =
  typeof __filename === 'string' ? pathToFileURL(__filename).href : (ownUrl ?? pathToFileURL('./').href);

/** `require` as this package's own files have it. */
export const ownRequire = createRequire(ownFile);

/** The path of a file or folder of this package; its files are found only where the package is not part of a bundle. */
export function packagePath(path: string): string {
  return fileURLToPath(new URL(path, new URL('../../', ownFile)));
}
