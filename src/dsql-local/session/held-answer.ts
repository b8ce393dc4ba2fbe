/** The answer to a statement that may have to be run again: kept until it is certain. */
import { type ErrorFields, readErrorFields } from '../../wire/error-fields.js';
import { Backend } from '../../wire/message-types.js';
import { type Change, readChange, sizeOf } from '../conflicts/changes.js';
import type { Take } from '../postgres/link.js';
import { OwnState } from '../postgres/setup.js';

/** What an answer may have before it is given up. */
export interface AnswerLimits {
  readonly rows: number;
  readonly bytes: number;
}

const longestAnswer = 64 * 1_048_576;

export class HeldAnswer {
  error: ErrorFields | undefined;
  readonly changes: Change[] = [];
  changedBytes = 0;
  /** More rows were changed, or more bytes answered, than is allowed. */
  isTooMuch = false;
  isSuspended = false;
  readonly #chunks: Buffer[] = [];
  readonly #limits: AnswerLimits;
  readonly #tooMuch: () => void;
  #bytes = 0;
  /** Messages of these types are left out, so often. */
  readonly #leftOut: Map<number, number>;

  constructor(limits: AnswerLimits, tooMuch: () => void, leftOut: readonly number[] = []) {
    this.#limits = limits;
    this.#tooMuch = tooMuch;
    this.#leftOut = new Map();
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
    if (type === Backend.portalSuspended) this.isSuspended = true;
    this.#bytes += end - start;
    if (this.#bytes > longestAnswer) this.#stop();
    else this.#chunks.push(Buffer.from(source.subarray(start, end)));
  };

  /** What is to be sent to the client. */
  bytes(): Buffer {
    return this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
  }

  #noted(fields: ErrorFields): boolean {
    if (fields.code !== OwnState.change) return false;
    const change = readChange(fields);
    if (this.changes.length >= this.#limits.rows) this.#stop();
    else {
      this.changes.push(change);
      this.changedBytes += sizeOf(change);
      if (this.changedBytes > 4 * this.#limits.bytes) this.#stop();
    }
    return true;
  }

  #stop(): void {
    if (this.isTooMuch) return;
    this.isTooMuch = true;
    this.#tooMuch();
  }
}
