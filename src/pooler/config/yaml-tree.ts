/** Reads YAML or JSON configuration files as plain data with places. */
import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { readPositionedYaml } from '../../runtime/positioned-yaml.js';
import type { Problems } from './config-problems.js';
import { type ConfigTree, type Mapping, Places } from './config-tree.js';
import { isMapping } from './kind.js';

const longestFile = 1_048_576;

/** Reads the file and adds problems. A relative `file` begins at `folder`. */
export function readYamlFile(file: string, folder: string, problems: Problems): ConfigTree {
  const absolute = resolve(folder, file);
  try {
    const { size } = statSync(absolute);
    if (size > longestFile)
      throw new Error(`it is ${size} bytes long, more than the ${longestFile} that are read`);
    return parseYaml(readFileSync(absolute, 'utf8'), file, dirname(absolute), problems);
  } catch (error) {
    problems.add('', `can't be read: ${(error as Error).message}`, { source: file });
    return parseYaml('', file, dirname(absolute), problems);
  }
}

/** JSON is YAML, too. `file` is its name in messages; relative paths in it begin at `folder`. */
export function parseYaml(text: string, file: string, folder: string, problems: Problems): ConfigTree {
  const places = new Places({ source: file });
  const yaml = readPositionedYaml(text, (path, position) => {
    // Values in a list have the place of the list.
    if (path.every((part) => typeof part === 'string')) places.note(path, { source: file, ...position });
  });
  for (const { message, ...position } of yaml.problems)
    problems.add('', message, { source: file, ...position });
  const { value } = yaml;
  if (value !== undefined && !isMapping(value))
    problems.add('', 'must be a mapping of sections to their settings', { source: file, line: 1, column: 1 });
  const data: Mapping = isMapping(value) ? value : {};
  return { data, folder, placeOf: (path) => places.of(path) };
}
