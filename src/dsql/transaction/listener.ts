/** Events of transactions, for metrics and logs. */
import { throwLater } from '../../runtime/throw-later.js';
import type { Conflict, ErrorClass } from '../classify/error-class.js';
import type { ExhaustedReason } from './errors.js';

/** Each call names the operation; attempts count from 1, times are milliseconds. What a call throws is thrown later. */
export interface TransactionListener {
  attemptBegan?(operation: string, attempt: number): void;
  /** An attempt lost a conflict, whether it is retried or not. */
  conflict?(operation: string, conflict: Conflict, attempt: number): void;
  /** `delayMs`: the backoff; waiting for the retry budget comes on top of it. */
  retryScheduled?(operation: string, delayMs: number, error: ErrorClass, attempt: number): void;
  /** Followed by `failed`. */
  exhausted?(operation: string, reason: ExhaustedReason, attempts: number): void;
  /** `latencyMs`: the whole of it, with all attempts and waits. */
  committed?(operation: string, latencyMs: number, attempts: number): void;
  failed?(operation: string, error: ErrorClass, latencyMs: number, attempts: number): void;
}

/** The arguments of a call after the operation. */
export type ListenerNews<Name extends keyof TransactionListener> =
  Parameters<NonNullable<TransactionListener[Name]>> extends [string, ...infer News] ? News : never;

/** Calls a listener; an error that it throws can't stop the transaction. */
export function tellListener<Name extends keyof TransactionListener>(
  listener: TransactionListener | undefined,
  name: Name,
  operation: string,
  ...news: ListenerNews<Name>
): void {
  try {
    const call = listener?.[name] as ((operation: string, ...news: unknown[]) => void) | undefined;
    call?.call(listener, operation, ...news);
  } catch (error) {
    throwLater(error);
  }
}

/** Any number of listeners as one. */
export class TransactionListeners implements Required<TransactionListener> {
  readonly #listeners = new Set<TransactionListener>();

  /** The function returned takes it out again. */
  add(listener: TransactionListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  attemptBegan(operation: string, ...news: ListenerNews<'attemptBegan'>): void {
    this.#tell('attemptBegan', operation, news);
  }

  conflict(operation: string, ...news: ListenerNews<'conflict'>): void {
    this.#tell('conflict', operation, news);
  }

  retryScheduled(operation: string, ...news: ListenerNews<'retryScheduled'>): void {
    this.#tell('retryScheduled', operation, news);
  }

  exhausted(operation: string, ...news: ListenerNews<'exhausted'>): void {
    this.#tell('exhausted', operation, news);
  }

  committed(operation: string, ...news: ListenerNews<'committed'>): void {
    this.#tell('committed', operation, news);
  }

  failed(operation: string, ...news: ListenerNews<'failed'>): void {
    this.#tell('failed', operation, news);
  }

  #tell<Name extends keyof TransactionListener>(
    name: Name,
    operation: string,
    news: ListenerNews<Name>,
  ): void {
    for (const listener of this.#listeners) tellListener(listener, name, operation, ...news);
  }
}
