/**
 * The unnamed statement of one client on shared servers. It lives until the next Parse without a name or the next Query, and
 * each server has an unnamed statement of its own. A client that prepares in one transaction and binds in the next must find
 * its own.
 *
 * The client's statement is the one that servers have confirmed. Within one batch, the one that was sent counts: if it fails,
 * everything behind it in the batch is ignored, too.
 *
 * A statement that is bound in a later batch than its Parse must keep the meaning that it had at the Parse, and return what the
 * client was told. Another server therefore prepares it with the same parameter types and has to describe it the same. To learn
 * these, the pooler asks for a description right behind the Parse, unless the statement is bound at once: most are, and never
 * again. Of these, each text of a pool is described when it comes first, and every statement is described once a client of the
 * pool has bound one again. A statement that is bound again, was not described, and is not on its server any more must match
 * the latest description of its text for any client. Otherwise it is refused, because its meaning is unknown.
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
  /** The server that has parsed the statement for this client, and the version of that server's unnamed statement. */
  #confirmedOn: Backend | undefined;
  #confirmedVersion = 0;
  /** Shape that the client was told, or would have been told. */
  #shape: StatementShape | undefined;
  /** The statement was never described for this client: the shape is the latest of its text for another client. */
  #isShapeOfOthers = false;
  /** Parsed in this batch, and not bound or described since. */
  #lacksShape = false;
  /** The last parsed statement was bound in the same batch. */
  #isBoundAtOnce = false;
  /** A server was asked to describe the statement again. */
  #isCompared = false;
  /** A server has described the statement differently: the client's message waits to be refused. */
  #isOutdated = false;
  /** Statement sent last, its server, and the number of its batch. */
  #sent: UnnamedStatement | undefined;
  #sentTo: Backend | undefined;
  #sentIn = 0;
  /** The last plain statement, and the settings it was sent under: most clients repeat the same one. */
  #plain: UnnamedStatement | undefined;
  #plainUnder: Settings | undefined;
  #repeated: RepeatedStatement | undefined;
  readonly #statements: RepeatedStatements;

  /** `statements`: the repeated statements of the client's pool. */
  constructor(statements: RepeatedStatements) {
    this.#statements = statements;
  }

  /** Keeps a plain statement. `repeated` is set where other clients may have sent it, too, and it need not be parsed each time. */
  keepPlain(plain: UnnamedStatement, settings: Settings, repeated: RepeatedStatement | undefined): void {
    this.#plain = plain;
    this.#plainUnder = settings;
    this.#repeated = repeated;
  }

  /** The last plain statement, if a Parse with exactly these bytes means the same. */
  plainOne(source: Buffer, start: number, end: number, settings: Settings): UnnamedStatement | undefined {
    const plain = this.#plain;
    const isSame =
      plain?.parse !== undefined &&
      settings === this.#plainUnder &&
      this.#repeated?.isForgotten !== true &&
      areSameBytes(plain.parse, source, start, end);
    return isSame ? plain : undefined;
  }

  /** End of the last plain statement's Parse, if these bytes begin with it and more follows; otherwise -1. */
  endOfPlainParse(source: Buffer, start: number, end: number, settings: Settings): number {
    const parseEnd = start + (this.#plain?.parse?.length ?? end);
    return parseEnd < end && this.plainOne(source, start, parseEnd, settings) !== undefined ? parseEnd : -1;
  }

  /** The last plain statement. */
  get plain(): UnnamedStatement | undefined {
    return this.#plain;
  }

  /** The last plain statement, in the form that all clients of the pool share. */
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

  /** The client has asked for a description. */
  isDescribed(): void {
    this.#lacksShape = false;
  }

  /** A message that may change the statement comes, or the batch ends: its shape has to be asked for before that. */
  describe(backend: Backend): void {
    if (!this.#lacksShape) return;
    this.#lacksShape = false;
    const sent = this.#isSentInThisBatch(backend) ? this.#sent : undefined;
    if (sent === undefined || backend.isDiscarding) return;
    sent.wasDescribed = true;
    backend.own.describeStatement(undefined, sent);
  }

  /** A server has confirmed that the client has another unnamed statement, or none. `backend`: the server that has parsed it. */
  changed(unnamed: UnnamedStatement | undefined, backend: Backend | undefined): void {
    this.#confirmed = unnamed;
    this.#confirmOn(backend);
    this.#shape = undefined;
    this.#isCompared = this.#isOutdated = this.#isShapeOfOthers = false;
  }

  /** A server has described the statement. */
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

  /** An earlier batch that may have changed the statement is not answered yet. */
  isUnsure(backend: Backend): boolean {
    return backend.replies.owesBatch && !this.#isSentInThisBatch(backend);
  }

  /**
   * Brings the client's unnamed statement to this server; undefined where the client has none. `later`: the server has to
   * describe it first. `unknown`: its meaning is not known, and no server has it any more.
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
    if (this.#isSentInThisBatch(backend)) return this.#sent;
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
    backend.own.describeStatement(undefined, unnamed);
    return 'later';
  }

  #isSentInThisBatch(backend: Backend): boolean {
    return this.#sentTo === backend && this.#sentIn === backend.replies.batchesSent;
  }

  #send(backend: Backend, unnamed: UnnamedStatement | undefined): void {
    this.#sent = unnamed;
    this.#sentTo = backend;
    this.#sentIn = backend.replies.batchesSent;
  }
}
