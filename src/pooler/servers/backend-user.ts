/** Who has a server connection at the moment: a client's session, or whoever cleans up after one. */
import type { ErrorFields } from '../../wire/error-fields.js';
import type { TransactionStatus } from '../../wire/message-types.js';
import type { Backend } from './backend.js';
import type { Outgoing } from './outgoing.js';
import type { Dropped, Subject } from './reply-queue.js';
import type { StatementShape } from './statement-shape.js';
import type { UnnamedStatement } from './unnamed-statement.js';

export interface BackendUser {
  /** Bytes for the client. False: hold on until `backend.resume()`. */
  takeAnswer(answer: Outgoing): boolean;
  /** A statement is complete; the bytes are the message with its tag, and `subject` is what was noted when it was asked. */
  commandCompleted(source: Buffer, start: number, end: number, subject: Subject): void;
  /** Something that the client asked for has failed. */
  errorCame(error: ErrorFields): void;
  /** The error that the client is told in place of the server's; undefined: that one. */
  insteadOf(error: ErrorFields): ErrorFields | undefined;
  /** The server will not answer this: it failed, or was ignored after an error. */
  answerDropped(dropped: Dropped): void;
  /** The server has described a statement: with `subject` it was asked to. Undefined where that is too long to be read. */
  statementDescribed(subject: Subject, shape: StatementShape | undefined): void;
  /** The client has another unnamed statement, or none. `isOnServer`: this server has parsed it. */
  unnamedChanged(unnamed: UnnamedStatement | undefined, isOnServer: boolean): void;
  /** What stood in for the client's statement can't be used: the statement itself is to be asked, behind all else. */
  askAgain(): void;
  /** The tag of a plain answer ends here; only where `wantsTags`. */
  readonly wantsTags: boolean;
  tagCame(source: Buffer, start: number, end: number): void;
  /** A ReadyForQuery for the client. */
  readyCame(status: TransactionStatus): void;
  /** Nothing is owed any more. */
  backendSettled(backend: Backend): void;
  /** The server reports a setting. `isOwn`: the pooler has set it. Whether the client is to hear of it. */
  parameterReported(name: string, value: string, isOwn: boolean): boolean;
  /** The server waits for COPY data. */
  copyInBegan(): void;
  /** An own query of the pooler's is answered; with the error, if it failed, and the row that was asked for. */
  ownQueryAnswered(error: ErrorFields | undefined, row: Subject): void;
  /** The backend can take more, after it could not. */
  backendDrained(): void;
  /** Whether this user loses something with it, and is to hear why it ends. */
  needsBackend(backend: Backend): boolean;
  /** The connection has ended. `fatal`: what the server said last; `isTold`: which was passed to `takeAnswer()`. */
  backendLost(error: Error, fatal: ErrorFields | undefined, isTold: boolean): void;
}

/** Has a connection that no client has: what comes is thrown away. */
export abstract class Caretaker implements BackendUser {
  readonly wantsTags = false;

  abstract backendLost(error: Error, fatal: ErrorFields | undefined, isTold: boolean): void;

  needsBackend(_backend: Backend): boolean {
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
  backendSettled(_backend: Backend): void {}
  copyInBegan(): void {}
  ownQueryAnswered(_error: ErrorFields | undefined, _row: Subject): void {}
  backendDrained(): void {}
}
