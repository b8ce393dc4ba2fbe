/** The present user of a server connection: a client's session, or the caretaker that cleans up after one. */
import type { ErrorFields } from '../../wire/error-fields.js';
import type { TransactionStatus } from '../../wire/message-types.js';
import type { Outgoing } from './outgoing.js';
import type { Dropped, Subject } from './reply-queue.js';
import type { StatementShape } from './statement-shape.js';
import type { UnnamedStatement } from './unnamed-statement.js';

/** The server connection in use, as far as its user knows it. Implementations are given the `Backend`. */
export interface HeldServer {
  readonly id: number;
}

export interface BackendUser {
  /** Bytes for the client. False: the backend stops reading until `backend.resume()`. */
  takeAnswer(answer: Outgoing): boolean;
  /** A statement is complete. The bytes are the message with its tag; `subject` was noted when the statement was sent. */
  commandCompleted(source: Buffer, start: number, end: number, subject: Subject): void;
  /** A request of the client's has failed. */
  errorCame(error: ErrorFields): void;
  /** Error that the client is told in place of the server's; undefined passes on the server's. */
  insteadOf(error: ErrorFields): ErrorFields | undefined;
  /** The server will not answer this request: it failed, or was ignored after an error. */
  answerDropped(dropped: Dropped): void;
  /**
   * The server has described a statement, which it was asked to with `subject`. `shape` is undefined if the description is too
   * long to be read.
   */
  statementDescribed(subject: Subject, shape: StatementShape | undefined): void;
  /** The client has another unnamed statement, or none. `isOnServer`: this server has parsed it. */
  unnamedChanged(unnamed: UnnamedStatement | undefined, isOnServer: boolean): void;
  /** The statement that stood in for the client's can't be used: the client's own is to be sent, behind all else. */
  askAgain(): void;
  /** A tag of a plain answer ends here; called only where `wantsTags`. */
  readonly wantsTags: boolean;
  tagCame(source: Buffer, start: number, end: number): void;
  /** A ReadyForQuery for the client. */
  readyCame(status: TransactionStatus): void;
  /** The server owes nothing any more. */
  backendSettled(server: HeldServer): void;
  /** The server reports a setting. `isOwn`: the pooler has set it. Returns whether the client is told. */
  parameterReported(name: string, value: string, isOwn: boolean): boolean;
  /** The server waits for COPY data. */
  copyInBegan(): void;
  /** One of the pooler's own queries is answered, with its error if it failed, and the row that was asked for. */
  ownQueryAnswered(error: ErrorFields | undefined, row: Subject): void;
  /** The backend accepts more bytes after it had refused them. */
  backendDrained(): void;
  /** True if this user loses something with the connection, and must be told why it ends. */
  needsBackend(server: HeldServer): boolean;
  /** The connection has ended. `fatal`: the server's last error; `isTold`: it was passed to `takeAnswer()`. */
  backendLost(error: Error, fatal: ErrorFields | undefined, isTold: boolean): void;
}

/** User of a connection without a client: discards everything that arrives. */
export abstract class Caretaker implements BackendUser {
  readonly wantsTags = false;

  abstract backendLost(error: Error, fatal: ErrorFields | undefined, isTold: boolean): void;

  needsBackend(_server: HeldServer): boolean {
    return true;
  }

  takeAnswer(answer: Outgoing): boolean {
    answer.clear();
    return true;
  }

  parameterReported(_name: string, _value: string, _isOwn: boolean): boolean {
    return false;
  }

  commandCompleted(_source: Buffer, _start: number, _end: number, _subject: Subject): void {}
  errorCame(_error: ErrorFields): void {}
  insteadOf(_error: ErrorFields): ErrorFields | undefined {
    return undefined;
  }
  answerDropped(_dropped: Dropped): void {}
  statementDescribed(_subject: Subject, _shape: StatementShape | undefined): void {}
  unnamedChanged(_unnamed: UnnamedStatement | undefined, _isOnServer: boolean): void {}
  askAgain(): void {}
  tagCame(_source: Buffer, _start: number, _end: number): void {}
  readyCame(_status: TransactionStatus): void {}
  backendSettled(_server: HeldServer): void {}
  copyInBegan(): void {}
  ownQueryAnswered(_error: ErrorFields | undefined, _row: Subject): void {}
  backendDrained(): void {}
}
