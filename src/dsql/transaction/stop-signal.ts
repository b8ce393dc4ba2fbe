/** Ends a transaction from outside: the caller's AbortSignal, or its deadline. */
import type { Alarm, AlarmFactory, Clock } from '../../kernel/clock.js';
import { onAbort } from '../../runtime/abort-listeners.js';
import { TransactionAbortedError, TransactionTimeoutError } from './errors.js';

/** Rejects what is raced against it. Never leaves this room: callers get an error that says what happened. */
const stopped = Symbol('headgate.stopped');

export class StopSignal {
  readonly #controller = new AbortController();
  readonly #deadlineMs: number;
  readonly #caller: AbortSignal | undefined;
  readonly #alarm: Alarm | undefined;
  readonly #forgetCaller: (() => void) | undefined;
  readonly #whenStopped: Promise<never>;
  #isLate = false;

  constructor(
    deadlineMs: number,
    caller: AbortSignal | undefined,
    clock: Pick<Clock, 'now'>,
    makeAlarm: AlarmFactory,
  ) {
    this.#deadlineMs = deadlineMs;
    this.#caller = caller;
    this.#whenStopped = new Promise((_, reject) => {
      this.#controller.signal.addEventListener('abort', () => reject(stopped), { once: true });
    });
    // The signal may fire while no race is on.
    this.#whenStopped.catch(() => {});
    if (caller?.aborted) this.#controller.abort();
    else if (caller !== undefined) this.#forgetCaller = onAbort(caller, () => this.#controller.abort());
    if (!Number.isFinite(deadlineMs)) return;
    this.#alarm = makeAlarm(() => {
      this.#isLate = !this.isStopped;
      this.#controller.abort();
    });
    this.#alarm.set(clock.now() + deadlineMs, false);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isStopped(): boolean {
    return this.#controller.signal.aborted;
  }

  /** True if it is what `race` rejects with. */
  isSignal(error: unknown): boolean {
    return error === stopped;
  }

  throwIfStopped(): void {
    if (this.isStopped) throw stopped;
  }

  /** Settles as the promise does, or rejects as soon as it is stopped; what the promise says then is not heard. */
  async race<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.#whenStopped]);
  }

  /** Why it was stopped, for the caller. */
  error(attempts: number, lastError: unknown): Error {
    return this.#isLate
      ? new TransactionTimeoutError(this.#deadlineMs, attempts, lastError)
      : new TransactionAbortedError(this.#caller?.reason);
  }

  close(): void {
    this.#alarm?.clear();
    this.#forgetCaller?.();
  }
}
