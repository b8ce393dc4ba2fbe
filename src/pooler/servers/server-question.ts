/** A query of the pooler's own that returns rows, such as a user's password or a server's state. */
import type { ErrorFields } from '../../wire/error-fields.js';
import { sync } from '../../wire/fixed-messages.js';
import { writeBind, writeExecute, writeParse, writeQuery } from '../../wire/frontend-writers.js';
import { MessageScanner } from '../../wire/message-scanner.js';
import { Backend as From, TransactionStatus } from '../../wire/message-types.js';
import { readDataRow } from '../../wire/rows.js';
import { backendRules } from '../../wire/scan-rules.js';
import { OwnQueryError, ServingError } from '../errors.js';
import type { Backend } from './backend.js';
import { Caretaker } from './backend-user.js';
import type { Outgoing } from './outgoing.js';
import { Asked } from './reply-queue.js';

export type TextRow = readonly (string | null)[];

export interface Question {
  /** Purpose of the query, for error texts. */
  readonly what: string;
  readonly text: string;
  /** With values the text is one statement; without, it can be several. */
  readonly values?: readonly (string | null)[];
  /** Limit of rows; further rows are ignored. */
  readonly mostRows?: number;
}

const longestRow = 1_048_576;
/** Limit in bytes for all rows together. */
const mostBytes = 4_194_304;
const rules = backendRules({ dataRow: { wholeUpTo: longestRow } });

/**
 * Sends the question to a server that has no user and owes nothing. When this resolves or rejects, the connection is free again
 * or closed: one that is left in a transaction is unusable.
 */
export function askServer(backend: Backend, question: Question): Promise<TextRow[]> {
  return new Promise((resolve, reject) => {
    const asker = new Asker(backend, question, resolve, reject);
    backend.user = asker;
    asker.ask();
  });
}

class Asker extends Caretaker {
  readonly #backend: Backend;
  readonly #question: Question;
  readonly #resolve: (rows: TextRow[]) => void;
  readonly #reject: (error: Error) => void;
  readonly #scanner = new MessageScanner(rules);
  readonly #rows: TextRow[] = [];
  #size = 0;
  #error: ErrorFields | undefined;

  constructor(
    backend: Backend,
    question: Question,
    resolve: (rows: TextRow[]) => void,
    reject: (error: Error) => void,
  ) {
    super();
    this.#backend = backend;
    this.#question = question;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  ask(): void {
    const backend = this.#backend;
    const { text, values } = this.#question;
    const writer = backend.toServer.mix();
    backend.own.replacesUnnamed();
    if (values === undefined) {
      backend.expect(Asked.query);
      writeQuery(writer, text);
    } else {
      for (const asked of [Asked.parse, Asked.bind, Asked.execute, Asked.sync]) backend.expect(asked);
      writeParse(writer, { text });
      writeBind(writer, { values });
      writeExecute(writer);
      writer.append(sync);
    }
    backend.flush();
  }

  override takeAnswer(answer: Outgoing): boolean {
    const bytes = answer.take();
    this.#scanner.push(bytes);
    while (this.#scanner.next()) this.#read(this.#scanner);
    return true;
  }

  #read({ type, source, start, end, isWhole }: MessageScanner): void {
    const { mostRows = 1_000 } = this.#question;
    this.#size += end - start;
    if (type !== From.dataRow || !isWhole || this.#rows.length >= mostRows || this.#size > mostBytes) return;
    this.#rows.push(readDataRow(source, start, end).map((value) => value?.toString('utf8') ?? null));
  }

  override errorCame(error: ErrorFields): void {
    this.#error = error;
  }

  override backendSettled(backend: Backend): void {
    if (backend.status !== TransactionStatus.idle) {
      backend.destroy(new ServingError(`${this.#question.what} left a transaction open.`));
      return;
    }
    if (!backend.isSettled) return;
    backend.user = undefined;
    if (this.#error === undefined) this.#resolve(this.#rows);
    else this.#reject(new OwnQueryError(this.#question.what, this.#error));
  }

  override backendDrained(): void {
    if (this.#backend.replies.size === 0) this.backendSettled(this.#backend);
  }

  override backendLost(error: Error): void {
    this.#reject(error);
  }
}
