/**
 * The statement of one client on a connection that it shares: while every connection is in use, statements of several clients that
 * wait are sent back to back, each with an end of its own, and the connection goes from one client to the next as they are answered.
 *
 *     none --sent behind others--> placed --all ahead is answered--> running --answered--> none
 *     none --others are sent behind it--> running
 *
 * What was sent is kept until it is answered. It is sent once more, alone, where the server has ended before it came to it, and where a
 * cancel request for a statement ahead has hit this one.
 */
import { systemClock } from '../../../runtime/system.js';
import { MessageWriter } from '../../../wire/message-writer.js';
import { SqlState } from '../../../wire/sql-states.js';
import { AbandonedStatement } from '../../servers/abandoned-statement.js';
import type { Backend, Follower } from '../../servers/backend.js';
import type { BackendPool } from '../../servers/backend-pool.js';
import type { Outgoing } from '../../servers/outgoing.js';
import type { PlacedStatement } from '../../servers/placed-statement.js';
import type { StatementProfile } from '../../servers/statement-times.js';

/** So much of an answer is kept until it is known whether a cancel request has hit its statement. */
const mostKept = 1_048_576;

/** The client whose statement it is. */
export interface SharingClient {
  readonly clientId: number;
  readonly pool: BackendPool;
  /** The connection is this client's from here on, and its statement is the one that runs. */
  adopt(backend: Backend, generation: number): void;
  /** Its statement was not run: it waits for a connection once more. */
  waitAgain(): void;
  /** Nobody knows whether its statement was run. */
  statementLost(error: Error): void;
}

export class SharedTurn implements Follower {
  #client: SharingClient | undefined;
  readonly #pool: BackendPool;
  /** Of the statement that waits, or was sent last; undefined where it may not share. */
  profile: StatementProfile | undefined;
  /** Runs alone the next time. */
  isAlone = false;
  #state: 'none' | 'placed' | 'running' = 'none';
  #placed: PlacedStatement | undefined;
  #placedAt = 0;
  #backend: Backend | undefined;
  #bytes: Buffer | undefined;
  /** The time that the statement takes is noted. */
  #isMeasured = false;
  #wantsCancel = false;
  #hasAskedCancel = false;
  #mayBeHit = false;
  #isToRunAgain = false;
  /** The beginning of an answer that may yet turn out to be one of a statement that was hit. */
  #kept: MessageWriter | undefined;

  constructor(client: SharingClient) {
    this.#client = client;
    this.#pool = client.pool;
    this.profile = undefined;
    this.#placed = undefined;
    this.#bytes = undefined;
    this.#kept = undefined;
    this.#backend = undefined;
  }

  get clientId(): number | undefined {
    return this.#client?.clientId;
  }

  /** Sent, and behind others. */
  get isPlaced(): boolean {
    return this.#state === 'placed';
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** The connection that it was sent to, behind others. */
  get serverId(): number | undefined {
    return this.isPlaced ? this.#backend?.id : undefined;
  }

  /** Since when it is behind others. */
  get placedAt(): number {
    return this.#placedAt;
  }

  /** What was sent, until it is answered. */
  get bytes(): Buffer | undefined {
    return this.#bytes;
  }

  // ---- sent -------------------------------------------------------------------------------------------------------

  /** It was sent behind others. */
  place(placed: PlacedStatement, backend: Backend): void {
    this.#state = 'placed';
    this.#placed = placed;
    this.#backend = backend;
    this.#placedAt = systemClock.coarse();
  }

  /** The statement of these bytes runs, with others behind it or not. */
  run(bytes: Buffer): void {
    this.#state = 'running';
    this.#bytes = bytes;
  }

  /** It begins now. */
  measure(): void {
    this.#isMeasured = this.profile !== undefined;
  }

  takeOver(backend: Backend, generation: number): void {
    const placed = this.#placed as PlacedStatement;
    const client = this.#client;
    this.#placed = undefined;
    if (client === undefined) new AbandonedStatement(this.#pool, backend, generation);
    else client.adopt(backend, generation);
    placed.expect(backend);
    if (client === undefined) return;
    this.measure();
    if (!this.#wantsCancel) return;
    this.#wantsCancel = false;
    void this.cancel(backend);
  }

  /** Its client leaves: what was sent stays where it is, and its answer goes nowhere. */
  abandon(): void {
    this.#client = undefined;
  }

  // ---- cancelling -------------------------------------------------------------------------------------------------

  /** The client wants it cancelled, once it runs. */
  cancelLater(): void {
    this.#wantsCancel = true;
  }

  /** It is the one that runs. Resolves when the server has been told. */
  cancel(backend: Backend): Promise<void> {
    this.#hasAskedCancel = true;
    return this.#pool.canceller.cancel(backend);
  }

  get isToBeCancelled(): boolean {
    return this.#wantsCancel;
  }

  mayBeHit(): void {
    this.#mayBeHit = true;
  }

  /** What stands in for the statement can't be used, and others are behind it. */
  runAgain(): void {
    this.#isToRunAgain = true;
  }

  /** The statement has failed; whether that is for the client. */
  failed(code: string): boolean {
    this.#isMeasured = false;
    if (!this.#mayBeHit || this.#hasAskedCancel || code !== SqlState.queryCanceled) return true;
    this.#isToRunAgain = true;
    return false;
  }

  // ---- answers ----------------------------------------------------------------------------------------------------

  /** A part of the answer came. Undefined: it is to be sent as usual. Otherwise what is to be sent in its place, if anything. */
  filter(answer: Outgoing, isLast: boolean): MessageWriter | 'nothing' | undefined {
    if (this.#isToRunAgain) {
      answer.clear();
      return 'nothing';
    }
    if (!this.#mayBeHit || (isLast && this.#kept === undefined)) return undefined;
    this.#kept ??= new MessageWriter();
    this.#kept.append(answer.take());
    if (!isLast && this.#kept.length < mostKept) return 'nothing';
    // What the client has a part of can't be run again.
    this.#mayBeHit = false;
    const kept = this.#kept;
    this.#kept = undefined;
    return kept;
  }

  /** The server is ready. */
  answered(ms: number): void {
    if (this.#isMeasured && !this.#isToRunAgain) this.profile?.took(ms);
    this.#isMeasured = false;
  }

  /** All of the answer was passed on; the bytes that are to be sent again, if any. */
  end(): Buffer | undefined {
    const again = this.#isToRunAgain ? this.#bytes : undefined;
    if (again !== undefined) this.#pool.tally.multiplexedAgain++;
    this.isAlone = again !== undefined;
    this.#state = 'none';
    this.#bytes = this.#backend = undefined;
    this.#kept = undefined;
    this.#isToRunAgain = this.#mayBeHit = this.#hasAskedCancel = this.#wantsCancel = false;
    return again;
  }

  serverLost(error: Error, hasNotBegun: boolean): void {
    const client = this.#client;
    const isRunAgain = hasNotBegun || this.profile?.isRead === true;
    this.#placed = undefined;
    this.end();
    if (client === undefined) return;
    if (!isRunAgain) {
      client.statementLost(error);
      return;
    }
    this.#pool.tally.multiplexedAgain++;
    client.waitAgain();
  }
}
