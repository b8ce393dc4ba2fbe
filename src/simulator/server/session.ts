/** One session: the same thing as its server sees it and as its process sees it, which need not agree at every moment. */
import type { PooledConnection } from '../../core/pooled-connection.js';
import type { Linked } from '../../kernel/linked-list.js';
import type { SlidingWindow } from '../measures/sliding-window.js';

/** The process that a session belongs to, as the server knows it. */
export interface SessionOwner {
  readonly name: string;
  /** The times at which the server accepted connections of this service. */
  readonly accepts: SlidingWindow;
  /** Sessions that the server has. */
  sessions: number;
  /** Sessions that the pool takes to be live and the server has ended: the news are on their way. */
  lostSessions: number;
  /** Sessions that the process has let go of and the server still has: it has not noticed yet. */
  disownedSessions: number;
  sessionDropped(session: Session): void;
}

/** The user of a connection. */
export interface SessionUser {
  /** The connection broke. */
  cutOff(): void;
}

export class Session implements Linked<Session> {
  readonly process: SessionOwner;
  readonly acceptedAt: number;
  /** False once the server has ended the session. */
  isOnServer = true;
  /**
   * The state of the session in its process:
   *
   *     opening --> live --> closing --> gone
   */
  stage: 'opening' | 'live' | 'closing' | 'gone' = 'opening';
  /** Actions that wait for an answer of a connection that hangs; undefined: it answers. */
  #unanswered: (() => void)[] | undefined = undefined;
  /** From when the pool has it. */
  pooled: PooledConnection<Session> | undefined;
  /** The caller that has it at present. */
  caller: SessionUser | undefined;
  previous: Session | undefined;
  next: Session | undefined;

  constructor(process: SessionOwner, acceptedAt: number) {
    this.process = process;
    this.acceptedAt = acceptedAt;
  }

  get isHung(): boolean {
    return this.#unanswered !== undefined;
  }

  /** Nothing on the connection is answered any more, in neither direction. */
  hang(): void {
    this.#unanswered ??= [];
  }

  /** Has something happen now, or when the connection answers again. */
  whenAnswered(action: () => void): void {
    if (this.#unanswered === undefined) action();
    else this.#unanswered.push(action);
  }

  answerAgain(): void {
    const unanswered = this.#unanswered ?? [];
    this.#unanswered = undefined;
    for (const action of unanswered) action();
  }
}
