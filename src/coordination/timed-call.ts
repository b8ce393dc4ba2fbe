/** Calls of functions that belong to someone else: each has a signal and a deadline, and may answer when it likes. */
import { Backoff } from '../core/backoff.js';
import type { AlarmFactory, Clock } from '../kernel/clock.js';
import { formatDuration } from '../kernel/duration.js';
import type { Random } from '../kernel/random.js';
import { LeaseCoordinatorError } from './errors.js';

/** The world that a call is made in. */
export interface CallParts {
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: AlarmFactory;
  readonly random: Random;
  readonly timeoutMs: number;
}

export type SignalledCall<T> = (signal: AbortSignal) => PromiseLike<T> | T;

export interface TimedCall<T> {
  /** What the function answers, whenever that is. */
  readonly answer: Promise<T>;
  /** The same; or an error when its time is up, and then its signal has fired. */
  readonly inTime: Promise<T>;
}

/** Begins the call, but not before whoever asks for it is done: foreign code never runs inside a holder's call. */
export function callInTime<T>(what: string, call: SignalledCall<T>, parts: CallParts): TimedCall<T> {
  const { clock, alarm: makeAlarm, timeoutMs } = parts;
  const controller = new AbortController();
  const answer = Promise.resolve().then(() => call(controller.signal));
  const inTime = new Promise<T>((resolve, reject) => {
    const alarm = makeAlarm(() => {
      const error = new LeaseCoordinatorError(`${what} took longer than ${formatDuration(timeoutMs)}.`);
      reject(error);
      controller.abort(error);
    });
    // Who waits for the answer keeps the program running. This alone does not.
    alarm.set(clock.now() + timeoutMs, false);
    answer.then(resolve, reject).finally(() => alarm.clear());
  });
  return { answer, inTime };
}

/** Whatever was thrown, as an error that says what was being done. */
export function coordinatorError(what: string, thrown: unknown): LeaseCoordinatorError {
  if (thrown instanceof LeaseCoordinatorError) return thrown;
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return new LeaseCoordinatorError(`${what} failed: ${why}.`, thrown);
}

/** Full jitter, from a quarter of a second to ten. */
const backoffPolicy = { base: 250, cap: 10_000 };

/** What is being done until it has succeeded once. */
interface Errand {
  isDone: boolean;
  /** Ends the pause before the next attempt. */
  wake: () => void;
}

/** Calls that are made again, after growing delays, until one of them has succeeded. */
export class PersistentCalls {
  readonly #parts: CallParts;
  readonly #onFailed: (error: LeaseCoordinatorError) => void;
  readonly #pausing = new Map<Errand, Backoff>();

  constructor(parts: CallParts, onFailed: (error: LeaseCoordinatorError) => void) {
    this.#parts = parts;
    this.#onFailed = onFailed;
  }

  async make(what: string, call: SignalledCall<unknown>): Promise<void> {
    const { clock, random } = this.#parts;
    const errand: Errand = { isDone: false, wake: () => {} };
    const backoff = new Backoff(backoffPolicy, random);
    while (!errand.isDone) {
      const { answer, inTime } = callInTime(what, call, this.#parts);
      // To have succeeded late is to have succeeded.
      answer.then(
        () => {
          errand.isDone = true;
          errand.wake();
        },
        () => {},
      );
      try {
        await inTime;
      } catch (thrown) {
        if (errand.isDone) return;
        const error = coordinatorError(what, thrown);
        backoff.failed(error, clock.now());
        this.#onFailed(error);
        await this.#pause(errand, backoff);
      }
    }
  }

  /** Someone waits for them now: tries again at once, and begins with short delays again. */
  hurry(): void {
    for (const [errand, backoff] of [...this.#pausing]) {
      backoff.succeeded();
      errand.wake();
    }
  }

  async #pause(errand: Errand, backoff: Backoff): Promise<void> {
    this.#pausing.set(errand, backoff);
    await new Promise<void>((resolve) => {
      const alarm = this.#parts.alarm(resolve);
      // A coordinator that is gone for good must not keep the program from ending: see flush().
      alarm.set(backoff.retryAt, false);
      errand.wake = (): void => {
        alarm.clear();
        resolve();
      };
    });
    errand.wake = (): void => {};
    this.#pausing.delete(errand);
  }
}
