// @ts-check
// Tells `npm test` how many errors came outside of any test, which vitest's JSON report does not say.
import { writeFileSync } from 'node:fs';

// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export.
export default class UnhandledErrorsReporter {
  /**
   * @param {unknown} _modules
   * @param {readonly unknown[]} errors
   */
  onTestRunEnd(_modules, errors) {
    const file = process.env['VITEST_UNHANDLED_ERRORS_FILE'];
    if (file !== undefined) writeFileSync(file, String(errors.length));
  }
}
