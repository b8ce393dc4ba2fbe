// @ts-check
// Builds the live page: web/ into dist/page/, from the packages in node_modules alone. `npm run build` runs it.
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('../web', import.meta.url));

await build({
  root,
  configFile: false,
  // The page may be served below any path.
  base: './',
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: fileURLToPath(new URL('../dist/page', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    // All that there is fits into one file, and the page forbids scripts and styles in its text.
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
});
