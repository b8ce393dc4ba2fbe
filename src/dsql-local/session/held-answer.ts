/** The answer to a statement that may have to be run again: kept until it is certain. */
import { type ErrorFields, readErrorFields } from '../../wire/error-fields.js';
import { Backend } from '../../wire/message-types.js';
import { type Change, readChange, sizeOf } from '../conflicts/changes.js';
import type { Take } from '../postgres/link.js';
import { OwnState } from '../postgres/setup.js';
import { fail, type StatementFailed, sizeExceeded } from './errors.js';
import type { RunOptions } from './run-options.js';

/** Limits above which an answer is given up. */
export interface AnswerLimits {
  readonly rows: number;
  readonly bytes: number;
}

type Excess = 'rows' | 'bytes' | 'answer';

const longestAnswer = 64 * 1_048_576;

export class HeldAnswer {
  error: ErrorFields | undefined;
  readonly changes: Change[] = [];
  changedBytes = 0;
  readonly #options: RunOptions;
  readonly #limits: AnswerLimits;
  readonly #chunks: Buffer[] = [];
  /** Types of the messages that are kept. */
  readonly #types: number[] = [];
  /** Messages of these types are left out, so often. */
  readonly #leftOut = new Map<number, number>();
  #bytes = 0;
  #excess: Excess | undefined;
  #cancelled: Promise<void> | undefined;

  /** `usedRows`: rows that the transaction has changed before. */
  constructor(options: RunOptions, usedRows: number, leftOut: readonly number[] = []) {
    const { rows, bytes } = options.limits;
    this.#options = options;
    this.#limits = { rows: rows - usedRows, bytes };
    for (const type of leftOut) this.#leftOut.set(type, (this.#leftOut.get(type) ?? 0) + 1);
  }

  readonly take: Take = (type, source, start, end) => {
    if (type === Backend.error) {
      this.error ??= readErrorFields(source, start, end);
      return;
    }
    if (type === Backend.notice && this.#noted(readErrorFields(source, start, end))) return;
    const leftOut = this.#leftOut.get(type) ?? 0;
    if (leftOut > 0) {
      this.#leftOut.set(type, leftOut - 1);
      return;
    }
    this.#bytes += end - start;
    if (this.#bytes > longestAnswer) return this.#stop('answer');
    this.#types.push(type);
    this.#chunks.push(Buffer.from(source.subarray(start, end)));
  };

  /** True if PostgreSQL has taken the client's Parse. */
  get isParsed(): boolean {
    return this.#types.includes(Backend.parseComplete);
  }

  /** Throws if there was more than is allowed. The statement is over, and nothing can be cancelled any more. */
  async settle(): Promise<void> {
    await this.#cancelled;
    const failure = this.#failure();
    if (failure !== undefined) throw failure;
  }

  /** Sends to the client what is kept; also before an error, as PostgreSQL does. */
  send(): void {
    const { send, answered } = this.#options;
    send(this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks));
    for (const type of this.#types) answered(type);
    this.#chunks.length = 0;
    this.#types.length = 0;
  }

  #failure(): StatementFailed | undefined {
    if (this.#excess === 'rows') return fail('54000', 'transaction row limit exceeded');
    if (this.#excess === 'bytes') return sizeExceeded(this.changedBytes, this.#limits.bytes);
    if (this.#excess === 'answer')
      return fail(
        '54000',
        `the result of a statement that changes or locks rows exceeds ${longestAnswer} bytes`,
      );
    return undefined;
  }

  #noted(fields: ErrorFields): boolean {
    if (fields.code !== OwnState.change) return false;
    const change = readChange(fields);
    if (this.changes.length >= this.#limits.rows) this.#stop('rows');
    else {
      this.changes.push(change);
      this.changedBytes += sizeOf(change);
      if (this.changedBytes > 4 * this.#limits.bytes) this.#stop('bytes');
    }
    return true;
  }

  #stop(excess: Excess): void {
    if (this.#excess !== undefined) return;
    this.#excess = excess;
    this.#cancelled = this.#options.cancel();
  }
}
