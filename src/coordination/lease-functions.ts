/** Options of `leasesFrom()`: the functions that talk to a coordinator, and their check. */
import type { AlarmFactory, Clock } from '../kernel/clock.js';
import type { Duration } from '../kernel/duration.js';
import { OptionReader } from '../kernel/option-reader.js';
import type { Random } from '../kernel/random.js';
import { systemAlarm, systemClock, systemRandom } from '../runtime/system.js';
import type { LeaseCoordinatorError } from './errors.js';
import type { CallParts } from './timed-call.js';

/** Passed to every call of a function. */
export interface LeaseCall {
  /** Names the request. A repeated request has the same id, so that it can be carried out once. */
  readonly id: string;
  /** Aborted when the result of this call is not needed any more. */
  readonly signal: AbortSignal;
}

export interface LeasesFromOptions {
  /**
   * Takes `count` leases, all or none: true when they are taken, false when the limit is reached. Rejects if the call
   * failed; without a `cancel`, a rejection means that nothing was taken.
   */
  readonly acquire: (count: number, call: LeaseCall) => Promise<boolean>;
  /** Gives leases back. Is called again with the same `id` until it has resolved once. */
  readonly release: (count: number, call: LeaseCall) => Promise<unknown>;
  /**
   * Undoes the `acquire` with this `id` if it took effect, and prevents it from taking effect later. Called when its
   * effect is unknown, until it has resolved once.
   */
  readonly cancel?: ((count: number, call: LeaseCall) => Promise<unknown>) | undefined;
  /** Timeout of one call. Default `5s`. */
  readonly timeout?: Duration | undefined;
  /** A `release` or a `cancel` failed; it is tried again. */
  readonly onReleaseFailed?: ((error: LeaseCoordinatorError) => void) | undefined;
  /** Default: the system's. */
  readonly clock?: Pick<Clock, 'now'> | undefined;
  /** Default: the system's. */
  readonly alarm?: AlarmFactory | undefined;
  /** Default: the system's. */
  readonly random?: Random | undefined;
}

/** The options, complete. */
export interface LeaseFunctions
  extends Omit<CallParts, 'soon'>,
    Pick<LeasesFromOptions, 'acquire' | 'release' | 'cancel' | 'onReleaseFailed'> {}

type Functions = LeasesFromOptions;

export function readLeaseFunctions(options: LeasesFromOptions): LeaseFunctions {
  const read = new OptionReader(options);
  const timeoutMs = read.duration('timeout', 5_000, 0);
  if (timeoutMs < 1) read.problem('timeout', `is ${timeoutMs} ms, in which nothing can be answered`);
  const functions = {
    acquire: read.callback<Functions['acquire']>('acquire', true) as Functions['acquire'],
    release: read.callback<Functions['release']>('release', true) as Functions['release'],
    cancel: read.callback<NonNullable<Functions['cancel']>>('cancel', false),
    onReleaseFailed: read.callback<NonNullable<Functions['onReleaseFailed']>>('onReleaseFailed', false),
    clock: read.object<Pick<Clock, 'now'>>('clock', ['now']) ?? systemClock,
    alarm: read.callback<AlarmFactory>('alarm', false) ?? systemAlarm,
    random: read.object<Random>('random', ['next']) ?? systemRandom,
    timeoutMs,
  };
  read.refuseUnknown();
  read.throwIfAnyProblem();
  return functions;
}

/** Ids that no other process uses: a random beginning, and a number. */
export function idSource(random: Random): () => string {
  const part = (): string => Math.floor(random.next() * 2 ** 52).toString(36);
  const beginning = `${part()}${part()}`;
  let last = 0;
  return () => `${beginning}-${++last}`;
}
