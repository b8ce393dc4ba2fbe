/** Scenario files: YAML or JSON in, a checked scenario out, or every problem with its line and column. */
import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { Scenario } from './scenario.js';
import { parseWithPositions } from './scenario-file-positions.js';
import { examineScenario } from './scenario-reader.js';
import { ScenarioError, type ScenarioProblem } from './scenario-reader-problems.js';

const longestFile = 1_048_576;
const longestDescription = 4_000;

/** Reads the file at `path`; throws a `ScenarioError` that lists all that is wrong with it. */
export function readScenarioFile(path: string): Scenario {
  const { size } = statSync(path);
  if (size > longestFile) refuse(path, `is ${size} bytes long, more than the ${longestFile} that are read`);
  return parseScenario(readFileSync(path, 'utf8'), path);
}

/** The scenario that `text` describes; `file` is what messages call it, and its name where it has none. */
export function parseScenario(text: string, file = 'scenario'): Scenario {
  if (text.length > longestFile) refuse(file, `is longer than the ${longestFile} characters that are read`);
  const data = parseWithPositions(text);
  if (data.problems.length > 0) throw new ScenarioError(file, data.problems);
  const { scenario, problems } = examineScenario(data.value ?? {}, {
    name: basename(file).replace(/\.(?:ya?ml|json)$/i, ''),
    description: data.comment.slice(0, longestDescription),
  });
  if (problems.length === 0) return scenario;
  const located = problems.map((problem) => ({ ...problem, ...data.positionOf(problem.path) }));
  throw new ScenarioError(file, inOrder(located));
}

function inOrder(problems: (ScenarioProblem & { line: number; column: number })[]): ScenarioProblem[] {
  return problems.sort((one, other) => one.line - other.line || one.column - other.column);
}

function refuse(file: string, message: string): never {
  throw new ScenarioError(file, [{ path: '', message }]);
}
