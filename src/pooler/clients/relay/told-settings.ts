/** Settings that servers report by themselves, as one client was told them. */
import type { BackendPool } from '../../servers/backend-pool.js';
import type { ClientBounds } from './client-bounds.js';

type Values = ReadonlyMap<string, string>;

/** Servers report these, too, but they can't be set. */
const readOnly = new Set([
  'in_hot_standby',
  'integer_datetimes',
  'is_superuser',
  'server_encoding',
  'server_version',
  'session_authorization',
]);

/** Their values depend on the session's present user. */
const dependent = new Set(['is_superuser', 'session_authorization']);

export class ToldSettings {
  readonly #pool: BackendPool;
  readonly #bounds: ClientBounds;
  /** Immutable; a change replaces it. */
  #all: Values;
  /** Parameters of a new session when the client was last told. */
  #usual: Values | undefined;

  constructor(pool: BackendPool, told: Values, bounds: ClientBounds) {
    this.#pool = pool;
    this.#bounds = bounds;
    this.#all = told;
    this.#usual = pool.parameters;
  }

  get all(): Values {
    return this.#all;
  }

  /** The server reports changes of this setting by itself. */
  isReported(name: string): boolean {
    // The session user can't be set from its report: it takes a privilege, which shows in the statement.
    if (readOnly.has(name)) return false;
    for (const reported of this.#all.keys()) if (reported.toLowerCase() === name) return true;
    return false;
  }

  /** Servers report other parameters for new sessions than before: after a failover, or with a new version. */
  get hasNews(): boolean {
    return this.#pool.parameters !== this.#usual;
  }

  /** Tells the client those parameters that it has not set itself. `isSet`: it has. */
  tellNews(isSet: (name: string) => boolean, tell: (name: string, value: string) => void): void {
    const usual = this.#pool.parameters as Values;
    this.#usual = usual;
    const told = new Map(this.#all);
    for (const [name, value] of usual) {
      if (told.get(name) === value || dependent.has(name) || isSet(name.toLowerCase())) continue;
      told.set(name, value);
      tell(name, value);
    }
    this.#all = told;
  }

  /** Notes a report. Servers may report different settings each: beyond the limit they are passed on but not remembered. Returns whether it is news. */
  note(name: string, value: string): boolean {
    if (this.#all.get(name) === value) return false;
    const told = new Map(this.#all).set(name, value);
    if (sizeOf(told) <= this.#bounds.maxServerParametersSize) this.#all = told;
    return true;
  }
}

export function isReadOnly(name: string): boolean {
  return readOnly.has(name.toLowerCase());
}

function sizeOf(reported: Values): number {
  let size = 0;
  for (const [name, value] of reported) size += name.length + value.length;
  return size;
}
