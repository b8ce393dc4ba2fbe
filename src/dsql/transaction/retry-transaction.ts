/** The loop around the attempts of one transaction, whatever makes them: node-postgres, Kysely, Drizzle or Prisma. */
import type { AlarmFactory, Clock } from '../../kernel/clock.js';
import type { Random } from '../../kernel/random.js';
import { systemAlarm, systemClock, systemRandom } from '../../runtime/system.js';
import { classifyError } from '../classify/classify-error.js';
import type { ErrorClassification } from '../classify/error-class.js';
import type { AttemptOutcome, ContentionGate } from './contention-gate.js';
import { CurrentAttempt } from './current-attempt.js';
import { CommitOutcomeUnknownError, TransactionRetriesExhaustedError } from './errors.js';
import { type ListenerNews, type TransactionListener, tellListener } from './listener.js';
import type { RetryBudget } from './retry-budget.js';
import { leavesOutcomeUnknown, type NextStep, RetryMachine } from './retry-machine.js';
import { type RetryOptions, readRetryOptions } from './retry-options.js';
import { StopSignal } from './stop-signal.js';

/** One attempt, as the code that makes it sees it. */
export interface Attempt<T> {
  /** From 1. */
  readonly number: number;
  /** Fires when the attempt must end: the caller's signal or its deadline. */
  readonly signal: AbortSignal;
  /** The transaction has begun: what fails from here on is no fault of connecting. */
  began(): void;
  /**
   * COMMIT is sent next; `value` is the call's result if it succeeds. Throws when the transaction was ended meanwhile:
   * then COMMIT must not be sent.
   */
  committing(value: T): void;
  /** The server has answered COMMIT, and says that nothing was committed. */
  rolledBack(): void;
}

/** One attempt. Rejects when it was not committed or may not have been, and holds no connection after that. */
export type RunAttempt<T> = (attempt: Attempt<T>) => Promise<T>;

export interface RetryContext {
  /** Unless the options name another. */
  readonly budget: RetryBudget;
  /** Gate of the operation. Default: none, attempts begin at once. */
  readonly gate?: ContentionGate | undefined;
  readonly listener?: TransactionListener | undefined;
  /** The label in metrics; see `OperationNames`. */
  readonly operation: string;
  /** True if an attempt whose answer was lost was committed. Called while no connection is held. */
  readonly verify?: ((signal: AbortSignal) => Promise<boolean>) | undefined;
  readonly clock?: Pick<Clock, 'now'> | undefined;
  readonly alarm?: AlarmFactory | undefined;
  readonly random?: Random | undefined;
}

interface Result<T> {
  readonly value: T;
}

/** Runs attempts until one is committed, or none may follow. */
export async function retryTransaction<T>(
  run: RunAttempt<T>,
  options: RetryOptions,
  context: RetryContext,
): Promise<T> {
  return new RetriedTransaction(run, options, context).run();
}

class RetriedTransaction<T> {
  readonly #run: RunAttempt<T>;
  readonly #context: RetryContext;
  readonly #budget: RetryBudget;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #makeAlarm: AlarmFactory;
  readonly #machine: RetryMachine;
  readonly #stop: StopSignal;
  readonly #beganAt: number;
  #lastError: unknown;
  #verifyError: unknown;
  /** Outcome of the last attempt whose answer was lost. */
  #doubtful: Result<T> | undefined;

  constructor(run: RunAttempt<T>, options: RetryOptions, context: RetryContext) {
    const policy = readRetryOptions(options);
    this.#run = run;
    this.#context = context;
    this.#budget = options.budget ?? context.budget;
    this.#clock = context.clock ?? systemClock;
    this.#makeAlarm = context.alarm ?? systemAlarm;
    this.#beganAt = this.#clock.now();
    const random = context.random ?? systemRandom;
    this.#machine = new RetryMachine(policy, context.verify !== undefined, random, this.#beganAt);
    this.#stop = new StopSignal(policy.deadline, options.signal, this.#clock, this.#makeAlarm);
  }

  async run(): Promise<T> {
    try {
      let result: Result<T> | undefined;
      while (result === undefined) result = await this.#attempt();
      this.#budget.committed();
      this.#tell('committed', this.#elapsedMs, this.#machine.attempts);
      return result.value;
    } catch (thrown) {
      const error = this.#stop.isStopped ? this.#endOf(thrown) : thrown;
      this.#tell('failed', classifyError(error).class, this.#elapsedMs, this.#machine.attempts);
      throw error;
    } finally {
      this.#stop.close();
    }
  }

  /** Undefined: another attempt may follow now. */
  async #attempt(): Promise<Result<T> | undefined> {
    this.#stop.throwIfStopped();
    await this.#enterGate();
    const attempt = new CurrentAttempt<T>(this.#machine.begin(), this.#stop);
    this.#tell('attemptBegan', attempt.number);
    const attemptBeganAt = this.#clock.now();
    try {
      const result = { value: await this.#stop.race(this.#run(attempt)) };
      this.#leaveGate('committed');
      return result;
    } catch (error) {
      this.#lastError = this.#stop.isSignal(error) ? this.#lastError : error;
      const failure = classifyError(error);
      this.#leaveGate(failure.conflict === 'data' ? 'conflict' : 'other');
      return await this.#afterFailure(error, failure, attempt, this.#clock.now() - attemptBeganAt);
    }
  }

  async #afterFailure(
    error: unknown,
    failure: ErrorClassification,
    attempt: CurrentAttempt<T>,
    tookMs: number,
  ): Promise<Result<T> | undefined> {
    if (failure.conflict !== undefined) this.#tell('conflict', failure.conflict, attempt.number);
    let step = this.#machine.failed({ failure, phase: attempt.phase, tookMs }, this.#clock.now());
    if (attempt.result !== undefined && leavesOutcomeUnknown(failure)) this.#doubtful = attempt.result;
    this.#stop.throwIfStopped();
    if (step.next === 'verify') step = this.#machine.verified(await this.#verify(), this.#clock.now());
    if (step.next === 'committed') return this.#doubtful;
    if (step.next !== 'retry') throw this.#errorFor(step, error);
    this.#tell('retryScheduled', step.delayMs, failure.class, attempt.number);
    await this.#backoff(step.delayMs);
    const refusal = await this.#waitForBudget();
    if (refusal !== undefined) throw this.#errorFor(refusal, error);
    return undefined;
  }

  async #enterGate(): Promise<void> {
    const { gate } = this.#context;
    if (gate === undefined) return;
    let isAdmitted = false;
    let giveUp: (() => void) | undefined;
    const admitted = new Promise<void>((resolve) => {
      giveUp = gate.enter(this.#machine.attempts > 0, () => {
        isAdmitted = true;
        resolve();
      });
    });
    // Most find the gate open; they need not wait for a turn.
    if (isAdmitted) return;
    try {
      await this.#stop.race(admitted);
    } catch (error) {
      if (isAdmitted) gate.leave('other');
      else giveUp?.();
      throw error;
    }
  }

  #leaveGate(outcome: AttemptOutcome): void {
    this.#context.gate?.leave(outcome);
  }

  async #verify(): Promise<boolean | undefined> {
    const verify = this.#context.verify as NonNullable<RetryContext['verify']>;
    try {
      return await this.#stop.race(verify(this.#stop.signal));
    } catch (error) {
      this.#stop.throwIfStopped();
      this.#verifyError = error;
      return undefined;
    }
  }

  async #backoff(delayMs: number): Promise<void> {
    let alarm: ReturnType<AlarmFactory> | undefined;
    try {
      await this.#stop.race(
        new Promise<void>((resolve) => {
          alarm = this.#makeAlarm(resolve);
          alarm.set(this.#clock.now() + delayMs, true);
        }),
      );
    } finally {
      alarm?.clear();
    }
  }

  /** Undefined: the retry may be made. */
  async #waitForBudget(): Promise<NextStep | undefined> {
    let release: (() => void) | undefined;
    try {
      return await this.#stop.race(
        new Promise<NextStep | undefined>((resolve) => {
          const cancel = this.#budget.request(() => resolve(undefined));
          if (cancel === undefined) resolve(this.#machine.refused());
          const alarm = this.#makeAlarm(() => resolve(this.#machine.tooLate()));
          const { retryUntil } = this.#machine;
          if (Number.isFinite(retryUntil)) alarm.set(retryUntil, true);
          release = () => {
            cancel?.();
            alarm.clear();
          };
        }),
      );
    } finally {
      release?.();
    }
  }

  #errorFor(step: NextStep, error: unknown): unknown {
    const { attempts } = this.#machine;
    if (step.next === 'outcome_unknown')
      return new CommitOutcomeUnknownError(attempts, error, this.#verifyError);
    if (step.next !== 'exhausted') return error;
    this.#tell('exhausted', step.reason, attempts);
    return new TransactionRetriesExhaustedError(attempts, this.#elapsedMs, step.reason, error);
  }

  /** Error for the caller whose signal or deadline ended the call. */
  #endOf(thrown: unknown): unknown {
    // An error that came just before is more telling, and as true.
    if (!this.#stop.isSignal(thrown)) return thrown;
    const error = this.#stop.error(this.#machine.attempts, this.#lastError);
    return this.#machine.isInDoubt ? new CommitOutcomeUnknownError(this.#machine.attempts, error) : error;
  }

  get #elapsedMs(): number {
    return this.#clock.now() - this.#beganAt;
  }

  #tell<Name extends keyof TransactionListener>(name: Name, ...news: ListenerNews<Name>): void {
    tellListener(this.#context.listener, name, this.#context.operation, ...news);
  }
}
