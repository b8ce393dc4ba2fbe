/**
 * Enforces timeouts that a client has set and its server refuses. As in PostgreSQL, a slow statement is cancelled (57014), and
 * a client that is idle for too long is disconnected (25P03, 57P05). The statements of one text, or of one batch, count
 * together, since servers answer them together.
 */
import { systemClock } from '../../runtime/system.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { SqlState } from '../../wire/sql-states.js';
import type { KeptSettings } from './kept-settings.js';
import { timeoutNames } from './refused-settings.js';

/** The session to watch. Times are by the clock of the process. */
export interface TimedSession {
  readonly state: 'idle' | 'waiting' | 'active' | 'idle in transaction';
  readonly times: { readonly askedAt: number; readonly idleSince: number };
  cancel(): Promise<void>;
  end(error: ErrorFields): void;
}

/** Time that a server has to react to a cancel request before it is left. */
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
  /** The shortest of the timeouts that are set; checked with each message of the client. */
  #shortest = longestMs;
  /** Time when the running statement was cancelled. */
  #cancelledAt: number | undefined;

  constructor(session: TimedSession, kept: KeptSettings) {
    this.#session = session;
    this.#kept = kept;
    kept.onTimeouts = () => this.#changed();
    this.#changed();
  }

  /** A message of the client was handled. */
  wake(): void {
    if (this.#timer === undefined && !this.#isStopped && this.#shortest < longestMs) this.#look();
  }

  /** Everything is answered. */
  answered(): void {
    this.#cancelledAt = undefined;
  }

  /** Error of a cancelled statement, in the words of the timeout. */
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
    // Not checked now: the statement that sets the timeout is not answered yet, and until then the client seems to have been idle.
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
    // An idle client without a limit is checked at its next message. Any other client may have changed its state by then.
    if (leftMs === Number.POSITIVE_INFINITY && this.#session.state === 'idle') return;
    if (leftMs <= 0 && !this.#act()) return;
    this.#lookIn(Math.min(leftMs > 0 ? leftMs : graceMs, this.#shortest));
  }

  /** Time until the present state has lasted too long. */
  #leftMs(): number {
    const { state, times } = this.#session;
    const { askedAt, idleSince } = times;
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
