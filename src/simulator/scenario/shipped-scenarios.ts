/** The scenarios that come with the package, found by their names. */
import { readdirSync, readFileSync } from 'node:fs';
import { packagePath } from '../../runtime/own-location.js';
import { parseWithPositions } from './scenario-file-positions.js';

export interface ShippedScenario {
  readonly name: string;
  readonly path: string;
  /** The first line of the comment at its top. */
  readonly summary: string;
}

const folder = packagePath('scenarios/');

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
