/** Parts that one of several pooler processes shares with the others. */
import type { BackendKey } from '../../wire/session-messages.js';
import type { ConnectionRates } from '../budgets/connection-rates.js';
import type { BudgetLeases, Budgets } from '../budgets/server-budgets.js';
import type { ProcessIds } from '../clients/cancel-keys.js';
import type { RunState } from '../console/pooler-view.js';
import type { ConsoleTools } from '../console/run-command.js';
import type { Backend } from '../servers/backend.js';
import type { Opening } from '../servers/opening.js';

type Tools = Omit<ConsoleTools, 'role'>;

/** Notes of server connections, for the other process to use if this one dies. */
export interface ServerNotes {
  /** The socket is connected, or the server has just accepted the login. */
  dialing(opening: Opening, leases: BudgetLeases): void;
  /** The attempt has failed. */
  dialEnded(opening: Opening, leases: BudgetLeases): void;
  /** The connection is open, and has one of these leases. */
  opened(backend: Backend, leases: BudgetLeases): void;
  /** A connection was accepted and is not in use yet. Rejects only if it is lost. */
  entered(backend: Backend): Promise<void>;
}

export interface SharedParts {
  /** Process ids for cancel keys that the other processes don't give out. */
  readonly ids: ProcessIds;
  readonly budgets: Budgets & ServerNotes;
  /** Rate limits for opening connections, shared by all processes. */
  readonly rates: ConnectionRates;
  readonly places: {
    /** Takes a place among the clients of all processes; rejects with a `Refusal`. The returned function gives it back. */
    take(user: string, database: string): Promise<() => void>;
  };
  /** Handles a cancel request whose key is unknown here. Resolves when everything possible is done. */
  cancelElsewhere(key: BackendKey): Promise<void>;
  /** Console tools for all processes, in place of those of this process. */
  consoleOf(here: Tools): Tools;
}

/** State set by earlier console commands. */
export interface Assumed {
  readonly state: RunState;
  readonly paused: readonly string[];
  readonly disabled: readonly string[];
}
