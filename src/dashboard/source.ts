/** Source of the page: a pooler or a pool. Asked once a second while a browser is connected, and less often otherwise. */
import type { Observation } from './observation.js';

export interface Source {
  readonly name: string;
  readonly kind: 'pooler' | 'pool';
  /** Actions that `act()` offers here. */
  readonly actions: readonly ActionName[];
  /** `top`: the most rows of a list that can be long. Rejects where nothing is known, which is shown. */
  observe(top: number): Observation | Promise<Observation>;
  /** Clients or server connections that match; undefined where there is no such list. */
  list(request: ListRequest): Promise<ListAnswer | undefined>;
  /** Answers what was done, in a few words. Rejects with an error whose message says why not. */
  act(action: Action, signal: AbortSignal): Promise<string>;
  close(): void;
}

export const actionNames = [
  'pause',
  'resume',
  'reconnect',
  'kill',
  'kill_client',
  'disable',
  'enable',
  'drain',
  'set',
  'set_weight',
] as const;
export type ActionName = (typeof actionNames)[number];

export interface Action {
  readonly name: ActionName;
  /** For `pause`, `resume`, `reconnect`, `kill`, `disable` and `enable`; undefined for all databases where that is possible. */
  readonly database?: string | undefined;
  /** For `kill_client`. */
  readonly client?: number | undefined;
  /** For `set_weight`. */
  readonly user?: string | undefined;
  /** For `set`. */
  readonly key?: string | undefined;
  /** For `set` and `set_weight`. */
  readonly value?: string | undefined;
}

export interface ListRequest {
  readonly what: 'clients' | 'servers';
  /** Words that must all be in a row, whatever its case. */
  readonly search: string;
  readonly offset: number;
  readonly limit: number;
}

export interface ListAnswer {
  readonly columns: readonly ListColumn[];
  readonly rows: readonly (readonly (string | number | null)[])[];
  /** How many match, and how many there are. */
  readonly matching: number;
  readonly total: number;
}

export interface ListColumn {
  readonly name: string;
  readonly title: string;
  readonly kind: 'text' | 'number' | 'ms' | 'time';
}
