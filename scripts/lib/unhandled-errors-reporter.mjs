// @ts-check
// Tells `npm test` of errors that came outside of any test, which vitest's JSON report does not say: for each, the test
// file that ran when it came, or null.
import { writeFileSync } from 'node:fs';

// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export.
export default class UnhandledErrorsReporter {
  /**
   * @param {unknown} _modules
   * @param {readonly { VITEST_TEST_PATH?: string }[]} errors
   */
  onTestRunEnd(_modules, errors) {
    const file = process.env['VITEST_UNHANDLED_ERRORS_FILE'];
    const files = errors.map((error) => error.VITEST_TEST_PATH ?? null);
    if (file !== undefined) writeFileSync(file, JSON.stringify(files));
  }
}
