/**
 * Ends what takes longer than a client has allowed by a setting that its server refuses. As PostgreSQL: a statement is cancelled (57014), and who is idle
 * for too long is disconnected (25P03, 57P05). The statements of one text, or of one batch, count together: servers answer them together.
 */
import { systemClock } from '../../runtime/system.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import type { KeptSettings } from './kept-settings.js';
import { timeoutNames } from './refused-settings.js';

/** The session that it watches. Times are by the clock of the process. */
export interface TimedSession {
  readonly state: 'idle' | 'waiting' | 'active' | 'idle in transaction';
  readonly askedAt: number;
  readonly idleSince: number;
  cancel(): Promise<void>;
  end(error: ErrorFields): void;
}

/** A server that does not heed a cancel request for so long is left. */
const graceMs = 2_000;
const longestMs = 2 ** 31 - 1;

const canceled: ErrorFields = {
  severity: 'ERROR',
  code: SqlState.queryCanceled,
  message: 'canceling statement due to statement timeout',
};
const unheeded: ErrorFields = {
  severity: 'FATAL',
  code: SqlState.queryCanceled,
  message: 'terminating connection: statement timeout, and the server did not cancel the statement',
};
const idleInTransaction: ErrorFields = {
  severity: 'FATAL',
  code: SqlState.idleInTransactionTimeout,
  message: 'terminating connection due to idle-in-transaction timeout',
};
const idleSession: ErrorFields = {
  severity: 'FATAL',
  code: SqlState.idleSessionTimeout,
  message: 'terminating connection due to idle-session timeout',
};

export class KeptTimeouts {
  readonly #session: TimedSession;
  readonly #kept: KeptSettings;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  /** Of the timeouts that are set; looked at with each message of the client. */
  #shortest = longestMs;
  /** When the statement that runs was cancelled. */
  #cancelledAt: number | undefined;

  constructor(session: TimedSession, kept: KeptSettings) {
    this.#session = session;
    this.#kept = kept;
    this.#timer = undefined;
    this.#cancelledAt = undefined;
    kept.onTimeouts = () => this.#changed();
    this.#changed();
  }

  /** Something of the client's was taken up. */
  wake(): void {
    if (this.#timer === undefined && !this.#isStopped && this.#shortest < longestMs) this.#look();
  }

  /** All that was asked is answered. */
  answered(): void {
    this.#cancelledAt = undefined;
  }

  /** The error of a server that was asked to cancel, in the words of the reason. */
  insteadOf({ code }: ErrorFields): ErrorFields | undefined {
    return this.#cancelledAt !== undefined && code === SqlState.queryCanceled ? canceled : undefined;
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#kept.onTimeouts = undefined;
  }

  #changed(): void {
    const { timeouts } = this.#kept;
    this.#shortest = Math.min(...timeoutNames.map((name) => timeouts[name] || longestMs));
    // Not now: the statement that sets it is yet to be answered, and until then the client seems to have been idle.
    this.#lookIn(this.#shortest);
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#shortest === longestMs || this.#isStopped) return;
    this.#timer = setTimeout(() => this.#look(), Math.ceil(Math.max(1, ms))).unref();
  }

  #look(): void {
    this.#timer = undefined;
    const leftMs = this.#leftMs();
    // A client that is idle without a limit is woken up by its next message; all others may be in another state by then.
    if (leftMs === Number.POSITIVE_INFINITY && this.#session.state === 'idle') return;
    if (leftMs <= 0 && !this.#act()) return;
    this.#lookIn(Math.min(leftMs > 0 ? leftMs : graceMs, this.#shortest));
  }

  /** Until the present state has lasted for too long. */
  #leftMs(): number {
    const { state, askedAt, idleSince } = this.#session;
    const { timeouts } = this.#kept;
    const now = systemClock.now();
    const left = (limit: number, since: number): number =>
      limit === 0 ? Number.POSITIVE_INFINITY : limit - (now - since);
    if (state === 'active')
      return this.#cancelledAt === undefined
        ? left(timeouts.statement_timeout, askedAt)
        : left(graceMs, this.#cancelledAt);
    if (state === 'idle in transaction') return left(timeouts.idle_in_transaction_session_timeout, idleSince);
    return state === 'idle' ? left(timeouts.idle_session_timeout, idleSince) : Number.POSITIVE_INFINITY;
  }

  /** False where the session has ended. */
  #act(): boolean {
    const { state } = this.#session;
    if (state === 'active' && this.#cancelledAt === undefined) {
      this.#cancelledAt = systemClock.now();
      void this.#session.cancel();
      return true;
    }
    this.stop();
    this.#session.end(state === 'active' ? unheeded : state === 'idle' ? idleSession : idleInTransaction);
    return false;
  }
}
