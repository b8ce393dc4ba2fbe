/** Compares files with records: what is done, what is to be run, and what must not be. */
import { MigrationError, placeText } from './errors.js';
import { findMigration } from './migration-files.js';
import type { MigrationProblem, MigrationStep, PlannedFile } from './migration-plan.js';
import type { Records, StepRecord } from './records.js';

/** - `partial`: some of its statements ran. `missing`: it ran, and is no longer in the folder. */
export type FileState = 'done' | 'baseline' | 'partial' | 'pending' | 'missing';

export interface PendingStep {
  readonly step: MigrationStep;
  /** Record of an attempt that is not known to have succeeded. */
  readonly found: StepRecord | undefined;
}

export interface ComparedFile {
  readonly name: string;
  readonly state: FileState;
  readonly planned: PlannedFile | undefined;
  /** In order; empty where all is done. */
  readonly pending: readonly PendingStep[];
}

/** Throws where a file changed after it ran. */
export function compareFiles(files: readonly PlannedFile[], records: Records): ComparedFile[] {
  const names = new Set(files.map(({ name }) => name));
  const missing = [...records.files.keys()].filter((name) => !names.has(name));
  for (const name of records.steps.keys())
    if (!names.has(name) && !records.files.has(name))
      throw new MigrationError('changed', 'ran in part, and is no longer in the folder. Bring it back.', {
        file: name,
      });
  return [
    ...missing.map((name): ComparedFile => ({ name, state: 'missing', planned: undefined, pending: [] })),
    ...files.map((file) => compareFile(file, records)),
  ];
}

function compareFile(planned: PlannedFile, records: Records): ComparedFile {
  const { name, steps, checksum } = planned;
  const done = records.files.get(name);
  if (done !== undefined) {
    if (done.checksum !== checksum)
      throw new MigrationError(
        'changed',
        'has changed since it ran. Undo the change, and put it into a new file: ' +
          `it ran with the checksum ${short(done.checksum)}, and has ${short(checksum)} now.`,
        { file: name },
      );
    return { name, state: done.isBaseline ? 'baseline' : 'done', planned, pending: [] };
  }
  const ran = records.steps.get(name) ?? [];
  for (const record of ran) checkStep(record, steps[record.step - 1], name);
  const pending = steps.flatMap((step) => {
    const found = ran.find((record) => record.step === step.number);
    return found?.state === 'done' ? [] : [{ step, found }];
  });
  return { name, state: ran.length > 0 ? 'partial' : 'pending', planned, pending };
}

/** In a file that ran in part, only steps that did not run may be changed. */
function checkStep(record: StepRecord, step: MigrationStep | undefined, file: string): void {
  if (record.state === 'failed' || step?.checksum === record.checksum) return;
  const what =
    record.state === 'done'
      ? 'has run'
      : 'was begun, and whether it took effect is found out at the next run';
  throw new MigrationError(
    'changed',
    `Statement ${record.step} ${what}, and its text has changed since. Undo the change; it was:\n  ${record.statement}`,
    { file, step: record.step, line: step?.line },
  );
}

function short(checksum: string): string {
  return checksum.slice(0, 12);
}

/** The files up to the target, itself included. */
export function upTo(compared: readonly ComparedFile[], target: string | undefined): ComparedFile[] {
  if (target === undefined) return [...compared];
  const present = compared.filter(({ state }) => state !== 'missing').map(({ name }) => name);
  const last = findMigration(present, target);
  const index = compared.findIndex(({ name }) => name === last);
  return compared.slice(0, index + 1);
}

/** Throws where a file that is to be run comes before one that ran. */
export function checkOrder(compared: readonly ComparedFile[]): void {
  const isDone = ({ state }: ComparedFile): boolean => state === 'done' || state === 'baseline';
  const lastDone = compared.findLastIndex(isDone);
  const early = compared.find((file, index) => index < lastDone && file.planned && !isDone(file));
  if (early === undefined) return;
  throw new MigrationError(
    'order',
    `comes before ${compared[lastDone]?.name}, which ran already. Rename it so that it comes last, or allow it: ` +
      '--out-of-order, outOfOrder: true.',
    { file: early.name },
  );
}

/** Problems of steps to be run; steps that ran are not judged again. */
export function problemsOf(files: readonly ComparedFile[]): MigrationProblem[] {
  return files.flatMap(({ planned, pending, state }) => {
    if (planned === undefined || (pending.length === 0 && state !== 'pending')) return [];
    const first = pending[0]?.step.number ?? 1;
    return planned.problems.filter(({ step }) => step === undefined || step >= first);
  });
}

/** A file that can't be cut into statements, or whose transactions are wrong, can't be run at all. */
export function throwProblems(problems: readonly MigrationProblem[]): void {
  const [first] = problems;
  if (first === undefined) return;
  const lines = problems.map(
    (problem) =>
      `  ${placeText(problem)}: ${problem.code === undefined ? '' : `${problem.code} `}${problem.message}`,
  );
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  const advice = 'headgate dsql lint tells what to do instead, and --fix does most of it.';
  throw new MigrationError('refused', `${count}, and nothing was run:\n${lines.join('\n')}\n${advice}`);
}
