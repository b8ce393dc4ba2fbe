/**
 * Answers to a client without a server: to a Sync with nothing to sync, to a BEGIN (which a server need not get before the
 * transaction has a statement), and to a message whose wait for a server has failed.
 *
 * The transaction exists only between the client and the pooler until a server is taken:
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

/** Bytes, including header and final zero; longer queries are certainly no BEGIN. */
const longestBegin = 40;

/** Answers statements in the server's place. */
export interface LocalKeeper {
  /** True: the answer to a Query is written, except ReadyForQuery. An error: the statement fails. False: a server is needed. */
  answer(message: MessageScanner, writer: MessageWriter, isInTransaction: boolean): boolean | ErrorFields;
  commit(): void;
  rollback(): void;
}

export class LocalAnswers {
  keeper: LocalKeeper | undefined;
  /** Set by SET TRANSACTION for the transaction that has begun. */
  isReadOnly = false;
  #transaction: 'none' | 'begun' | 'failed' = 'none';
  /** After an error in the extended protocol: everything is ignored until the next Sync. */
  #isSkipping = false;
  #refusal: ErrorFields | undefined;

  /** The client is in a transaction that no server has begun. */
  get isInTransaction(): boolean {
    return this.#transaction !== 'none';
  }

  /** No local state affects the next message. */
  get isAtRest(): boolean {
    return this.#transaction === 'none' && !this.#isSkipping && this.#refusal === undefined;
  }

  /** Makes the next message fail with this error. */
  refuseNext(error: ErrorFields): void {
    this.#refusal = error;
  }

  /** A server takes over. Returns the statement that begins the transaction there, if one has begun. */
  handOver(): string | undefined {
    const hasBegun = this.#transaction === 'begun';
    this.#transaction = 'none';
    return hasBegun ? (this.isReadOnly ? 'BEGIN READ ONLY' : 'BEGIN') : undefined;
  }

  /** Answers a message, and writes the answer for the client. False: a server is needed. */
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
    // Without a zero at the end, the text is malformed.
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
