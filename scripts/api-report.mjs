// @ts-check
// Compares the public API with the reports under docs/api/, so that no change of it goes unseen. `--write` renews them.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { entryNames } from './lib/package-entries.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const reports = join(root, 'docs', 'api');
const write = process.argv.includes('--write');

const entries = entryNames(root).map((name) => `dist/types/${name}.d.ts`);
const scratch = mkdtempSync(join(tmpdir(), 'headgate-api-'));
/** @type {CompilerState | undefined} */
let compilerState;
/** @type {string[]} */
const problems = [];
try {
  for (const types of entries) checkEntry(types);
  for (const file of existsSync(reports) ? readdirSync(reports) : []) {
    if (entries.some((types) => reportName(types) === file)) continue;
    if (write) rmSync(join(reports, file));
    else problems.push(`docs/api/${file} is about an entry point that package.json does not export`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) {
  if (!write)
    console.error('When the change is meant, renew the reports with "npm run api" and look at their diff.');
  process.exitCode = 1;
}

/** @param {string} types */
function checkEntry(types) {
  const declarations = join(root, types);
  if (!existsSync(declarations)) {
    problems.push(`package.json exports ${types}, which the build does not make`);
    return;
  }
  const name = reportName(types);
  const fresh = makeReport(declarations, name);
  const file = join(reports, name);
  const known = existsSync(file) ? readFileSync(file, 'utf8') : '';
  if (fresh === known) return;
  if (write) {
    mkdirSync(reports, { recursive: true });
    writeFileSync(file, fresh);
    console.log(`wrote docs/api/${name}`);
  } else {
    problems.push(`docs/api/${name} differs from the build:\n${describeDifference(known, fresh)}`);
  }
}

/** @param {string} types */
function reportName(types) {
  return `${basename(types, '.d.ts')}.api.md`;
}

/**
 * @param {string} declarations
 * @param {string} name
 */
function makeReport(declarations, name) {
  const config = configure(declarations, name);
  /** @type {Set<string>} */
  const hidden = new Set();
  // Reading the declarations takes longest, and is the same for all entries.
  compilerState ??= CompilerState.create(config, {
    additionalEntryPoints: entries.map((types) => join(root, types)),
  });
  const result = Extractor.invoke(config, {
    compilerState,
    localBuild: true,
    messageCallback(message) {
      const symbol = /The symbol "(.+?)" needs to be exported/.exec(message.text)?.[1];
      if (message.messageId === 'ae-forgotten-export' && symbol !== undefined) hidden.add(symbol);
      message.handled = message.logLevel !== 'error' && message.category !== 'Compiler';
    },
  });
  if (result.errorCount > 0) problems.push(`API Extractor found ${result.errorCount} errors in ${name}`);
  const report = readFileSync(join(scratch, name), 'utf8');
  if (hidden.size === 0) return report;
  return `${report}\nTypes that the above mentions and that can't be imported: ${[...hidden].sort().join(', ')}.\n`;
}

/**
 * @param {string} declarations
 * @param {string} name
 */
function configure(declarations, name) {
  const quiet = { logLevel: ExtractorLogLevel.None, addToApiReportFile: false };
  const shown = { logLevel: ExtractorLogLevel.Warning, addToApiReportFile: false };
  return ExtractorConfig.prepare({
    configObjectFullPath: join(root, 'api-extractor.json'),
    packageJsonFullPath: join(root, 'package.json'),
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: declarations,
      compiler: { tsconfigFilePath: join(root, 'tsconfig.json') },
      newlineKind: 'lf',
      apiReport: {
        enabled: true,
        includeForgottenExports: true,
        reportFileName: name,
        reportFolder: scratch,
        reportTempFolder: join(scratch, 'temp'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: { default: shown },
        // Release tags and TSDoc's rules for comments are not this project's.
        extractorMessageReporting: { default: quiet },
        tsdocMessageReporting: { default: quiet },
      },
    },
  });
}

/**
 * The lines that only one of the two has, which is what a reader of the failure needs; git shows the rest.
 * @param {string} known
 * @param {string} fresh
 */
function describeDifference(known, fresh) {
  const [before, after] = [known.split('\n'), fresh.split('\n')];
  const lines = [
    ...before.filter((line) => !after.includes(line)).map((line) => `  - ${line}`),
    ...after.filter((line) => !before.includes(line)).map((line) => `  + ${line}`),
  ];
  const few = lines.slice(0, 40);
  if (lines.length > few.length) few.push(`  ... and ${lines.length - few.length} lines more`);
  return few.length > 0 ? few.join('\n') : '  the same lines in another order';
}
