/**
 * `pool.connect()` beside its fast path: with options or a callback, on a pool that ends, and through the method of a tracer.
 *
 *     connect --> the tracer's method --> pg-pool's own connect --> newClient() --> PoolConnects
 */
import { PoolClosedError } from '../core/errors.js';
import { asPromiseOf, type PromisingPool } from './own-promise.js';
import type { ConnectCallback, PoolConnects } from './pool-connects.js';
import type { ConnectOptions } from './pool-interface.js';
import type { ReplacedMethods } from './replaced-methods.js';

interface CallingPool extends PromisingPool {
  readonly ending: boolean;
}

/** A call on its way through a tracer. */
interface Entry {
  readonly options?: ConnectOptions | undefined;
  readonly isQuery?: boolean;
}

const noop = (): void => {};

export class ConnectCalls {
  readonly #pool: CallingPool;
  readonly #tracer: ReplacedMethods;
  readonly #connects: PoolConnects;
  /** While a tracer's method runs: the arguments that its call can't carry. */
  #entering: Entry | undefined;

  constructor(pool: CallingPool, tracer: ReplacedMethods, connects: PoolConnects) {
    this.#pool = pool;
    this.#tracer = tracer;
    this.#connects = connects;
  }

  connect(first?: ConnectCallback | ConnectOptions, second?: ConnectCallback): unknown {
    const pool = this.#pool;
    if (this.#tracer.hasConnect && !pool.ending) {
      const [options, callback] = typeof first === 'function' ? [undefined, first] : [first, second];
      return this.#entering === undefined
        ? this.#enter({ options }, () => this.#tracer.connect(pool, callback))
        : this.#tracer.connect(pool, callback);
    }
    const callback = typeof first === 'function' ? first : second;
    const options = typeof first === 'object' && first !== null ? first : undefined;
    if (callback !== undefined) return this.#withCallback(callback, options);
    if (pool.ending) return pool.Promise.reject(new PoolClosedError());
    try {
      return asPromiseOf(pool, this.#connects.asPromise(options));
    } catch (error) {
      return pool.Promise.reject(error);
    }
  }

  /** A query through the tracer's method. */
  tracedQuery(text: unknown, values: unknown, callback: unknown): unknown {
    return this.#enter({ isQuery: true }, () => this.#tracer.query(this.#pool, text, values, callback));
  }

  /** pg-pool's own `connect`, called by a tracer, asks for a client. */
  newClient(callback: ConnectCallback): void {
    const entry = this.#entering;
    // Code in the program's hooks is not part of this call.
    this.#entering = undefined;
    this.#withCallback(callback, entry?.options, entry?.isQuery);
  }

  #enter(entry: Entry, call: () => unknown): unknown {
    this.#entering = entry;
    try {
      return call();
    } finally {
      this.#entering = undefined;
    }
  }

  #withCallback(callback: ConnectCallback, options: ConnectOptions | undefined, isQuery = false): unknown {
    if (this.#pool.ending) return callback(new PoolClosedError(), undefined, noop);
    this.#connects.withCallback(callback, options, isQuery);
    return undefined;
  }
}
