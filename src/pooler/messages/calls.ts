/** Questions between two processes, in both directions. Each is answered once, has a timeout, and fails when the other side ends. */
import { HeadgateError } from '../../kernel/errors.js';
import { onAbort } from '../../runtime/abort-listeners.js';
import { decodeError, encodeError } from './error-codec.js';
import type { Check } from './message-checks.js';
import type { CallMessage } from './messages.js';

/** The other process has ended, or did not answer in time. */
export class WorkerCallError extends HeadgateError {
  constructor(message: string) {
    super('HG_WORKER_CALL', message);
  }
}

export interface Question {
  readonly check: Check;
  /** The signal fires when the caller no longer waits. */
  answer(body: never, signal: AbortSignal): unknown;
}

export interface CallOptions {
  /** Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Drops the question; the promise rejects with the reason. */
  readonly signal?: AbortSignal | undefined;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly settled: () => void;
}

export class Calls {
  readonly #send: (message: CallMessage) => void;
  readonly #questions: Readonly<Record<string, Question>>;
  readonly #pending = new Map<number, Pending>();
  readonly #underWay = new Map<number, AbortController>();
  #last = 0;
  #isOver = false;

  constructor(send: (message: CallMessage) => void, questions: Readonly<Record<string, Question>>) {
    this.#send = send;
    this.#questions = questions;
  }

  ask(what: string, body: unknown, { timeoutMs, signal }: CallOptions = {}): Promise<unknown> {
    if (this.#isOver) return Promise.reject(gone());
    if (signal?.aborted) return Promise.reject(signal.reason);
    const call = ++this.#last;
    return new Promise((resolve, reject) => {
      const giveUp = (reason: unknown): void => {
        this.#settle(call)?.reject(reason);
        this.#send({ kind: 'drop', call });
      };
      const leave = signal && onAbort(signal, () => giveUp(signal.reason));
      const timer =
        timeoutMs === undefined
          ? undefined
          : setTimeout(
              () => giveUp(new WorkerCallError(`There was no answer within ${timeoutMs} ms.`)),
              timeoutMs,
            ).unref();
      const settled = (): void => {
        clearTimeout(timer);
        leave?.();
      };
      this.#pending.set(call, { resolve, reject, settled });
      this.#send({ kind: 'call', call, what, body });
    });
  }

  /** Handles a call message. */
  came(message: CallMessage): void {
    if (message.kind === 'call') void this.#answer(message.call, message.what, message.body);
    else if (message.kind === 'drop') this.#underWay.get(message.call)?.abort(noLongerWanted());
    else if (message.error === undefined) this.#settle(message.call)?.resolve(message.value);
    else this.#settle(message.call)?.reject(decodeError(message.error));
  }

  /** The other side has ended. */
  end(): void {
    this.#isOver = true;
    for (const call of [...this.#pending.keys()]) this.#settle(call)?.reject(gone());
    for (const abort of this.#underWay.values()) abort.abort(noLongerWanted());
  }

  async #answer(call: number, what: string, body: unknown): Promise<void> {
    const question = Object.hasOwn(this.#questions, what) ? this.#questions[what] : undefined;
    const abort = new AbortController();
    this.#underWay.set(call, abort);
    try {
      if (question?.check(body) !== true) throw new WorkerCallError(`Unknown question ${what}.`);
      const value = await question.answer(body as never, abort.signal);
      if (!this.#isOver) this.#send({ kind: 'answer', call, value });
    } catch (error) {
      if (!this.#isOver) this.#send({ kind: 'answer', call, error: encodeError(error) });
    } finally {
      this.#underWay.delete(call);
    }
  }

  #settle(call: number): Pending | undefined {
    const pending = this.#pending.get(call);
    this.#pending.delete(call);
    pending?.settled();
    return pending;
  }
}

function gone(): WorkerCallError {
  return new WorkerCallError('The other process is gone.');
}

function noLongerWanted(): WorkerCallError {
  return new WorkerCallError('The caller no longer waits for the answer.');
}
