/** Statements that are cancelled while they run: because the transaction is too old, or because another one takes its locks. */
import type { Participant } from '../conflicts/participant.js';
import { conflictFailure, fail, StatementFailed } from './errors.js';
import type { SessionHooks, TransactionLimits } from './settings.js';

/** PostgreSQL's answer to a statement that was cancelled. */
const cancelled = '57014';

export interface InterruptionOptions {
  readonly participant: Participant;
  readonly limits: TransactionLimits;
  readonly hooks: SessionHooks;
  readonly cancel: () => Promise<void>;
}

/** Runs work that began at `beganAt` until it is older than a transaction may be. */
export async function runInTime<T>(
  { participant, limits, hooks, cancel }: InterruptionOptions,
  beganAt: number,
  work: () => Promise<T>,
): Promise<T> {
  let tooOld: Promise<void> | undefined;
  const left = Math.max(1, beganAt + limits.ageMs - hooks.now());
  const timer = setTimeout(() => {
    tooOld = cancel();
  }, left);
  participant.interruption = undefined;
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StatementFailed) || error.fields.code !== cancelled) throw error;
    if (tooOld !== undefined) throw ageExceeded(hooks.now() - beganAt, limits);
    if (participant.interruption !== undefined) throw conflictFailure(participant.interruption);
    throw error;
  } finally {
    clearTimeout(timer);
    await tooOld;
  }
}

export function ageExceeded(ageMs: number, limits: TransactionLimits): StatementFailed {
  const most = Math.round(limits.ageMs / 1_000);
  return fail(
    '54000',
    `transaction age limit of ${most}s exceeded`,
    `Current transaction age ${Math.floor(ageMs / 1_000)}s exceeds ${most}s`,
  );
}
