/** Calls of a coordinator: each has a deadline, and may be answered at any time, or never. */
import { Backoff } from '../core/backoff.js';
import type { Alarm, AlarmFactory, Clock } from '../kernel/clock.js';
import { formatDuration } from '../kernel/duration.js';
import type { Random } from '../kernel/random.js';
import { LeaseCoordinatorError } from './errors.js';
import type { Answer, GiveUp, Reply } from './lease-channel.js';

/** The world that a call is made in. */
export interface CallParts {
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: AlarmFactory;
  readonly random: Random;
  readonly timeoutMs: number;
  /** Runs something when the code that runs now is done, before time passes. */
  readonly soon: (run: () => void) => void;
}

export type Call<T> = (answer: Answer<T>) => GiveUp;

/** Exactly one of `answered` and `failed` is called. */
export interface CallListener<T> {
  answered(value: T): void;
  /** `isOpen`: the deadline has passed, but the answer may still come. */
  failed(error: LeaseCoordinatorError, isOpen: boolean): void;
  /** The answer to a call that has failed by its deadline. */
  late(reply: Reply<T>): void;
}

/** Begins the call after the current call of its holder: foreign code never runs inside a holder's call. */
export function callInTime<T>(
  what: string,
  call: Call<T>,
  { clock, alarm: makeAlarm, timeoutMs, soon }: CallParts,
  listener: CallListener<T>,
): void {
  let state: 'open' | 'late' | 'over' = 'open';
  let giveUp: GiveUp | undefined;
  const alarm = makeAlarm(() => {
    if (state !== 'open') return;
    state = 'late';
    const error = new LeaseCoordinatorError(`${what} took longer than ${formatDuration(timeoutMs)}.`);
    listener.failed(error, true);
    giveUp?.(error);
  });
  const answer = (reply: Reply<T>): void => {
    const before = state;
    state = 'over';
    if (before === 'late') listener.late(reply);
    if (before !== 'open') return;
    alarm.clear();
    if ('error' in reply) listener.failed(coordinatorError(what, reply.error), false);
    else listener.answered(reply.value);
  };
  // Code that waits for the answer keeps the program running. This alarm alone does not.
  alarm.set(clock.now() + timeoutMs, false);
  soon(() => {
    if (state === 'open') giveUp = call(answer);
    else answer({ error: new Error('was given up before it began') });
  });
}

/** Wraps any thrown value in an error that names the operation. */
function coordinatorError(what: string, thrown: unknown): LeaseCoordinatorError {
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return new LeaseCoordinatorError(`${what} failed: ${why}.`, thrown);
}

/** Full jitter, from a quarter of a second to ten. */
const backoffPolicy = { base: 250, cap: 10_000 };

/** Calls that are made again, after growing delays, until one of them has succeeded. */
export class PersistentCalls {
  readonly #parts: CallParts;
  readonly #onFailed: (error: LeaseCoordinatorError) => void;
  readonly #pausing = new Set<Errand>();

  constructor(parts: CallParts, onFailed: (error: LeaseCoordinatorError) => void) {
    this.#parts = parts;
    this.#onFailed = onFailed;
  }

  /** `done` is called once, when an attempt has succeeded. */
  make(what: string, call: Call<unknown>, done: () => void): void {
    new Errand(what, call, this.#parts, {
      done,
      failed: this.#onFailed,
      paused: (errand) => this.#pausing.add(errand),
      resumed: (errand) => this.#pausing.delete(errand),
    }).attempt();
  }

  /** Holders wait for these leases now: tries again at once, with short delays again. */
  hurry(): void {
    for (const errand of [...this.#pausing]) errand.hurry();
  }
}

interface ErrandListener {
  readonly done: () => void;
  readonly failed: (error: LeaseCoordinatorError) => void;
  readonly paused: (errand: Errand) => void;
  readonly resumed: (errand: Errand) => void;
}

/** One operation that is repeated until it has succeeded once. */
class Errand implements CallListener<unknown> {
  readonly #what: string;
  readonly #call: Call<unknown>;
  readonly #parts: CallParts;
  readonly #listener: ErrandListener;
  readonly #backoff: Backoff;
  readonly #alarm: Alarm;
  #isDone = false;

  constructor(what: string, call: Call<unknown>, parts: CallParts, listener: ErrandListener) {
    this.#what = what;
    this.#call = call;
    this.#parts = parts;
    this.#listener = listener;
    this.#backoff = new Backoff(backoffPolicy, parts.random);
    this.#alarm = parts.alarm(() => this.#resume());
  }

  attempt(): void {
    callInTime(this.#what, this.#call, this.#parts, this);
  }

  answered(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#alarm.clear();
    this.#listener.resumed(this);
    this.#listener.done();
  }

  failed(error: LeaseCoordinatorError): void {
    if (this.#isDone) return;
    this.#backoff.failed(error, this.#parts.clock.now());
    // A coordinator that never comes back must not keep the program from ending: see flush().
    this.#alarm.set(this.#backoff.retryAt, false);
    this.#listener.paused(this);
    this.#listener.failed(error);
  }

  /** A late success is a success. */
  late(reply: Reply<unknown>): void {
    if ('value' in reply) this.answered();
  }

  hurry(): void {
    this.#backoff.succeeded();
    this.#alarm.clear();
    this.#resume();
  }

  #resume(): void {
    if (this.#isDone) return;
    this.#listener.resumed(this);
    this.attempt();
  }
}
