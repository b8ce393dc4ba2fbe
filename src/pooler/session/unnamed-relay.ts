/**
 * The unnamed statement of one client, on servers that it shares with others. It lives until the next one, or the next Query,
 * and each server has one of its own: a client that prepares in one transaction and binds in the next has to find its own.
 *
 * What the client has is what the servers have confirmed. Only within one turn it counts what was sent: should that fail,
 * then all that follows in the turn is ignored, too.
 */
import { areSameBytes } from '../../wire/bytes.js';
import type { Backend } from '../backend/backend.js';
import type { RepeatedStatement } from '../backend/repeated-statement.js';
import { Asked } from '../backend/reply-queue.js';
import { type UnnamedStatement, unnamedStatement } from '../backend/unnamed-statement.js';
import type { Settings } from '../settings.js';

export class UnnamedRelay {
  #confirmed: UnnamedStatement | undefined;
  /** What was sent last, to whom, and in which turn. */
  #sent: UnnamedStatement | undefined;
  #sentTo: Backend | undefined;
  #sentIn = 0;
  /** The last plain one, and what the session was set to: most clients send the same again and again. */
  #plain: UnnamedStatement | undefined;
  #plainUnder: Settings | undefined;
  #repeated: RepeatedStatement | undefined;

  constructor() {
    this.#plain = undefined;
    this.#plainUnder = undefined;
    this.#repeated = undefined;
    this.#confirmed = undefined;
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
    backend.expect(Asked.parse, unnamed);
  }

  close(backend: Backend): void {
    this.#send(backend, undefined);
    backend.expect(Asked.close, unnamedStatement);
  }

  /** A server has confirmed that the client has another one, or none. */
  changed(unnamed: UnnamedStatement | undefined): void {
    this.#confirmed = unnamed;
  }

  /** What an earlier turn has made of it is not known yet. */
  isUnsure(backend: Backend): boolean {
    return backend.replies.owesTurn && !this.#isSentInThisTurn(backend);
  }

  /** The client's one, on this server from here on; undefined where the client has none. */
  bring(backend: Backend): UnnamedStatement | undefined {
    if (this.#isSentInThisTurn(backend)) return this.#sent;
    const unnamed = this.#confirmed;
    if (unnamed === undefined || unnamed === backend.unnamedStatement) return unnamed;
    if (unnamed.parse === undefined) return undefined;
    this.#send(backend, unnamed);
    backend.expect(Asked.ownParse, unnamed);
    backend.toServer.mix().append(unnamed.parse);
    return unnamed;
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
