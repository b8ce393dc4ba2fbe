/**
 * One client's statement on a shared connection. While every connection is in use, statements of several waiting clients are sent
 * back to back, each in a batch of its own, and the connection is handed from one client to the next as they are answered.
 *
 *     none --sent behind others--> placed --all ahead is answered--> running --answered--> none
 *     none --others are sent behind it--> running
 *
 * The sent bytes are kept until they are answered. The statement is sent once more, alone, if the connection ended before the server
 * reached it, or if a cancel request for a statement ahead has hit this one. Alone, because `ClientRequests` shares only what it has
 * just found to be plain.
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

/** Limit in bytes of an answer that is kept until it is known whether a cancel request has hit its statement. */
const mostKept = 1_048_576;

/** The client that the statement belongs to. */
export interface SharingClient {
  readonly clientId: number;
  readonly pool: BackendPool;
  /** The client takes over the connection: its statement is the one that runs. */
  adopt(backend: Backend, generation: number): void;
  /** The statement was not run: the client waits for a connection again. */
  waitAgain(): void;
  /** The statement may have been run, or not. */
  statementLost(error: Error): void;
}

export class SharedStatement implements Follower {
  #client: SharingClient | undefined;
  readonly #pool: BackendPool;
  /** Profile of the statement that waits or was sent last; undefined where it may not share. */
  profile: StatementProfile | undefined;
  #state: 'none' | 'placed' | 'running' = 'none';
  #placed: PlacedStatement | undefined;
  #placedAt = 0;
  #backend: Backend | undefined;
  #bytes: Buffer | undefined;
  /** The run time of the statement is recorded. */
  #isMeasured = false;
  #wantsCancel = false;
  #hasAskedCancel = false;
  #mayBeHit = false;
  #isToRunAgain = false;
  /** Beginning of an answer whose statement may turn out to have been cancelled by mistake. */
  #kept: MessageWriter | undefined;

  constructor(client: SharingClient) {
    this.#client = client;
    this.#pool = client.pool;
  }

  get clientId(): number | undefined {
    return this.#client?.clientId;
  }

  /** The statement was sent behind others. */
  get isPlaced(): boolean {
    return this.#state === 'placed';
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** Id of the connection on which the statement is behind others. */
  get serverId(): number | undefined {
    return this.isPlaced ? this.#backend?.id : undefined;
  }

  /** Time when the statement was sent behind others. */
  get placedAt(): number {
    return this.#placedAt;
  }

  /** Sent bytes, kept until they are answered. */
  get bytes(): Buffer | undefined {
    return this.#bytes;
  }

  // ---- sent -------------------------------------------------------------------------------------------------------

  /** The statement was sent behind others. */
  place(placed: PlacedStatement, backend: Backend): void {
    this.#state = 'placed';
    this.#placed = placed;
    this.#backend = backend;
    this.#placedAt = systemClock.coarse();
  }

  /** The statement in these bytes runs, with or without others behind it. */
  run(bytes: Buffer): void {
    this.#state = 'running';
    this.#bytes = bytes;
  }

  /** Run time is recorded from now on. */
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
    if (client !== undefined) this.measure();
    if (!this.#wantsCancel) return;
    this.#wantsCancel = false;
    void this.cancel(backend);
  }

  /** The client leaves: its statement stays in the pipeline, and the answer is dropped. `cancels`: it is cancelled once it runs. */
  abandon(cancels: boolean): void {
    this.#client = undefined;
    this.#wantsCancel ||= cancels;
  }

  // ---- cancelling -------------------------------------------------------------------------------------------------

  /** The client wants its statement cancelled, once that runs. */
  cancelLater(): void {
    this.#wantsCancel = true;
  }

  /** Cancels the running statement. Resolves when the server has been told. */
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

  /** The stand-in for the statement can't be used, and other statements are behind it. */
  runAgain(): void {
    this.#isToRunAgain = true;
  }

  /** The statement has failed. Returns whether the client gets the error. */
  failed(code: string): boolean {
    this.#isMeasured = false;
    if (!this.#mayBeHit || this.#hasAskedCancel || code !== SqlState.queryCanceled) return true;
    this.#isToRunAgain = true;
    return false;
  }

  // ---- answers ----------------------------------------------------------------------------------------------------

  /** Filters a part of the answer. Undefined: send it as usual. Otherwise the bytes to send in its place, if any. */
  filter(answer: Outgoing, isLast: boolean): MessageWriter | 'nothing' | undefined {
    if (this.#isToRunAgain) {
      answer.clear();
      return 'nothing';
    }
    if (!this.#mayBeHit || (isLast && this.#kept === undefined)) return undefined;
    this.#kept ??= new MessageWriter();
    this.#kept.append(answer.take());
    if (!isLast && this.#kept.length < mostKept) return 'nothing';
    // A statement can't be run again once the client has a part of its answer.
    this.#mayBeHit = false;
    const kept = this.#kept;
    this.#kept = undefined;
    return kept;
  }

  /** The server is ready, `ms` after the statement was the one that ran. */
  answered(ms: number, now: number): void {
    if (this.#isMeasured && !this.#isToRunAgain) this.profile?.took(ms, now);
    this.#isMeasured = false;
  }

  /** The whole answer was passed on. Returns the bytes to send again, if any. */
  end(): Buffer | undefined {
    const again = this.#isToRunAgain ? this.#bytes : undefined;
    if (again !== undefined) this.#pool.tally.multiplexedAgain++;
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
