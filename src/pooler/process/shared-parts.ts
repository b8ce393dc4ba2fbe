/** What a pooler has together with others, where it is one of several processes; the rest is its own. */
import type { BackendKey } from '../../wire/session-messages.js';
import type { ConnectionRates } from '../budgets/connection-rates.js';
import type { BudgetLeases, Budgets } from '../budgets/server-budgets.js';
import type { ProcessIds } from '../clients/cancel-keys.js';
import type { RunState } from '../console/pooler-view.js';
import type { ConsoleTools } from '../console/run-command.js';
import type { Backend } from '../servers/backend.js';
import type { Opening } from '../servers/opening.js';

type Tools = Omit<ConsoleTools, 'role'>;

/** Notes of server connections that have to be known elsewhere, should this process die. */
export interface ServerNotes {
  /** Its socket is connected, or the server has just let it in. */
  dialing(opening: Opening, leases: BudgetLeases): void;
  /** The attempt has failed. */
  dialEnded(opening: Opening, leases: BudgetLeases): void;
  /** The connection is open, and has one of these leases. */
  opened(backend: Backend, leases: BudgetLeases): void;
  /** A connection was let in, and nobody uses it yet. Rejects only if it is lost. */
  entered(backend: Backend): Promise<void>;
}

export interface SharedParts {
  /** Numbers that the others don't give out. */
  readonly ids: ProcessIds;
  readonly budgets: Budgets & ServerNotes;
  /** How fast all of them together may open connections. */
  readonly rates: ConnectionRates;
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
  readonly state: RunState;
  readonly paused: readonly string[];
  readonly disabled: readonly string[];
}
