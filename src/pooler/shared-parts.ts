/** What a pooler has together with others, where it is one of several processes; the rest is its own. */
import type { BackendKey } from '../wire/session-messages.js';
import type { PoolerState } from './admin/pooler-view.js';
import type { ConsoleTools } from './admin/run-command.js';
import type { Backend } from './backend/backend.js';
import type { ProcessIds } from './session/cancel-keys.js';
import type { BudgetLeases, Budgets } from './tenants/server-budgets.js';

type Tools = Omit<ConsoleTools, 'role'>;

export interface SharedParts {
  /** Numbers that the others don't give out. */
  readonly ids: ProcessIds;
  readonly budgets: Budgets & {
    /** A server connection is there: it must be known elsewhere, should this process die. */
    opened(backend: Backend, leases: BudgetLeases): void;
  };
  readonly places: {
    /** Takes a place among the clients of all; rejects with a `Refusal`. What it answers gives it back. */
    take(user: string, database: string): Promise<() => void>;
  };
  /** A cancel request with a key that nobody has here. Resolves when all is done that can be done. */
  cancelElsewhere(key: BackendKey): Promise<void>;
  /** What the console works with in place of what is here only. */
  consoleOf(here: Tools): Tools;
}

/** What has been said on the console before. */
export interface Assumed {
  readonly state: PoolerState;
  readonly paused: readonly string[];
  readonly disabled: readonly string[];
}
