/** Opens, closes and checks server connections for the engine. */
import type { ConnectionPool } from '../../core/connection-pool.js';
import type { Dial, Dialer } from '../../core/dialer.js';
import type { PooledConnection } from '../../core/pooled-connection.js';
import type { Waiter } from '../../core/waiters.js';
import { asError } from '../../runtime/promise-dialer.js';
import type { ErrorFields } from '../../wire/error-fields.js';
import { terminate } from '../../wire/fixed-messages.js';
import { BackendRefusedError, TokenRefusedError } from '../errors.js';
import type { Backend } from './backend.js';
import { Caretaker } from './backend-user.js';
import { dialFailureCauseOf, isRateExceeded } from './dial-failure.js';
import { Opening } from './opening.js';
import { PlaceWaiter } from './place-waiter.js';

/** Opens a connection and logs in. Rejects when its signal fires. */
export type OpenBackend = (opening: Opening) => Promise<Backend>;

interface UnderWay {
  readonly opening: Opening;
  readonly abort: AbortController;
}

export class BackendDialer implements Dialer<Backend> {
  readonly #open: OpenBackend;
  readonly #checkQuery: () => string;
  readonly #underWay = new Map<Dial<Backend>, UnderWay>();
  #engine!: ConnectionPool<Backend>;

  constructor(open: OpenBackend, checkQuery: () => string) {
    this.#open = open;
    this.#checkQuery = checkQuery;
  }

  /** Engine and dialer need each other; the dialer is made first. */
  answerTo(engine: ConnectionPool<Backend>): void {
    this.#engine = engine;
  }

  dial(dial: Dial<Backend>): void {
    const abort = new AbortController();
    const { waiter } = dial;
    const replication = waiter instanceof PlaceWaiter ? waiter.replication : undefined;
    const opening = new Opening(abort.signal, replication);
    this.#underWay.set(dial, { opening, abort });
    this.#open(opening).then(
      (backend) => {
        this.#underWay.delete(dial);
        this.#engine.dialed(dial, backend);
      },
      (thrown: unknown) => {
        this.#underWay.delete(dial);
        const error = asError(thrown);
        // The server may accept a fresh token. That takes another dial with its own lease and permit; there is no third dial.
        if (error instanceof TokenRefusedError && this.#engine.dialAgain(dial)) return;
        // The server serves ordinary clients all the same: the refusal is its own client's, and no failure of the pool.
        if (replication !== undefined && error instanceof BackendRefusedError && this.#refuse(waiter, error))
          if (this.#engine.dialAgain(dial)) return;
        if (isRateExceeded(error)) this.#engine.rateExceeded();
        this.#engine.dialFailed(dial, error, dialFailureCauseOf(error));
      },
    );
  }

  /** False for one that was answered already. */
  #refuse(waiter: Waiter<Backend> | undefined, error: Error): boolean {
    if (waiter === undefined || !this.#engine.withdraw(waiter)) return false;
    waiter.failed(error);
    return true;
  }

  abandon(dial: Dial<Backend>): void {
    this.#underWay.get(dial)?.abort.abort();
  }

  /** Dials that are still wanted. */
  *openings(): IterableIterator<Opening> {
    for (const [{ state }, { opening }] of this.#underWay) if (state === 'dialing') yield opening;
  }

  close(pooled: PooledConnection<Backend>): void {
    const { connection: backend } = pooled;
    if (backend.isGone) {
      this.#engine.closed(pooled);
      return;
    }
    backend.user = new Closer(() => this.#engine.closed(pooled));
    const { transport } = backend;
    transport.send(terminate, 0, terminate.length);
    transport.end();
  }

  destroy(pooled: PooledConnection<Backend>): void {
    pooled.connection.destroy();
  }

  check(pooled: PooledConnection<Backend>): void {
    const { connection: backend } = pooled;
    backend.user = new Checker(backend, (error) => this.#engine.checked(pooled, error));
    backend.own.ask(this.#checkQuery());
    backend.flush();
  }
}

class Closer extends Caretaker {
  readonly #closed: () => void;

  constructor(closed: () => void) {
    super();
    this.#closed = closed;
  }

  override backendLost(): void {
    this.#closed();
  }
}

class Checker extends Caretaker {
  readonly #backend: Backend;
  readonly #answer: (error?: Error) => void;

  constructor(backend: Backend, answer: (error?: Error) => void) {
    super();
    this.#backend = backend;
    this.#answer = answer;
  }

  override ownQueryAnswered(error: ErrorFields | undefined): void {
    this.#backend.user = undefined;
    this.#answer(error && new Error(error.message));
  }

  override backendLost(error: Error): void {
    this.#answer(error);
  }
}
