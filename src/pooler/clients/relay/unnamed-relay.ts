/**
 * The unnamed statement of one client, on servers that it shares with others. It lives until the next one, or the next Query,
 * and each server has one of its own: a client that prepares in one transaction and binds in the next has to find its own.
 *
 * The client's statement is the one that servers have confirmed. Only within one batch the one that was sent counts: should that fail,
 * then all that follows in the batch is ignored, too.
 *
 * A statement that is bound in a later batch than its Parse has to mean there what it meant when it was parsed, and return what the
 * client was told: another server prepares it with the same parameter types and has to describe it the same. To that end it is described
 * right behind its Parse, unless it is bound at once: most are, and never again. Of these a pool has each text described when it comes
 * first, and every one from the time on that a client of the pool has bound one again. One that is bound again, was not described, and is not
 * on its server any more has to be what the text was for whoever had it described last; otherwise it is refused: nobody knows what it meant.
 */
import { areSameBytes } from '../../../wire/bytes.js';
import type { Backend } from '../../servers/backend.js';
import type { RepeatedStatement, RepeatedStatements } from '../../servers/repeated-statement.js';
import { Asked } from '../../servers/reply-queue.js';
import { parseWithTypes, type StatementShape } from '../../servers/statement-shape.js';
import { UnnamedStatement, unnamedStatement } from '../../servers/unnamed-statement.js';
import type { Settings } from '../../settings/settings.js';
import { Outdated } from './statement-preparer.js';

export class UnnamedRelay {
  #confirmed: UnnamedStatement | undefined;
  /** The server that has parsed it for this client, and which of its unnamed statements it is. */
  #confirmedOn: Backend | undefined;
  #confirmedVersion = 0;
  /** The shape that the client was told, or would have been. */
  #shape: StatementShape | undefined;
  /** The statement was never described for this client: the shape is the last that its text had for another one. */
  #isShapeOfOthers = false;
  /** Parsed in this batch, and neither bound nor described since. */
  #lacksShape = false;
  /** The last one that was parsed was bound in the same batch. */
  #isBoundAtOnce = false;
  /** A server is asked to describe it again. */
  #isCompared = false;
  /** A server has described it otherwise: the client's message waits to be refused. */
  #isOutdated = false;
  /** What was sent last, to whom, and in which turn. */
  #sent: UnnamedStatement | undefined;
  #sentTo: Backend | undefined;
  #sentIn = 0;
  /** The last plain one, and what the session was set to: most clients send the same again and again. */
  #plain: UnnamedStatement | undefined;
  #plainUnder: Settings | undefined;
  #repeated: RepeatedStatement | undefined;
  readonly #statements: RepeatedStatements;

  /** `statements`: those of the client's pool. */
  constructor(statements: RepeatedStatements) {
    this.#statements = statements;
    this.#plain = undefined;
    this.#plainUnder = undefined;
    this.#repeated = undefined;
    this.#confirmed = undefined;
    this.#confirmedOn = undefined;
    this.#shape = undefined;
    this.#sent = undefined;
    this.#sentTo = undefined;
  }

  /** It is one that does nothing to the session; `repeated` where others may have sent it, too, and it need not be parsed each time. */
  keepPlain(plain: UnnamedStatement, settings: Settings, repeated: RepeatedStatement | undefined): void {
    this.#plain = plain;
    this.#plainUnder = settings;
    this.#repeated = repeated;
  }

  /** The last plain one, if a Parse with exactly these bytes means the same as its own. */
  plainOne(source: Buffer, start: number, end: number, settings: Settings): UnnamedStatement | undefined {
    const plain = this.#plain;
    const isSame =
      plain?.parse !== undefined &&
      settings === this.#plainUnder &&
      this.#repeated?.isForgotten !== true &&
      areSameBytes(plain.parse, source, start, end);
    return isSame ? plain : undefined;
  }

  /** What follows the Parse in these bytes, if that is the last plain one's: where it begins, or -1. */
  endOfPlainParse(source: Buffer, start: number, end: number, settings: Settings): number {
    const parseEnd = start + (this.#plain?.parse?.length ?? end);
    return parseEnd < end && this.plainOne(source, start, parseEnd, settings) !== undefined ? parseEnd : -1;
  }

  /** The last plain one. */
  get plain(): UnnamedStatement | undefined {
    return this.#plain;
  }

  /** The same, as all clients of the pool have it. */
  get repeated(): RepeatedStatement | undefined {
    return this.#repeated;
  }

  parse(backend: Backend, unnamed: UnnamedStatement): void {
    this.#send(backend, unnamed);
    this.#lacksShape = true;
    this.#isBoundAtOnce = false;
    backend.expect(Asked.parse, unnamed);
  }

  close(backend: Backend): void {
    this.#send(backend, undefined);
    this.#lacksShape = false;
    backend.expect(Asked.close, unnamedStatement);
  }

  /** The statement is about to be bound. */
  bind(backend: Backend): void {
    if (!this.#lacksShape) return;
    this.#isBoundAtOnce = true;
    if (this.#sent?.wasDescribed === true && !this.#statements.areBoundAgain) this.#lacksShape = false;
    else this.describe(backend);
  }

  /** The client has it described. */
  isDescribed(): void {
    this.#lacksShape = false;
  }

  /** Something comes that may not leave it as it is, or the batch ends: what it means has to be known by then. */
  describe(backend: Backend): void {
    if (!this.#lacksShape) return;
    this.#lacksShape = false;
    const sent = this.#isSentInThisTurn(backend) ? this.#sent : undefined;
    if (sent === undefined || backend.isDiscarding) return;
    sent.wasDescribed = true;
    backend.describeStatement(undefined, sent);
  }

  /** A server has confirmed that the client has another one, or none. `backend`: it has parsed it. */
  changed(unnamed: UnnamedStatement | undefined, backend: Backend | undefined): void {
    this.#confirmed = unnamed;
    this.#confirmOn(backend);
    this.#shape = undefined;
    this.#isCompared = this.#isOutdated = this.#isShapeOfOthers = false;
  }

  /** A server has described it. */
  described(backend: Backend, unnamed: UnnamedStatement, shape: StatementShape | undefined): void {
    if (!this.#isCompared) unnamed.lastShape = shape;
    if (unnamed !== this.#confirmed) return;
    if (this.#isCompared) {
      this.#isOutdated = shape?.key !== this.#shape?.key;
      if (!this.#isOutdated) this.#confirmOn(backend);
    } else this.#shape = shape;
    this.#isCompared = false;
  }

  #confirmOn(backend: Backend | undefined): void {
    this.#confirmedOn = backend;
    this.#confirmedVersion = backend?.unnamedVersion ?? 0;
  }

  /** An earlier batch that may have changed it is not answered yet. */
  isUnsure(backend: Backend): boolean {
    return backend.replies.owesTurn && !this.#isSentInThisTurn(backend);
  }

  /**
   * The client's one, on this server from here on; undefined where the client has none. `later`: the server has to describe it
   * first. `unknown`: what it meant is not known, and nobody has it any more.
   */
  bring(
    backend: Backend,
    isForDescribe: boolean,
  ): UnnamedStatement | Outdated | 'later' | 'unknown' | undefined {
    if (this.#isOutdated) {
      this.#isOutdated = false;
      this.#send(backend, undefined);
      return this.#isShapeOfOthers ? 'unknown' : new Outdated(this.#shape);
    }
    if (this.#isSentInThisTurn(backend)) return this.#sent;
    const unnamed = this.#confirmed;
    if (unnamed === undefined) return undefined;
    if (this.#shape === undefined || this.#isBoundAtOnce) this.#statements.areBoundAgain = true;
    if (this.#confirmedOn === backend && this.#confirmedVersion === backend.unnamedVersion) return unnamed;
    if (unnamed.parse === undefined) return undefined;
    this.#isShapeOfOthers ||= this.#shape === undefined;
    this.#shape ??= unnamed.lastShape;
    const shape = this.#shape;
    if (shape === undefined) return 'unknown';
    this.#confirmedOn = undefined;
    this.#send(backend, unnamed);
    const told = isForDescribe ? shape : undefined;
    backend.expect(Asked.ownParse, new UnnamedStatement(unnamed.parse, unnamed.effects, told));
    backend.toServer.mix().append(parseWithTypes(unnamed.parse, shape));
    this.#isCompared = true;
    backend.describeStatement(undefined, unnamed);
    return 'later';
  }

  #isSentInThisTurn(backend: Backend): boolean {
    return this.#sentTo === backend && this.#sentIn === backend.replies.turnsSent;
  }

  #send(backend: Backend, unnamed: UnnamedStatement | undefined): void {
    this.#sent = unnamed;
    this.#sentTo = backend;
    this.#sentIn = backend.replies.turnsSent;
  }
}
