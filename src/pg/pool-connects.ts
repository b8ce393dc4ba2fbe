/** `pool.connect()` in all its forms: with a promise or a callback, with a timeout and a signal, at once or after a wait. */

import type { ConnectionPool } from '../core/connection-pool.js';
import { soon } from '../runtime/soon.js';
import { readWait, type Wait } from '../runtime/waiting.js';
import type { PgClient } from './client.js';
import type { ClientCheckouts } from './client-checkouts.js';
import type { PgConnection } from './pg-connection.js';
import type { Pooled, ReleasableClient } from './pipelining-pool.js';
import type { ConnectOptions } from './pool-interface.js';
import { CallbackWaiter, ClientWaiter, enqueue } from './pool-waiters.js';

export type ConnectCallback = (
  error: Error | undefined,
  client: PgClient | undefined,
  release: (error?: unknown) => void,
) => unknown;

type Entry = (...args: never[]) => unknown;

interface ConnectSettings {
  readonly noticesHolders: boolean;
  /** The pool's own methods, through which every caller comes. */
  readonly connect: Entry;
  readonly tryConnect: Entry;
}

const noop = (): void => {};

export class PoolConnects {
  readonly #engine: ConnectionPool<PgConnection>;
  readonly #checkouts: ClientCheckouts;
  readonly #settings: ConnectSettings;
  /** Each checkout records where it was made. */
  noticesHolders: boolean;

  constructor(engine: ConnectionPool<PgConnection>, checkouts: ClientCheckouts, settings: ConnectSettings) {
    this.#engine = engine;
    this.#checkouts = checkouts;
    this.#settings = settings;
    this.noticesHolders = settings.noticesHolders;
  }

  /** A ready client, or none. */
  atOnce(): ReleasableClient | undefined {
    const pooled = this.#engine.tryTake(this.#newHolder(this.#settings.tryConnect));
    return pooled === undefined ? undefined : this.#checkouts.checkOut(pooled);
  }

  /** Throws if the options make no sense. */
  asPromise(options: ConnectOptions | undefined): Promise<PgClient> {
    const wait = this.#readWait(options);
    const holder = this.#newHolder(this.#settings.connect);
    const pooled = wait.signal?.aborted ? undefined : this.#engine.tryTake(holder);
    if (pooled !== undefined) return Promise.resolve(this.#checkouts.checkOut(pooled));
    const waiter = new ClientWaiter(this.#checkouts.checkOut, holder);
    return waiter.wait(this.#engine, wait.timeoutMs, wait.signal);
  }

  /** The callback comes later in every case, and never from inside another caller's release. */
  withCallback(callback: ConnectCallback, options: ConnectOptions | undefined, isQuery: boolean): void {
    const fail = (error: Error): void => soon(callback, error, undefined, noop);
    const succeed = (pooled: Pooled): void => {
      if (isQuery) this.#engine.exemptFromLeaks(pooled);
      const client = this.#checkouts.checkOut(pooled);
      soon(callback, undefined, client, client.release);
    };
    try {
      const wait = this.#readWait(options);
      const holder = this.#newHolder(this.#settings.connect);
      const pooled = wait.signal?.aborted ? undefined : this.#engine.tryTake(holder);
      if (pooled !== undefined) succeed(pooled);
      else enqueue(this.#engine, new CallbackWaiter(succeed, fail, holder), wait);
    } catch (error) {
      fail(error as Error);
    }
  }

  /** The place of the call: the frames below `entry`. */
  #newHolder(entry: Entry): Error | undefined {
    if (!this.noticesHolders) return undefined;
    const holder = new Error('taken here');
    Error.captureStackTrace(holder, entry);
    return holder;
  }

  #readWait(options: ConnectOptions | undefined): Wait {
    return readWait(options ?? {}, this.#engine.usualTimeoutMs);
  }
}
