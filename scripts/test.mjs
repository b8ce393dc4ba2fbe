// @ts-check
// `npm test`: every check and every test, each failure shown, one line of numbers at the end.
// `npm test -- FILTERS` builds and gives the filters to vitest, no more; `npm run check` runs all but vitest.
// In a whole run, files with failed tests or errors run once more, one at a time: a machine that is busy with other things
// is told from a defect, and what passes only then is named as unsteady.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
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
/** @typedef {{ count: Count, failedFiles: string[], failures: string[], isWhole: boolean }} TestRun */
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
  ['package', () => runQuietly('scripts/check-package.mjs')],
  ['public API as reported', () => runQuietly('scripts/api-report.mjs')],
];

/** More failed files than this are no accident. */
const mostRunAgain = 12;

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
    const tests = onlyTests ? runVitest(args).count : runAllTests();
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

/** @returns {Count} */
function runAllTests() {
  const first = runVitest([]);
  const { failedFiles } = first;
  if (first.count.failed === 0 || !first.isWhole || failedFiles.length > mostRunAgain) return first.count;
  console.log(`== tests: ${failedFiles.length} files with failures run again, one at a time`);
  const again = runVitest(['--no-file-parallelism', ...failedFiles]);
  const repeated = new Set(again.failures);
  const unsteady = first.failures.filter((name) => !repeated.has(name));
  for (const name of unsteady) console.log(`UNSTEADY: failed beside others, passed alone: ${name}`);
  const { passed, skipped } = first.count;
  const recovered = unsteady.filter((name) => name.includes(' > ')).length;
  return { passed: passed + recovered, failed: again.count.failed, skipped };
}

/**
 * @param {string[]} args
 * @returns {TestRun}
 */
function runVitest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-test-'));
  const file = join(folder, 'result.json');
  try {
    const errorsFile = join(folder, 'unhandled-errors');
    const reporters = [
      ...['--reporter=default', '--reporter=json', `--outputFile.json=${file}`],
      `--reporter=${join(root, 'scripts/lib/unhandled-errors-reporter.mjs')}`,
    ];
    const env = { ...process.env, VITEST_UNHANDLED_ERRORS_FILE: errorsFile };
    const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...reporters, ...args];
    const { status } = spawnSync(process.execPath, vitest, { cwd: root, stdio: 'inherit', env });
    /** @type {(string | null)[]} */
    const errors = existsSync(errorsFile) ? JSON.parse(readFileSync(errorsFile, 'utf8')) : [null];
    const run = existsSync(file) ? readRun(JSON.parse(readFileSync(file, 'utf8'))) : emptyRun();
    // A run can fail without a failed test: an error outside of any test, no test found, a crash.
    run.count.failed += errors.length;
    if (status !== 0 && run.count.failed === 0) run.count.failed = 1;
    for (const path of errors) {
      if (path === null) run.isWhole = false;
      else addErrorOf(run, relative(root, path));
    }
    if (run.failures.length === 0) run.isWhole = false;
    return run;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @returns {TestRun} */
function emptyRun() {
  return { count: { passed: 0, failed: 0, skipped: 0 }, failedFiles: [], failures: [], isWhole: false };
}

/**
 * @param {TestRun} run
 * @param {string} file
 */
function addErrorOf(run, file) {
  if (!run.failedFiles.includes(file)) run.failedFiles.push(file);
  run.failures.push(`${file}, an error outside of its tests`);
}

/**
 * @param {VitestResult} result
 * @returns {TestRun}
 */
function readRun(result) {
  const failed = result.testResults.filter((file) => file.status === 'failed');
  // A file that could not be loaded has no failed test of its own, and counts as one.
  const broken = failed.filter((file) => file.assertionResults.length === 0);
  const failedTests = failed.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter((test) => test.status === 'failed')
      .map((test) => `${relative(root, name)} > ${test.fullName}`),
  );
  return {
    count: {
      passed: result.numPassedTests,
      failed: result.numFailedTests + broken.length,
      skipped: result.numPendingTests + result.numTodoTests,
    },
    failedFiles: failed.map((file) => relative(root, file.name)),
    failures: [...failedTests, ...broken.map((file) => relative(root, file.name))],
    isWhole: true,
  };
}
/**
 * @typedef {object} VitestResult
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {number} numPendingTests
 * @property {number} numTodoTests
 * @property {{ name: string, status: string, assertionResults: { status: string, fullName: string }[] }[]} testResults
 */
