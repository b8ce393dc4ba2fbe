/** Refuses requests of one client for its statements. */
import type { ErrorFields } from '../../../wire/error-fields.js';
import { SqlState } from '../../../wire/sql-states.js';
import type { MemoryLimit } from '../../config/memory-limits.js';
import { alsoAs } from '../../own-error.js';
import type { Backend } from '../../servers/backend.js';
import { ownErrorReasonOf } from '../failure-words.js';
import { forgottenUnnamed, noUnnamed, outdatedStatement } from '../session-errors.js';
import { Passing } from './passing.js';
import type { StatementOwner } from './statement-preparer.js';

export class StatementRefusals {
  readonly #owner: StatementOwner;
  #hasMetLimit = false;

  constructor(owner: StatementOwner) {
    this.#owner = owner;
  }

  unnamed(backend: Backend, why: 'unknown' | undefined): Passing {
    if (why === 'unknown')
      this.#owner.pool.tally.ownErrorCame(forgottenUnnamed.code, ownErrorReasonOf(forgottenUnnamed));
    backend.own.fail(why === 'unknown' ? forgottenUnnamed : noUnnamed);
    return Passing.none;
  }

  outdated(backend: Backend): Passing {
    backend.own.fail(outdatedStatement);
    return Passing.none;
  }

  unknown(backend: Backend, name: string): Passing {
    const text = `prepared statement "${name}" does not exist`;
    return this.refuse(backend, SqlState.invalidStatementName, text, 'prepared statement did not exist');
  }

  /** Logged once per client; further refusals tell nothing new. */
  forLimit(backend: Backend, limit: MemoryLimit, error: ErrorFields): Passing {
    this.#owner.pool.tally.limitReached(limit);
    if (!this.#hasMetLimit) this.#owner.failed(error);
    this.#hasMetLimit = true;
    backend.own.fail(error);
    return Passing.none;
  }

  /** Makes the server fail on something that does not exist; the client gets this error in place of the server's. */
  refuse(backend: Backend, code: string, message: string, asPgBouncer?: string): Passing {
    const plain = failure(code, message);
    const error = asPgBouncer === undefined ? plain : alsoAs(asPgBouncer, plain);
    if (!this.#owner.endsWith(error)) backend.own.fail(error);
    return Passing.none;
  }
}

function failure(code: string, message: string): ErrorFields {
  return { severity: 'ERROR', code, message };
}
