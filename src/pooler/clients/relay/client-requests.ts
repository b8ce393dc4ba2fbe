/** Bytes of one client on the way to its server: takes or awaits a server connection, and passes the messages on. */

import type { ErrorFields } from '../../../wire/error-fields.js';
import { ProtocolViolationError } from '../../../wire/errors.js';
import { MessageScanner } from '../../../wire/message-scanner.js';
import { Frontend, headerBytes } from '../../../wire/message-types.js';
import { SqlState } from '../../../wire/sql-states.js';
import type { Backend } from '../../servers/backend.js';
import { isCopyMessage } from '../../servers/copy-in.js';
import { type HeavyWork, heavyWork, lookAtPortion, portionIsOver } from '../../servers/heavy-work.js';
import { type PlacedStatement, placedQuery } from '../../servers/placed-statement.js';
import type { PlainText } from '../../servers/plain-texts.js';
import { Asked } from '../../servers/reply-queue.js';
import type { StatementProfile } from '../../servers/statement-times.js';
import type { KeptTimeouts } from '../../settings/kept-timeouts.js';
import * as errors from '../session-errors.js';
import { pipelineCost } from './client-bounds.js';
import { type ClientFlow, Pause } from './client-flow.js';
import type { ClientOutput } from './client-output.js';
import type { HeldInput } from './held-input.js';
import type { LocalAnswers } from './local-answers.js';
import type { MessageRelay } from './message-relay.js';
import { Passing } from './passing.js';
import type { RequestTimes } from './request-times.js';
import type { RunningQuery } from './running-query.js';
import type { ServerSeat } from './server-seat.js';
import type { SessionParts } from './session-parts.js';
import type { SessionTracker } from './session-tracker.js';
import type { StatementRelay } from './statement-relay.js';
import type { StatementSharing } from './statement-sharing.js';

/** Most work on the messages of one client before others are served: 64 messages, or 1,024 of COPY data, which cost little. */
const workAtOnce = 1_024;
const [workOfMessage, workOfCopyData] = [16, 1];
/** A text that is read is a message's work for so many bytes. */
const textPerMessage = 512;
/** Work between two looks at the clock. */
const workPerLook = 128;

/** The session that the requests belong to. */
export interface RequestsOwner {
  readonly isEnding: boolean;
  /** The server owes nothing. */
  settled(backend: Backend): void;
  /** The client has sent Terminate. */
  saidGoodbye(): void;
  end(error: ErrorFields): void;
}

export interface RequestParts {
  readonly seat: ServerSeat;
  readonly sharing: StatementSharing;
  readonly held: HeldInput;
  readonly tracker: SessionTracker;
  readonly local: LocalAnswers;
  readonly statements: StatementRelay;
  readonly messages: MessageRelay;
  readonly flow: ClientFlow;
  readonly output: ClientOutput;
  readonly times: RequestTimes;
  readonly running: RunningQuery | undefined;
  readonly timeouts: KeptTimeouts | undefined;
}

export class ClientRequests implements HeavyWork {
  readonly #owner: RequestsOwner;
  readonly #seat: ServerSeat;
  readonly #sharing: StatementSharing;
  readonly #held: HeldInput;
  readonly #tracker: SessionTracker;
  readonly #local: LocalAnswers;
  readonly #statements: StatementRelay;
  readonly #messages: MessageRelay;
  readonly #flow: ClientFlow;
  readonly #output: ClientOutput;
  readonly #times: RequestTimes;
  readonly #running: RunningQuery | undefined;
  readonly #timeouts: KeptTimeouts | undefined;
  readonly #refusesSimpleQueries: boolean;
  readonly #longestPipeline: number;
  readonly #scanner: MessageScanner;
  /** The rest of the present message, which comes in pieces, goes to the server, too. */
  #passesPieces = false;
  /** Earlier findings about the text of the last plain Query. */
  #text: PlainText | undefined;
  /** The held bytes are a single plain statement. */
  #holdsPlain = false;
  /** The held bytes go on with the next portion, and not before. */
  #isPutOff = false;

  constructor(
    parts: RequestParts,
    { rules, refusesSimpleQueries, bounds }: SessionParts,
    owner: RequestsOwner,
  ) {
    this.#owner = owner;
    this.#seat = parts.seat;
    this.#sharing = parts.sharing;
    this.#held = parts.held;
    this.#tracker = parts.tracker;
    this.#local = parts.local;
    this.#statements = parts.statements;
    this.#messages = parts.messages;
    this.#flow = parts.flow;
    this.#output = parts.output;
    this.#times = parts.times;
    this.#running = parts.running;
    this.#timeouts = parts.timeouts;
    this.#refusesSimpleQueries = refusesSimpleQueries;
    this.#longestPipeline = bounds.maxClientPipelineSize;
    this.#scanner = new MessageScanner(rules);
  }

  /** The server has the beginning of a message, whose rest the client has not sent yet. */
  get isInsideMessage(): boolean {
    return this.#passesPieces;
  }

  bytesCame(source: Buffer, start: number, end: number): void {
    this.#seat.pool.tally.received += end - start;
    this.#flow.took(end - start);
    if (!this.#relayPlain(source, start, end)) this.#relay(source, start, end);
    if (this.#timeouts !== undefined) this.#timeouts.wake();
  }

  /** Continues with held bytes, now or in the next round; false where there are none. */
  goOn(): boolean {
    if (this.#isPutOff) return true;
    const held = this.#held.take();
    if (held === undefined) return false;
    const { backend } = this.#seat;
    const isPlain = this.#holdsPlain && backend !== undefined && this.#seat.prepare(backend);
    this.#holdsPlain = false;
    if (isPlain) this.#askPlain(held, 0, held.length, true);
    else this.#relay(held, 0, held.length);
    this.#held.reuse(held);
    return true;
  }

  /** Sends what was collected while the present bytes were handled. */
  flush(): void {
    this.#output.send();
    const { backend } = this.#seat;
    if (backend === undefined) return;
    if (!backend.flush()) {
      this.#flow.pause(Pause.serverFull);
      if (this.#flow.hasRoom) backend.resume();
    }
    if (backend.replies.size === 0) this.#owner.settled(backend);
  }

  // ---- a single plain statement -----------------------------------------------------------------------------------

  /**
   * Short path for the most common input: a single statement without effect on the session, from a client without a server.
   * False for anything else.
   */
  #relayPlain(source: Buffer, start: number, end: number): boolean {
    const seat = this.#seat;
    if (seat.backend !== undefined || !this.#isPlain(source, start, end)) return false;
    if (this.#gathers(source, start, end)) {
      this.#holdsPlain = true;
      this.#held.hold(source, start, end);
      seat.wait.gather();
    } else if (seat.take()) {
      this.#sharing.shared?.measure();
      this.#askPlain(source, start, end, false);
    } else {
      this.#holdsPlain = true;
      this.#held.hold(source, start, end);
      seat.awaitServer();
      this.flush();
    }
    return true;
  }

  /** A short statement waits for the end of the round where it would share a connection in any case. */
  #gathers(source: Buffer, start: number, end: number): boolean {
    const seat = this.#seat;
    const { pool } = seat;
    const { multiplex } = pool.plan;
    seat.isLong = false;
    if (multiplex === undefined || this.#tracker.pin.isOwn) return false;
    const profile = this.#profileOf(source, start, end);
    this.#sharing.mayShare(profile);
    if (profile === undefined) return false;
    if (profile.usualMs <= multiplex.longestMs) {
      pool.classes.long.shortCame();
      return pool.isCrowded;
    }
    seat.isLong = profile.usualMs !== Number.POSITIVE_INFINITY;
    return false;
  }

  #isPlain(source: Buffer, start: number, end: number): boolean {
    const scanner = this.#scanner;
    if (!this.#local.isAtRest || this.#owner.isEnding) return false;
    if (source[start] !== Frontend.query)
      return scanner.isBetweenMessages && this.#statements.plain.isPlain(source, start, end, scanner.rules);
    return (
      scanner.isWholeMessage(source, start, end) &&
      !this.#refusesSimpleQueries &&
      this.#isPlainQuery(source, start, end)
    );
  }

  /** Reads a whole Query, unless its text is known. */
  #isPlainQuery(source: Buffer, start: number, end: number): boolean {
    const { texts } = this.#seat.pool;
    const [textStart, textEnd] = [start + headerBytes, end - 1];
    this.#text = source[textEnd] === 0 ? texts.find(source, textStart, textEnd) : undefined;
    if (this.#text !== undefined) return true;
    const isPlain = this.#tracker.isPlainQuery(source, start, end);
    if (isPlain) texts.note(source, textStart, textEnd);
    return isPlain;
  }

  /** Usual run time of a statement that `#isPlain()` has accepted; undefined where it may not share a connection. */
  #profileOf(source: Buffer, start: number, end: number): StatementProfile | undefined {
    const text = source[start] === Frontend.query ? this.#text : undefined;
    if (text === undefined) return this.#statements.plain.profileOf(source, start, end);
    const { times, plan } = this.#seat.pool;
    text.profile ??= times.profileOf(source, start + headerBytes, end - 1);
    return text.profile.isRead || plan.multiplex?.sharesWrites === true ? text.profile : undefined;
  }

  #askPlain(source: Buffer, start: number, end: number, hasWaited: boolean): void {
    const seat = this.#seat;
    const backend = seat.backend as Backend;
    if (source[start] === Frontend.query) {
      this.#running?.asksText(source, start + headerBytes, end - 1, backend.replies.owesBatch, this.#text);
      backend.expect(Asked.query);
      backend.toServer.add(source, start, end);
    } else if (!this.#statements.askPlain(backend, source, start, end)) {
      this.#relay(source, start, end);
      return;
    } else seat.awaitsAnswers = this.#statements.plain.mayAskAgain;
    if (hasWaited && this.#sharing.shared !== undefined) this.#sharing.gather(backend, source);
    this.flush();
  }

  /** Writes the held plain statement behind those of others; undefined where the server needs more than one round trip for it. */
  place(backend: Backend, held: Buffer): PlacedStatement | undefined {
    if (this.#timeouts !== undefined || !this.#holdsPlain) return undefined;
    const placed =
      held[0] === Frontend.query ? placedQuery : this.#statements.plain.place(backend, held, 0, held.length);
    if (placed === placedQuery) backend.toServer.add(held, 0, held.length);
    if (placed !== undefined) this.#holdsPlain = false;
    return placed;
  }

  /** The placed statement in these bytes is now the one that runs; for the statistics. */
  countAdopted(held: Buffer): void {
    if (held[0] === Frontend.query)
      this.#running?.asksText(held, headerBytes, held.length - 1, false, this.#text);
    else this.#statements.plain.countAdopted(held);
  }

  // ---- message by message -----------------------------------------------------------------------------------------

  #relay(source: Buffer, start: number, end: number): void {
    if (this.#owner.isEnding) return;
    const scanner = this.#scanner;
    let work = 0;
    let nextLook = workPerLook;
    let endsAt = 0;
    try {
      scanner.push(source, start, end);
      while (scanner.next()) {
        if (scanner.isFirst) {
          if (work >= nextLook) {
            endsAt = lookAtPortion(endsAt);
            nextLook = work + workPerLook;
            if (work >= workAtOnce || endsAt === portionIsOver) {
              this.#putOff(scanner);
              break;
            }
          }
          work += workOf(scanner);
          if (!this.#handle(scanner)) break;
        } else if (this.#passesPieces) {
          this.#seat.backend?.toServer.add(scanner.source, scanner.start, scanner.end);
          this.#passesPieces = !scanner.isLast;
        }
      }
      this.flush();
    } catch (error) {
      if (!(error instanceof ProtocolViolationError)) throw error;
      this.#owner.end({ severity: 'FATAL', code: SqlState.protocolViolation, message: error.message });
    }
  }

  /** Others are served before the rest of this chunk. */
  #putOff(message: MessageScanner): void {
    this.#held.holdBack(message);
    this.#isPutOff = true;
    heavyWork.add(this);
  }

  nextPortion(): void {
    this.#isPutOff = false;
    this.goOn();
  }

  /** False when the rest of this chunk must not be read: it is held, or the client is disconnecting. */
  #handle(message: MessageScanner): boolean {
    this.#passesPieces = false;
    const { type } = message;
    if (type === Frontend.terminate) {
      this.flush();
      this.#owner.saidGoodbye();
      return false;
    }
    const seat = this.#seat;
    const { backend } = seat;
    if (backend?.copyIn.isUnderWay === true) return this.#handleInCopy(backend, message);
    if (backend === undefined && this.#answerLocally(message)) return true;
    if (backend === undefined) seat.isLong = false;
    const isReady = backend === undefined ? seat.take() : seat.prepare(backend);
    if (isReady && type === Frontend.query && this.#refusesSimpleQueries) {
      this.#owner.end(errors.simpleQueryRefused());
      return false;
    }
    if (isReady && this.#ask(seat.backend as Backend, message)) return true;
    this.#held.holdBack(message);
    seat.awaitServer();
    return false;
  }

  /** Answers a message of a client without a server; false where a server is needed. */
  #answerLocally(message: MessageScanner): boolean {
    const { pool, mode } = this.#seat;
    const defersBegin = pool.plan.defersBegin && mode !== 'statement';
    const wasInTransaction = this.#local.isInTransaction;
    if (!this.#local.answer(message, this.#output.writer, defersBegin)) return false;
    this.#times.answeredLocally(!wasInTransaction);
    if (message.type === Frontend.query) this.#statements.unnamedChanged(undefined, undefined);
    return true;
  }

  /** While the server takes COPY data, no message may wait for answers: it would wait for ever. */
  #handleInCopy(backend: Backend, message: MessageScanner): boolean {
    if (isCopyMessage(message.type)) return this.#ask(backend, message);
    // PostgreSQL is out of step after such a message, and hangs up.
    this.#owner.end(errors.noCopyMessage(message.type));
    return false;
  }

  /** False when the message has to wait for answers. */
  #ask(backend: Backend, message: MessageScanner): boolean {
    // After an error the server ignores everything but a Sync, so it need not get the message.
    if (backend.isDiscarding && message.type !== Frontend.sync) {
      if (message.type === Frontend.parse) this.#statements.ignore(backend, message);
      return true;
    }
    const seat = this.#seat;
    if (seat.unanswered > this.#longestPipeline && backend.replies.size > 0) {
      seat.pool.tally.limitReached('max_client_pipeline_size');
      seat.awaitsAnswers = true;
      return false;
    }
    seat.unanswered += pipelineCost(message);
    const passing = this.#messages.pass(backend, message);
    seat.awaitsAnswers = this.#messages.mustWait || passing === Passing.later;
    if (passing === Passing.later) return false;
    if (passing === Passing.asItIs) backend.toServer.add(message.source, message.start, message.end);
    this.#passesPieces = passing !== Passing.none && !message.isLast;
    return true;
  }
}

function workOf({ type, size }: MessageScanner): number {
  if (type === Frontend.copyData) return workOfCopyData;
  const isRead = type === Frontend.query || type === Frontend.parse;
  return isRead ? workOfMessage * (1 + Math.floor(size / textPerMessage)) : workOfMessage;
}
