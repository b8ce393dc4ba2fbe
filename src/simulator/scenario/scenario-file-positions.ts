/** The text of a scenario file as plain data, with the line and column of everything in it. */
import { type Position, readPositionedYaml, type YamlPath } from '../../runtime/positioned-yaml.js';
import type { ScenarioProblem } from './scenario-reader-problems.js';

export interface PositionedData {
  readonly value: unknown;
  /** Problems that the parser itself found. */
  readonly problems: readonly ScenarioProblem[];
  /** The comment at the top, without its marks. */
  readonly comment: string;
  /** Where that is: the key of an entry, the first character of an item. What is missing is where it would be in. */
  positionOf(path: string): Position;
}

/** JSON is YAML, too. */
export function parseWithPositions(text: string): PositionedData {
  const positions = new Map<string, Position>();
  const { value, problems, comment, start } = readPositionedYaml(text, (path, position) => {
    const written = textOf(path);
    if (!positions.has(written)) positions.set(written, position);
  });
  return {
    value,
    problems: problems.map((problem) => ({ path: '', ...problem })),
    comment,
    positionOf(path) {
      let known = path;
      while (known !== '' && !positions.has(known)) known = parentOf(known);
      return positions.get(known) ?? start;
    },
  };
}

/** As problems have it: `services[0].pool`. */
function textOf(path: YamlPath): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? part : `${text}.${part}`;
  }, '');
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('.'), path.lastIndexOf('[')));
}
