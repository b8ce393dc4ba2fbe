/** The scenarios that come with the package, found by their names. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseWithPositions } from './scenario-file-positions.js';

export interface ShippedScenario {
  readonly name: string;
  readonly path: string;
  /** The first line of the comment at its top. */
  readonly summary: string;
}

/** Beside the folder of the compiled program, as beside that of the source. */
const folder = fileURLToPath(new URL('../../scenarios/', import.meta.url));

/** In the order of their names. */
export function shippedScenarios(): ShippedScenario[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => file.slice(0, -'.yaml'.length))
    .sort()
    .map((name) => {
      const path = `${folder}${name}.yaml`;
      const { comment } = parseWithPositions(readFileSync(path, 'utf8'));
      return { name, path, summary: comment.split('\n', 1)[0] ?? '' };
    });
}
