/** The output of `headgate dsql migrate`: lines for people, or JSON. */
import { type MigrationError, placeText } from '../dsql/migrate/errors.js';
import type { MigrateResult, MigrationStatus } from '../dsql/migrate/migrate.js';
import type { MigrationProgress } from '../dsql/migrate/progress.js';
import { formatDuration } from '../kernel/duration.js';
import type { Terminal } from './terminal.js';

type StepEvent = Extract<MigrationProgress, { type: 'step' }>;

/** Events as lines on standard output; on a terminal, what runs at present on standard error. */
export class MigrationReporter {
  readonly #terminal: Terminal;
  readonly #isJson: boolean;
  #file: string | undefined;
  #step: StepEvent | undefined;

  constructor(terminal: Terminal, isJson: boolean) {
    this.#terminal = terminal;
    this.#isJson = isJson;
  }

  readonly take = (event: MigrationProgress): void => {
    if (this.#isJson) this.#terminal.out(`${JSON.stringify(event)}\n`);
    else this.#tell(event);
  };

  end(result: MigrateResult): void {
    if (this.#isJson) this.#terminal.out(`${JSON.stringify({ type: 'result', ...result })}\n`);
    else if (result.files.length === 0 && result.baseline.length === 0)
      this.#terminal.out('Nothing to run: every migration has run.\n');
    else this.#terminal.out(`Done: ${counted(result.steps, result.files.length)}.\n`);
  }

  /** Takes what runs at present off the terminal. */
  close(): void {
    this.#show('');
  }

  #tell(event: MigrationProgress): void {
    switch (event.type) {
      case 'waiting':
        this.#terminal.err(`headgate: waiting for another runner: ${event.holder}\n`);
        return;
      case 'step':
        this.#begin(event);
        return;
      case 'retry':
        this.close();
        this.#terminal.err(`headgate: ${event.file}: statement ${event.step} is tried again: ${event.why}\n`);
        return;
      case 'job':
        this.#show(`${lineOf(this.#step)}  job ${event.jobId ?? ''} is ${event.status}`);
        return;
      case 'step done': {
        this.close();
        const found = event.outcome === 'found' ? ', had taken effect before' : '';
        this.#terminal.out(`${lineOf(this.#step)}  (${formatDuration(event.ms)}${found})\n`);
        return;
      }
      case 'file done':
        if (event.isBaseline) this.#terminal.out(`${event.file}  recorded, not run\n`);
        return;
      default:
    }
  }

  #begin(event: StepEvent): void {
    this.#step = event;
    if (this.#file !== event.file) this.#terminal.out(`${event.file}\n`);
    this.#file = event.file;
    this.#show(lineOf(event));
  }

  #show(text: string): void {
    if (!this.#terminal.showsProgress || this.#isJson) return;
    this.#terminal.err(`\r${text.slice(0, (this.#terminal.columns || 80) - 1)}\u001B[K`);
  }
}

function lineOf(step: StepEvent | undefined): string {
  return step === undefined ? '' : `  ${step.step}/${step.steps}  ${step.summary}`;
}

function counted(steps: number, files: number): string {
  const statements = steps === 1 ? '1 statement' : `${steps} statements`;
  return `${statements} of ${files === 1 ? '1 file' : `${files} files`}`;
}

const words = {
  done: 'done',
  baseline: 'baseline',
  partial: 'in part',
  pending: 'to run',
  missing: 'done, file is missing',
} as const;

export function statusText({ files }: MigrationStatus): string {
  const width = Math.max(...files.map(({ file }) => file.length));
  const lines = files.map(({ file, state, pending }) => {
    const left = state === 'partial' ? `, ${pending.length} left` : '';
    const error = pending[0]?.error === undefined ? '' : `: ${pending[0].error}`;
    return `${file.padEnd(width)}  ${words[state]}${left}${error}`;
  });
  return `${lines.join('\n')}\n`;
}

/** Statements to run, each as it would be sent. */
export function planText({ files, problems }: MigrationStatus): string {
  const toRun = files.filter(({ pending }) => pending.length > 0);
  const lines = toRun.flatMap(({ file, pending }) => [
    ...pending.flatMap(({ line, sql, state }) => [
      `-- ${placeText({ file, line })}${state === 'new' ? '' : `, ${state} in an earlier run`}`,
      `${sql};`,
      '',
    ]),
  ]);
  const refused = problems.map(
    (problem) =>
      `-- REFUSED ${placeText(problem)}: ${problem.code === undefined ? '' : `${problem.code} `}${problem.message}`,
  );
  const steps = toRun.reduce((sum, { pending }) => sum + pending.length, 0);
  const end = steps === 0 ? '-- Nothing would be run.' : `-- ${counted(steps, toRun.length)} would be run.`;
  return `${[...lines, ...refused, end].join('\n')}\n`;
}

export function errorJson({ reason, file, step, line, message }: MigrationError): string {
  return `${JSON.stringify({ type: 'error', reason, file, step, line, message })}\n`;
}
