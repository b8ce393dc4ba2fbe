/** Changes that batches without an answer may make: names of one client's statements, and its settings. */
import type { SettingChange } from '../../../sql/setting-change.js';
import type { Backend } from '../../servers/backend.js';
import type { ClientStatements } from './client-statements.js';

export class UnansweredChanges {
  readonly #named: ClientStatements;
  /** Number of the batch in which a name was last given or taken, until that batch is answered. Most clients never have any. */
  #touched: Map<string, number> | undefined;
  /** Batch and server of the last request that may change a setting. */
  #changedIn = 0;
  #changedOn: Backend | undefined;

  constructor(named: ClientStatements) {
    this.#named = named;
  }

  /** A name is given or taken in the present batch. */
  nameChanges({ replies }: Backend, name: string): void {
    this.#touched ??= new Map();
    this.#touched.set(name, replies.batchesSent);
  }

  /** The client has no statements any more. */
  clear(): void {
    this.#touched = undefined;
  }

  /** A text or a bound portal is about to be sent that may change a setting. */
  changeComes(backend: Backend, change: object | undefined): void {
    if (change === undefined || !setsSomething(change)) return;
    this.#changedIn = backend.replies.batchesSent;
    this.#changedOn = backend;
  }

  /** A setting may have been changed in the present batch: the settings are unknown yet. */
  hasJustChanged(backend: Backend): boolean {
    return this.#changedOn === backend && this.#changedIn === backend.replies.batchesSent;
  }

  /**
   * True if the name was given or taken, or its statement prepared or closed on the server, in an unanswered batch: if the
   * batch fails, that has not happened.
   */
  isUnsure({ replies, statements }: Backend, name: string): boolean {
    if (replies.size === 0) this.#touched = undefined;
    if (!replies.owesBatch) return false;
    const named = this.#named.get(name);
    const isServerUnsure = named !== undefined && statements.isUnsure(named.statement, replies);
    return isServerUnsure || replies.isUnsure(this.#touched?.get(name));
  }

  /** A batch that may change a setting is not answered yet. */
  areSettingsUnsure(backend: Backend): boolean {
    return this.#changedOn === backend && backend.replies.isUnsure(this.#changedIn);
  }
}

/** True for a change that outlasts its transaction. The subject of a Bind may also be a statement to deallocate, which is no change. */
function setsSomething({ changes, resetsAll }: Partial<SettingChange>): boolean {
  return resetsAll === true || (changes !== undefined && changes.size > 0);
}
