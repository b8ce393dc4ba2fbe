// @ts-check
// Builds the live page and the script of the simulator's report: web/ into dist/page/ and dist/page-report/, from the packages in
// node_modules alone. `npm run build` runs it.
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
    license: { fileName: 'licenses.md' },
    emptyOutDir: true,
    target: 'es2022',
    // All that there is fits into one file, and the page forbids scripts and styles in its text.
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
});

// One script without imports: it stands inside of each report.
await build({
  configFile: false,
  logLevel: 'warn',
  publicDir: false,
  build: {
    outDir: fileURLToPath(new URL('../dist/page-report', import.meta.url)),
    license: { fileName: 'licenses.md' },
    emptyOutDir: true,
    target: 'es2022',
    reportCompressedSize: false,
    lib: {
      entry: fileURLToPath(new URL('../web/src/report/main.ts', import.meta.url)),
      formats: ['iife'],
      name: 'report',
      fileName: () => 'report.js',
    },
    rolldownOptions: { output: { postBanner: '/* With uPlot (MIT), Copyright (c) 2022 Leon Sorokin */' } },
  },
});
