/** Everything that is wrong with a scenario, each problem with where it is, thrown together. */
import { HeadgateError } from '../../kernel/errors.js';

/** One thing wrong with a scenario. */
export interface ScenarioProblem {
  /** Where in the whole: `services[2].pool.max`. Empty for the scenario itself. */
  readonly path: string;
  readonly message: string;
  /** Where in the file, from 1; undefined where the scenario did not come from one. */
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

/** The scenario can't be simulated; `problems` lists all that is wrong with it, not only the first. */
export class ScenarioError extends HeadgateError {
  readonly problems: readonly ScenarioProblem[];

  constructor(source: string, problems: readonly ScenarioProblem[]) {
    const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
    const lines = problems.map((problem) => `  ${describeProblem(source, problem)}`);
    super('HG_BAD_SCENARIO', [`${count} in ${source}:`, ...lines].join('\n'));
    this.problems = Object.freeze([...problems]);
  }
}

function describeProblem(source: string, { path, message, line, column }: ScenarioProblem): string {
  const place = line === undefined ? '' : `${source}:${line}:${column}  `;
  return `${place}${path === '' ? '' : `${path}: `}${message}`;
}

/** Collects problems while a scenario is read. The same one found twice is one. */
export class Problems {
  readonly #found = new Map<string, ScenarioProblem>();

  get count(): number {
    return this.#found.size;
  }

  get list(): readonly ScenarioProblem[] {
    return [...this.#found.values()];
  }

  add(path: string, message: string): void {
    this.#found.set(`${path}\n${message}`, { path, message });
  }
}
