// @ts-check
// `npm test`: every check and every test, each failure shown, one line of numbers at the end.
// `npm test -- FILTERS` builds and gives the filters to vitest, no more; `npm run check` runs all but vitest.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  build,
  checkNode,
  command,
  ensureDependencies,
  isBuilt,
  root,
  runQuietly,
} from './lib/bootstrap.mjs';

/** @typedef {{ passed: number, failed: number, skipped: number }} Count */
/** @typedef {{ good: boolean, output: string }} Outcome */

/** @type {[name: string, run: () => Outcome][]} */
const checks = [
  ['build', build],
  ['types of the page', () => runQuietly('node_modules/typescript/bin/tsc', '-p', 'web/tsconfig.json')],
  [
    'types of tests, scripts, examples',
    () => runQuietly('node_modules/typescript/bin/tsc', '-p', 'tsconfig.test.json'),
  ],
  [
    'lint and format',
    () =>
      runQuietly('node_modules/@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', '--colors=off', '.'),
  ],
  ['architecture', () => runQuietly('scripts/check-architecture.mjs')],
  ['nothing unused', () => runQuietly('node_modules/knip/bin/knip.js', '--no-progress')],
  ['package', () => runQuietly('node_modules/publint/src/cli.js', '--strict')],
  ['public API as reported', () => runQuietly('scripts/api-report.mjs')],
];

await command(() => {
  const args = process.argv.slice(2);
  const onlyChecks = args.includes('--checks');
  const onlyTests = args.length > 0 && !onlyChecks;
  const total = { passed: 0, failed: 0, skipped: 0 };
  /** @type {string[]} */
  const failures = [];

  checkNode();
  ensureDependencies();
  // The tests of the package need a build, also when nothing but tests is asked for.
  const wanted = onlyTests ? checks.slice(0, isBuilt() ? 0 : 1) : checks;
  for (const [name, run] of wanted) {
    const good = runCheck(name, run);
    total[good ? 'passed' : 'failed'] += 1;
    if (!good) failures.push(name);
  }
  if (!onlyChecks) {
    const start = performance.now();
    console.log('== tests');
    const tests = runVitest(args);
    console.log(`== tests: ${verdict(tests.failed === 0, start)}`);
    total.passed += tests.passed;
    total.failed += tests.failed;
    total.skipped += tests.skipped;
    if (tests.failed > 0) failures.push('tests');
  }

  if (failures.length > 0) console.log(`failed: ${failures.join(', ')}`);
  process.exitCode = total.failed === 0 ? 0 : 1;
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : '';
  console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
});

/**
 * One line for each check; what it printed follows only when it failed.
 * @param {string} name
 * @param {() => Outcome} run
 */
function runCheck(name, run) {
  const start = performance.now();
  process.stdout.write(`== ${name}: `);
  const { good, output } = run();
  console.log(verdict(good, start));
  if (!good) console.log(output);
  return good;
}

/**
 * @param {boolean} good
 * @param {number} start
 */
function verdict(good, start) {
  return `${good ? 'ok' : 'FAILED'} in ${((performance.now() - start) / 1000).toFixed(1)} s`;
}

/**
 * @param {string[]} args
 * @returns {Count}
 */
function runVitest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-test-'));
  const file = join(folder, 'result.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
    const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...reporters, ...args];
    const { status } = spawnSync(process.execPath, vitest, { cwd: root, stdio: 'inherit' });
    const count = existsSync(file)
      ? countTests(JSON.parse(readFileSync(file, 'utf8')))
      : { passed: 0, failed: 0, skipped: 0 };
    // A run can fail without a failed test: no test found, an error outside of any test, a crash.
    if (status !== 0 && count.failed === 0) count.failed = 1;
    return count;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {VitestResult} result
 * @returns {Count}
 */
function countTests(result) {
  // A file that could not be loaded has no failed test of its own, and counts as one.
  const broken = result.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  );
  return {
    passed: result.numPassedTests,
    failed: result.numFailedTests + broken.length,
    skipped: result.numPendingTests + result.numTodoTests,
  };
}
/**
 * @typedef {object} VitestResult
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {number} numPendingTests
 * @property {number} numTodoTests
 * @property {{ status: string, assertionResults: unknown[] }[]} testResults
 */
