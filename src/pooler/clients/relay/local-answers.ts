/**
 * What a client is told while it has no server: that there is nothing to sync, that its transaction has begun (which no server
 * has to know before there is something to do in it), that what it waited for failed.
 *
 * The transaction is the client's alone as long as it is here:
 *
 *     none --BEGIN--> begun --COMMIT or ROLLBACK--> none
 *                     begun --a server is taken--> none (the server is told BEGIN first)
 *                     begun --something is refused--> failed --COMMIT or ROLLBACK--> none
 */

import { beginTagOf, tagOf, transactionWordOf } from '../../../sql/transaction-words.js';
import { type ErrorFields, writeError } from '../../../wire/error-fields.js';
import { readyFailed, readyIdle, readyInTransaction } from '../../../wire/fixed-messages.js';
import type { MessageScanner } from '../../../wire/message-scanner.js';
import { Frontend, headerBytes } from '../../../wire/message-types.js';
import type { MessageWriter } from '../../../wire/message-writer.js';
import { writeCommandComplete } from '../../../wire/rows.js';
import { inFailedTransaction } from '../session-errors.js';

/** Longer queries are certainly no BEGIN; header and final zero included. */
const longestBegin = 40;

/** Answers statements that no server gets to see. */
export interface LocalKeeper {
  /** True when the answer to a Query is written, but for ReadyForQuery; an error where it fails. False: it takes a server. */
  answer(message: MessageScanner, writer: MessageWriter, isInTransaction: boolean): boolean | ErrorFields;
  commit(): void;
  rollback(): void;
}

export class LocalAnswers {
  keeper: LocalKeeper | undefined;
  /** What SET TRANSACTION has said for the transaction that has begun. */
  isReadOnly = false;
  #transaction: 'none' | 'begun' | 'failed' = 'none';
  /** After an error in the extended protocol: all is ignored until the next Sync. */
  #isSkipping = false;
  #refusal: ErrorFields | undefined;

  constructor() {
    this.keeper = undefined;
    this.#refusal = undefined;
  }

  /** The client is in a transaction that no server knows of. */
  get isInTransaction(): boolean {
    return this.#transaction !== 'none';
  }

  /** Nothing that was said here matters for what comes next. */
  get isAtRest(): boolean {
    return this.#transaction === 'none' && !this.#isSkipping && this.#refusal === undefined;
  }

  /** Why the next message fails. */
  refuseNext(error: ErrorFields): void {
    this.#refusal = error;
  }

  /** A server takes over: what it has to be told if a transaction has begun. */
  handOver(): string | undefined {
    const hasBegun = this.#transaction === 'begun';
    this.#transaction = 'none';
    return hasBegun ? (this.isReadOnly ? 'BEGIN READ ONLY' : 'BEGIN') : undefined;
  }

  /** Whether the message is dealt with; what the client is told is written. False: it takes a server. */
  answer(message: MessageScanner, writer: MessageWriter, defersBegin: boolean): boolean {
    switch (message.type) {
      case Frontend.sync:
        this.#isSkipping = false;
        writer.append(this.#ready());
        return true;
      case Frontend.flush:
      case Frontend.copyData:
      case Frontend.copyDone:
      case Frontend.copyFail:
        // After a failed COPY the client may still be sending; a server would ignore it, too.
        return true;
      default:
    }
    if (this.#isSkipping) return true;
    if (this.#refusal !== undefined) return this.#refuse(message, this.#refusal, writer);
    if (message.type === Frontend.query && message.size <= longestBegin && message.isWhole) {
      if (this.#answerWord(message, writer, defersBegin)) return true;
    }
    if (this.#transaction === 'failed') return this.#refuse(message, inFailedTransaction, writer);
    return this.keeper !== undefined && this.#answerKept(this.keeper, message, writer);
  }

  #answerKept(keeper: LocalKeeper, message: MessageScanner, writer: MessageWriter): boolean {
    if (message.type !== Frontend.query) return false;
    const answered = keeper.answer(message, writer, this.#transaction === 'begun');
    if (typeof answered === 'object') return this.#refuse(message, answered, writer);
    if (answered) writer.append(this.#ready());
    return answered;
  }

  #answerWord({ source, start, end }: MessageScanner, writer: MessageWriter, defersBegin: boolean): boolean {
    const textStart = start + headerBytes;
    // Where there is no zero at the end, it is none of these either.
    const textEnd = end - 1;
    if (source[textEnd] !== 0) return false;
    const word = transactionWordOf(source, textStart, textEnd);
    if (word === undefined) return false;
    if (word === 'begin') {
      if (this.#transaction !== 'none' || !defersBegin) return false;
      this.#transaction = 'begun';
      this.isReadOnly = false;
      writeCommandComplete(writer, beginTagOf(source, textStart, textEnd));
    } else {
      if (this.#transaction === 'none') return false;
      const isCommit = word === 'commit' && this.#transaction !== 'failed';
      if (isCommit) this.keeper?.commit();
      else this.keeper?.rollback();
      writeCommandComplete(writer, this.#transaction === 'failed' ? 'ROLLBACK' : tagOf(word));
      this.#transaction = 'none';
    }
    writer.append(this.#ready());
    return true;
  }

  #refuse({ type }: MessageScanner, error: ErrorFields, writer: MessageWriter): boolean {
    this.#refusal = undefined;
    if (this.#transaction === 'begun') this.#transaction = 'failed';
    writeError(writer, error);
    if (type === Frontend.query || type === Frontend.functionCall) writer.append(this.#ready());
    else this.#isSkipping = true;
    return true;
  }

  #ready(): Buffer {
    if (this.#transaction === 'none') return readyIdle;
    return this.#transaction === 'begun' ? readyInTransaction : readyFailed;
  }
}
