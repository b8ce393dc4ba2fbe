/** The client that the function of a transaction gets: as it is, but for what would take the transaction from under it. */
import { soon } from '../../runtime/soon.js';
import { statementKind } from '../../sql/statement-kind.js';
import { classifyError } from '../classify/classify-error.js';
import { TransactionMisuseError } from './errors.js';
import type { CheckedOutClient, TransactionClient } from './pg-shapes.js';

/** A savepoint is part of a transaction, and does not end it. */
const savepoint = /^\s*(savepoint|release|rollback\s+((work|transaction)\s+)?to)\b[^;]*(?:;\s*)?$/i;

type Query = (...args: unknown[]) => unknown;

export class GuardedClient {
  readonly client: TransactionClient;
  readonly #target: CheckedOutClient;
  #isOver = false;
  /** The first error of a statement. */
  firstError: unknown;
  /** A statement got no answer: the connection can't be used any more. */
  isLost = false;

  constructor(target: CheckedOutClient) {
    this.#target = target;
    const refuseRelease = (): never => {
      throw new TransactionMisuseError(this.#isOver ? 'ended' : 'release');
    };
    const own: Readonly<Record<string | symbol, unknown>> = {
      query: (...args: unknown[]) => this.#query(args),
      release: refuseRelease,
      end: refuseRelease,
      connect: refuseRelease,
      [Symbol.asyncDispose]: refuseRelease,
    };
    this.client = new Proxy(target, {
      get: (_, name, receiver) =>
        Object.hasOwn(own, name) ? own[name] : Reflect.get(target, name, receiver),
    }) as unknown as TransactionClient;
  }

  /** From here on every query is refused. */
  close(): void {
    this.#isOver = true;
  }

  #query(args: unknown[]): unknown {
    if (this.#isOver) return refuse(args, new TransactionMisuseError('ended'));
    if (controlsTransaction(args[0])) return refuse(args, new TransactionMisuseError('control'));
    const index = args.findIndex((arg) => typeof arg === 'function');
    if (index >= 0) args[index] = this.#watched(args[index] as Query);
    const answer = (this.#target.query as Query).apply(this.#target, args);
    if (!(answer instanceof Object) || typeof (answer as PromiseLike<unknown>).then !== 'function')
      return answer;
    return (answer as Promise<unknown>).then(undefined, (error: unknown) => {
      this.#note(error);
      throw error;
    });
  }

  #watched(callback: Query): Query {
    return (error, ...rest) => {
      if (error) this.#note(error);
      return callback(error, ...rest);
    };
  }

  #note(error: unknown): void {
    this.firstError ??= error;
    if (leavesNoAnswer(error)) this.isLost = true;
  }
}

/** True if the server has not answered, or has said that it hangs up. */
export function leavesNoAnswer(error: unknown): boolean {
  const { class: name, sqlState } = classifyError(error);
  if (sqlState !== undefined) return /^(08|57P)/.test(sqlState);
  return name === 'unavailable' || name === 'outcome_unknown';
}

function controlsTransaction(query: unknown): boolean {
  const text = typeof query === 'string' ? query : (query as { text?: unknown } | null | undefined)?.text;
  return typeof text === 'string' && statementKind(text) === 'transaction' && !savepoint.test(text);
}

/** In the form in which the caller wants its answer. */
function refuse(args: readonly unknown[], error: Error): unknown {
  const callback = args.find((arg) => typeof arg === 'function') as Query | undefined;
  if (callback === undefined) return Promise.reject(error);
  soon(callback, error);
  return undefined;
}
