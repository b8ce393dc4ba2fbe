/**
 * Opens, closes and checks node-postgres clients for the engine, with pg-pool's hooks on the way. A dial runs in the async
 * context of the caller it is for; everything else, and the client once it is open, in none.
 */
import type { DialFailureCause } from '../core/breaker.js';
import type { ConnectionPool } from '../core/connection-pool.js';
import type { Dial, Dialer } from '../core/dialer.js';
import type { PooledConnection } from '../core/pooled-connection.js';
import { contextOf, withoutContext } from '../runtime/async-context.js';
import { asError } from '../runtime/promise-dialer.js';
import { destroySocket, dialAgain, type PgClient, type PgClientClass, refillCause } from './client.js';
import { closeClient } from './client-closing.js';
import { ClientLosses } from './client-losses.js';
import { adoptForListener, prepareClient, watchClient } from './held-client.js';
import { listenForLife } from './lasting-listeners.js';
import { PgConnection } from './pg-connection.js';

/** The pool as the dialer sees it. The options are handed to each client as they are. */
export interface DialingPool {
  readonly Client: PgClientClass;
  readonly options: {
    readonly onConnect?: ((client: PgClient) => unknown) | undefined;
    readonly verify?: ((client: PgClient, done: (error?: Error) => void) => void) | undefined;
  };
  /** Logs. An exception of the program's log function becomes an uncaught exception. */
  note(message: string, error?: Error): void;
  /** Emits an event. An exception of a listener becomes an uncaught exception, as if thrown outside the pool. */
  tell(event: string, ...args: unknown[]): void;
  /** Emits an event from within an event of the client: what a listener throws goes to the emitter of that. */
  emit(event: string, ...args: unknown[]): boolean;
  readonly name: string;
  /** From now on each checkout records where it was made. */
  noticeHolders(): void;
}

/**
 * One dial.
 *
 *     connecting --> setting up --> (open)
 *           \              \--> refused --> (failed)
 *            \--> refused ---------------> (failed), or another dial in its place where the client asks for it
 */
interface Attempt {
  readonly dial: Dial<PgConnection>;
  readonly client: PgClient;
  stage: 'connecting' | 'setting up' | 'refused' | 'answered';
  /** Listens on the client while it is being set up: an error then fails the dial. */
  readonly onSetUpError: (error: Error) => void;
}

export class PgDialer implements Dialer<PgConnection> {
  readonly #pool: DialingPool;
  readonly #attempts = new Map<Dial<PgConnection>, Attempt>();
  #engine!: ConnectionPool<PgConnection>;
  #losses!: ClientLosses;

  constructor(pool: DialingPool) {
    this.#pool = pool;
  }

  /** The engine and its dialer need each other; the dialer comes first. */
  answerTo(engine: ConnectionPool<PgConnection>): void {
    this.#engine = engine;
    this.#losses = new ClientLosses(this.#pool, engine);
  }

  /** The clients that are being opened. */
  get clients(): PgClient[] {
    return Array.from(this.#attempts.values(), ({ client }) => client);
  }

  dial(dial: Dial<PgConnection>): void {
    const context = contextOf(dial.waiter);
    if (context === undefined) withoutContext(this.#begin, dial);
    else context.runInAsyncScope(this.#begin, undefined, dial);
  }

  readonly #begin = (dial: Dial<PgConnection>): void => {
    let client: PgClient;
    try {
      client = new this.#pool.Client(this.#pool.options);
    } catch (error) {
      this.#engine.dialFailed(dial, asError(error));
      return;
    }
    const attempt: Attempt = {
      dial,
      client,
      stage: 'connecting',
      onSetUpError: (error) => this.#refuse(attempt, error),
    };
    this.#attempts.set(dial, attempt);
    prepareClient(client);
    this.#pool.note('connecting new client');
    try {
      client.connect((error) => {
        if (attempt.stage !== 'connecting') return;
        if (error) this.#failWhenGone(attempt, error);
        else this.#setUp(attempt);
      });
    } catch (error) {
      this.#fail(attempt, asError(error));
    }
  };

  abandon(dial: Dial<PgConnection>): void {
    const attempt = this.#attempts.get(dial);
    if (attempt !== undefined) withoutContext(this.#abandon, attempt);
  }

  readonly #abandon = (attempt: Attempt): void => {
    const { client, stage } = attempt;
    // The native client can't be stopped between being connected and saying so.
    if (stage === 'connecting' && client.connection === undefined && client.isConnected?.()) return;
    this.#pool.note('ending client due to timeout');
    try {
      destroySocket(client);
    } catch {
      // A client without a socket can't be destroyed; the engine gives its slot back after a while.
    }
  };

  close(pooled: PooledConnection<PgConnection>): void {
    withoutContext(this.#close, pooled);
  }

  readonly #close = (pooled: PooledConnection<PgConnection>): void => {
    const closed = (): void => this.#engine.closed(pooled);
    try {
      closeClient(pooled, closed);
    } catch {
      this.destroy(pooled);
      closed();
    }
  };

  destroy(pooled: PooledConnection<PgConnection>): void {
    try {
      withoutContext(destroySocket, pooled.connection.client);
    } catch {
      // No more can be done for it, and no caller waits for the outcome.
    }
  }

  check(pooled: PooledConnection<PgConnection>): void {
    withoutContext(this.#check, pooled);
  }

  readonly #check = (pooled: PooledConnection<PgConnection>): void => {
    try {
      pooled.connection.client.query?.('SELECT 1', undefined, (error) => {
        this.#engine.checked(pooled, error ?? undefined);
      });
    } catch (error) {
      this.#engine.checked(pooled, asError(error));
    }
  };

  /** From connected to open: runs the hooks, each of which may refuse the client. */
  #setUp(attempt: Attempt): void {
    const { client } = attempt;
    const { onConnect } = this.#pool.options;
    attempt.stage = 'setting up';
    this.#pool.note('new client connected');
    client.on('error', attempt.onSetUpError);
    if (!onConnect) {
      this.#announce(attempt);
      return;
    }
    const refuse = (error: unknown): void => this.#refuse(attempt, asError(error));
    let hook: unknown;
    try {
      hook = onConnect(client);
    } catch (error) {
      refuse(error);
      return;
    }
    Promise.resolve(hook).then(() => this.#announce(attempt), refuse);
  }

  #announce(attempt: Attempt): void {
    if (attempt.stage !== 'setting up') return;
    const { client } = attempt;
    const { verify } = this.#pool.options;
    const connection = new PgConnection(client);
    this.#pool.tell('connect', client);
    if (!verify) {
      this.#open(attempt, connection);
      return;
    }
    connection.isAnnounced = true;
    this.#pool.tell('acquire', client);
    const verified = (error?: unknown): void => {
      if (!error) {
        this.#open(attempt, connection);
        return;
      }
      if (attempt.stage !== 'setting up') return;
      this.#pool.tell('release', error, client);
      this.#refuse(attempt, asError(error), () => this.#pool.tell('remove', client));
    };
    try {
      verify(client, verified);
    } catch (error) {
      verified(error);
    }
  }

  #open(attempt: Attempt, connection: PgConnection): void {
    if (attempt.stage !== 'setting up') return;
    attempt.client.removeListener?.('error', attempt.onSetUpError);
    listenForLife(attempt.client, {
      error: (error: Error) => {
        this.#losses.failed(connection, error);
        connection.onQueryError?.(error);
      },
      end: () => this.#losses.ended(connection),
      newListener: () => adoptForListener(connection),
    });
    watchClient(connection);
    this.#answered(attempt);
    this.#engine.dialed(attempt.dial, connection);
  }

  /** Closes a connected client that is not wanted, in good order; it counts until its socket is closed. */
  #refuse(attempt: Attempt, error: Error, whenGone?: () => void): void {
    if (attempt.stage !== 'setting up') return;
    attempt.stage = 'refused';
    const gone = (): void => {
      whenGone?.();
      this.#fail(attempt, error);
    };
    try {
      if (attempt.client.end === undefined) gone();
      else attempt.client.end(gone);
    } catch {
      gone();
    }
  }

  /** A client that never connected needs no goodbye, but counts until its socket is closed. */
  #failWhenGone(attempt: Attempt, error: Error): void {
    const stream = attempt.client.connection?.stream;
    attempt.stage = 'refused';
    this.#pool.note('client failed to connect', error);
    if (isRateExceeded(error)) this.#engine.rateExceeded();
    // Ignores errors after the first one.
    attempt.client.on('error', () => {});
    const gone = (): void => {
      if (asksForAnother(error) && this.#engine.dialAgain(attempt.dial)) this.#answered(attempt);
      else this.#fail(attempt, error);
    };
    if (stream === undefined || stream.closed) {
      gone();
      return;
    }
    stream.once('close', gone);
    stream.destroy();
  }

  #fail(attempt: Attempt, error: Error): void {
    if (attempt.stage === 'answered') return;
    this.#answered(attempt);
    this.#engine.dialFailed(attempt.dial, error, causeOf(error));
  }

  #answered(attempt: Attempt): void {
    attempt.stage = 'answered';
    this.#attempts.delete(attempt.dial);
  }
}

/** configuration_limit_exceeded: the error of a server that limits the rate of new connections. */
function isRateExceeded(error: Error): boolean {
  const { code, sqlState } = error as { code?: unknown; sqlState?: unknown };
  return code === '53400' || sqlState === '53400';
}

function causeOf(error: Error): DialFailureCause {
  if (isRateExceeded(error)) return 'rate_limit';
  return (error as { [refillCause]?: DialFailureCause })[refillCause] ?? 'connection_open';
}

function asksForAnother(error: Error): boolean {
  return Boolean((error as { [dialAgain]?: true })[dialAgain]);
}
