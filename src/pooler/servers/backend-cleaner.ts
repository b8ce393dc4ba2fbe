/**
 * Cleans a server connection whose client has disconnected: reads what is still owed, ends an open transaction, resets what the
 * client left in the session, and then releases the connection. A connection whose cleaning fails or takes too long is closed.
 */
import type { ErrorFields } from '../../wire/error-fields.js';
import { TransactionStatus } from '../../wire/message-types.js';
import { SqlState } from '../../wire/sql-states.js';
import type { Backend } from './backend.js';
import { Caretaker } from './backend-user.js';

export interface CleaningPlan {
  /** Queries that run one after the other once nothing is owed, where the client may have left something in the session. */
  readonly resets: readonly string[];
  readonly timeoutMs: number;
  /** The connection is clean. */
  done(): void;
  /** The connection can't be cleaned. */
  failed(error: Error): void;
}

const discardAll = 'DISCARD ALL';
const discardAllPattern = /^\s*DISCARD\s+ALL\s*(?:;\s*)?$/i;
const resetSettings = 'SET SESSION AUTHORIZATION DEFAULT; RESET ALL';

/** Aurora DSQL refuses DISCARD and SET SESSION AUTHORIZATION. Its sessions hold only settings and prepared statements. */
const dsqlResetSettings = 'RESET ALL';
const dsqlResetAll = [dsqlResetSettings, 'DEALLOCATE ALL'] as const;

/** How much is cleared away after a client. */
export const Cleaning = {
  nothing: 0,
  /** Settings alone. */
  settings: 1,
  /** Runs the reset query, where there is one. */
  session: 2,
  /** Runs the reset query, where there is one, and always resets settings. */
  sessionAndSettings: 3,
  /** Resets everything a session may hold, whether or not the reset query does. */
  everything: 4,
} as const;
export type Cleaning = (typeof Cleaning)[keyof typeof Cleaning];

/**
 * Queries that remove everything a client left. The effect of a custom `resetQuery` on settings is unknown, so settings are
 * reset as well.
 */
export function resetsOf(resetQuery: string, cleaning: Cleaning, isDsql = false): readonly string[] {
  const all = isDsql ? dsqlResetAll : [discardAll];
  const settings = isDsql ? dsqlResetSettings : resetSettings;
  if (cleaning === Cleaning.nothing || (cleaning === Cleaning.session && resetQuery === '')) return [];
  if (cleaning === Cleaning.settings || (cleaning !== Cleaning.everything && resetQuery === ''))
    return [settings];
  if (resetQuery === '') return all;
  if (discardAllPattern.test(resetQuery)) return isDsql ? all : [resetQuery];
  return cleaning === Cleaning.everything ? [resetQuery, ...all] : [resetQuery, settings];
}

/** Never sent to a client. */
const unfinished: ErrorFields = {
  severity: 'ERROR',
  code: SqlState.connectionFailure,
  message: 'the client is gone',
};

export class BackendCleaner extends Caretaker {
  readonly #backend: Backend;
  readonly #plan: CleaningPlan;
  readonly #timer: NodeJS.Timeout;
  #resetsDone = 0;
  #isOver = false;

  constructor(backend: Backend, plan: CleaningPlan) {
    super();
    this.#backend = backend;
    this.#plan = plan;
    const tooLate = (): void => this.#fail(`It could not be cleaned within ${plan.timeoutMs} ms.`);
    this.#timer = setTimeout(tooLate, plan.timeoutMs).unref();
    backend.user = this;
  }

  begin(): void {
    const backend = this.#backend;
    if (backend.copyIn.isUnderWay) backend.own.failCopy('the client is gone');
    // A Sync alone would commit what the client has not finished.
    if (backend.isUnsynced && !backend.isDiscarding) backend.own.fail(unfinished);
    if (backend.isUnsynced || backend.isDiscarding) backend.own.sync();
    backend.flush();
    backend.resume();
    this.backendSettled(backend);
  }

  override backendSettled(backend: Backend): void {
    // A cancel request in flight might hit one of the pooler's own queries.
    if (this.#isOver || backend.replies.size > 0 || backend.isBeingCancelled) return;
    if (backend.isInDoubt) this.#fail('The state of the server connection is unknown.');
    else if (backend.status !== TransactionStatus.idle) this.#ask('ROLLBACK');
    else if (this.#resetsDone < this.#plan.resets.length)
      this.#ask(this.#plan.resets[this.#resetsDone++] as string);
    else if (backend.isSettled) this.#end(this.#plan.done);
  }

  #ask(text: string): void {
    this.#backend.own.ask(text);
    this.#backend.flush();
  }

  override ownQueryAnswered(error: ErrorFields | undefined): void {
    if (error !== undefined) this.#fail(`Cleaning it failed: ${error.message}`);
    else if (this.#resetsDone > 0) this.#backend.settingsWereReset();
  }

  override backendDrained(): void {
    this.backendSettled(this.#backend);
  }

  override copyInBegan(): void {
    this.#backend.own.failCopy('the client is gone');
  }

  override backendLost(error: Error): void {
    this.#end(() => this.#plan.failed(error));
  }

  #fail(why: string): void {
    this.#end(() => this.#plan.failed(new Error(why)));
  }

  #end(then: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (this.#backend.user === this) this.#backend.user = undefined;
    then();
  }
}
