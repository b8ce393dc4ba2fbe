/** Errors between a caller and the pool. Messages carry the numbers at that moment. */
import { formatDuration } from '../kernel/duration.js';
import { HeadgateError } from '../kernel/errors.js';
import type { PoolCounts } from './pool-counts.js';

/** The caller's time was up before a connection was free. `cause` is the last dial error, if dialing is failing. */
export class AcquireTimeoutError extends HeadgateError {
  /** `why`: a sentence about the pool that made the caller wait. */
  constructor(waitedMs: number, counts: PoolCounts, lastDialError: Error | undefined, why?: string) {
    super(
      'HG_ACQUIRE_TIMEOUT',
      `timeout exceeded when trying to connect: waited ${formatDuration(Math.round(waitedMs))}; ` +
        `${describe(counts)}${why === undefined ? '' : `. ${why}`}`,
      lastDialError === undefined ? undefined : { cause: lastDialError },
    );
  }
}

/** No connection became ready in the reservoir before the caller's timeout. `cause` says why, if opening is failing. */
export class ReservoirEmptyError extends HeadgateError {
  constructor(waitedMs: number, counts: PoolCounts, lastError: Error | undefined, why?: string) {
    super(
      'HG_RESERVOIR_EMPTY',
      `timeout exceeded when trying to connect: nothing was ready for ${formatDuration(Math.round(waitedMs))}; ` +
        `${describe(counts)}. ${why === undefined ? '' : `${why} `}Wait longer (emptyWait, or connect({ timeout })), or keep more ready.`,
      lastError === undefined ? undefined : { cause: lastError },
    );
  }
}

/** The caller's AbortSignal fired; `cause` is the signal's reason. */
export class AcquireAbortedError extends HeadgateError {
  constructor(reason: unknown) {
    super('HG_ACQUIRE_ABORTED', 'The wait for a connection was aborted by its signal.', { cause: reason });
  }
}

/** The pool is closing or closed. */
export class PoolClosedError extends HeadgateError {
  constructor(detail = '') {
    super('HG_POOL_CLOSED', `Cannot use a pool after calling end on the pool${detail}`);
  }
}

/** Dialing keeps failing and no connection is left that could serve the caller. `cause` is the last dial error. */
export class ConnectFailedError extends HeadgateError {
  /** Dials that failed in a row. */
  readonly attempts: number;
  /** Milliseconds until the next attempt. */
  readonly retryAfterMs: number;

  constructor(attempts: number, retryAfterMs: number, cause: Error) {
    const next = formatDuration(Math.ceil(retryAfterMs));
    super(
      'HG_CONNECT_FAILED',
      `${attempts} dials in a row failed, next attempt in ${next}: ${cause.message}`,
      {
        cause,
      },
    );
    this.attempts = attempts;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A dial timed out and was given up. If it still succeeds, its connection is closed. */
export class DialTimeoutError extends HeadgateError {
  constructor(timeoutMs: number) {
    super(
      'HG_DIAL_TIMEOUT',
      `Connection terminated due to connection timeout after ${formatDuration(timeoutMs)}`,
    );
  }
}

/** `connect` answered with something that is no connection. */
export class BadConnectionError extends HeadgateError {
  constructor(answer: unknown) {
    super(
      'HG_BAD_CONNECTION',
      `connect() must answer with a connection, but answered with ${String(answer)}.`,
    );
  }
}

/** A health check took longer than it may. */
export class CheckTimeoutError extends HeadgateError {
  constructor(timeoutMs: number) {
    super('HG_CHECK_TIMEOUT', `The health check did not answer within ${formatDuration(timeoutMs)}.`);
  }
}

/** A checkout was released twice; the second release did nothing. */
export class DoubleReleaseError extends HeadgateError {
  constructor() {
    super(
      'HG_DOUBLE_RELEASE',
      'Release called on client which has already been released to the pool. Release each checkout exactly once.',
    );
  }
}

/** A connection was released that this pool never handed out. */
export class ForeignReleaseError extends HeadgateError {
  constructor() {
    super(
      'HG_FOREIGN_RELEASE',
      'This connection is not from this pool. Give it back to the pool it came from.',
    );
  }
}

/** The number of connections asked for was not there in time. `cause` is the last dial error, if dialing is failing. */
export class ReadyTimeoutError extends HeadgateError {
  constructor(
    target: number,
    timeoutMs: number,
    counts: PoolCounts,
    lastDialError: Error | undefined,
    why?: string,
  ) {
    super(
      'HG_READY_TIMEOUT',
      `${target} connections were not ready within ${formatDuration(timeoutMs)}; ` +
        `${describe(counts)}${why === undefined ? '' : `. ${why}`}`,
      lastDialError === undefined ? undefined : { cause: lastDialError },
    );
  }
}

function describe(counts: PoolCounts): string {
  const { limit, inUse, idle, checking, pending, closing, waiting } = counts;
  const checks = checking > 0 ? `, ${checking} being checked` : '';
  return (
    `limit ${limit}: ${inUse} in use, ${idle} idle${checks}, ${pending} being opened, ` +
    `${closing} being closed; ${waiting} waiting`
  );
}
