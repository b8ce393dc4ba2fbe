/**
 * Settings of one client that its server refuses, with PostgreSQL's rules: SET lasts for the session and is undone by a
 * rollback, SET LOCAL lasts for the transaction.
 */
import { refusedSettings, type TimeoutName, timeoutNames } from './refused-settings.js';
import { millisecondsOf } from './time-value.js';

type Values = ReadonlyMap<string, string>;

/** In milliseconds; 0: none. */
export type Timeouts = Readonly<Record<TimeoutName, number>>;

const noTimeouts: Timeouts = {
  statement_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  idle_session_timeout: 0,
};

export class KeptSettings {
  /** Called when a timeout has changed. */
  onTimeouts: (() => void) | undefined;
  readonly #start: Values;
  /** Immutable; a change replaces it. */
  #session: Values;
  #local: Values | undefined;
  /** Values before the present transaction. */
  #before: Values | undefined;
  #timeouts: Timeouts;

  /** `start`: settings of the startup packet, by lower-case name, in PostgreSQL's notation. */
  constructor(start: Values) {
    this.#start = start;
    this.#session = start;
    this.#timeouts = this.#readTimeouts();
  }

  get timeouts(): Timeouts {
    return this.#timeouts;
  }

  /** Undefined where the server has to answer. */
  get(name: string): string | undefined {
    return this.#local?.get(name) ?? this.#session.get(name) ?? refusedSettings.get(name)?.usual;
  }

  /** The value that RESET restores. */
  atStart(name: string): string | undefined {
    return this.#start.get(name) ?? refusedSettings.get(name)?.usual;
  }

  /** `value` undefined: the value at the start. */
  set(name: string, value: string | undefined, isLocal: boolean): void {
    const is = value ?? this.atStart(name);
    if (isLocal) this.#local = withOne(this.#local ?? new Map(), name, is);
    else {
      this.#before ??= this.#session;
      this.#session = withOne(this.#session, name, is);
      if (this.#local?.has(name)) this.#local = withOne(this.#local, name, undefined);
    }
    this.#changed();
  }

  resetAll(): void {
    this.#before ??= this.#session;
    this.#session = this.#start;
    this.#local = undefined;
    this.#changed();
  }

  /** Keeps the values that were set, except for SET LOCAL. */
  commit(): void {
    this.#before = undefined;
    if (this.#local === undefined) return;
    this.#local = undefined;
    this.#changed();
  }

  /** The server is ready, and in no transaction. */
  transactionOver(hasFailed: boolean): void {
    if (hasFailed) this.rollback();
    else this.commit();
  }

  rollback(): void {
    if (this.#before === undefined && this.#local === undefined) return;
    this.#session = this.#before ?? this.#session;
    this.#before = this.#local = undefined;
    this.#changed();
  }

  #changed(): void {
    const before = this.#timeouts;
    this.#timeouts = this.#readTimeouts();
    if (timeoutNames.some((name) => before[name] !== this.#timeouts[name])) this.onTimeouts?.();
  }

  #readTimeouts(): Timeouts {
    if (this.#session.size === 0 && this.#local === undefined) return noTimeouts;
    const of = (name: TimeoutName): number => millisecondsOf(this.get(name));
    return {
      statement_timeout: of('statement_timeout'),
      idle_in_transaction_session_timeout: of('idle_in_transaction_session_timeout'),
      idle_session_timeout: of('idle_session_timeout'),
    };
  }
}

function withOne(values: Values, name: string, value: string | undefined): Values {
  const changed = new Map(values);
  if (value === undefined) changed.delete(name);
  else changed.set(name, value);
  return changed;
}
