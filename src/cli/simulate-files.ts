/** The files that `headgate simulate` reads and writes. */
import { closeSync, existsSync, openSync, statSync, writeSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { nearest } from '../kernel/nearest.js';
import type { Scenario } from '../simulator/scenario/scenario.js';
import { readScenarioFile } from '../simulator/scenario/scenario-file.js';
import { shippedScenarios } from '../simulator/scenario/shipped-scenarios.js';
import { withFile } from './file-errors.js';
import { UsageError } from './usage-error.js';

/** A file, or the name of a scenario that comes with the package. */
export function loadScenario(nameOrPath: string): Scenario {
  if (existsSync(nameOrPath) && statSync(nameOrPath).isFile()) return read(nameOrPath);
  const shipped = shippedScenarios();
  const found = shipped.find(({ name }) => name === nameOrPath);
  if (found !== undefined) return read(found.path);
  const looksLikeFile = /[/\\]|\.(?:ya?ml|json)$/i.test(nameOrPath);
  if (looksLikeFile) throw new UsageError(`there is no file ${nameOrPath}`);
  const guess = nearest(
    nameOrPath,
    shipped.map(({ name }) => name),
  );
  const meant = guess === undefined ? '' : ` Did you mean ${guess}?`;
  throw new UsageError(
    `there is no file ${nameOrPath}, and no scenario of that name.${meant} headgate simulate --list shows them.`,
  );
}

function read(path: string): Scenario {
  return withFile(`can't read ${path}`, () => readScenarioFile(path));
}

/** Found out before a long run rather than after it. */
export function checkOutput(option: string, path: string): void {
  const folder = dirname(resolve(path));
  if (/\.ya?ml$/i.test(path))
    throw new UsageError(`--${option} would overwrite ${path}, which looks like a scenario`);
  if (!existsSync(folder)) throw new UsageError(`--${option}: there is no folder ${folder}`);
  if (existsSync(path) && statSync(path).isDirectory())
    throw new UsageError(`--${option}: ${path} is a folder, not a file`);
}

export function writePieces(path: string, pieces: Iterable<string>): void {
  withFile(`can't write ${path}`, () => {
    const file = openSync(path, 'w');
    try {
      for (const piece of pieces) writeSync(file, piece);
    } finally {
      closeSync(file);
    }
  });
}
