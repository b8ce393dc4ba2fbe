/** Checks out a server connection for one of the pooler's own queries, and releases it. */
import type { PooledConnection } from '../../core/pooled-connection.js';
import { asError } from '../../runtime/promise-dialer.js';
import { OwnQueryError } from '../errors.js';
import { textOf, transition } from '../settings/transition.js';
import type { Backend } from './backend.js';
import type { BackendPool } from './backend-pool.js';
import { PlaceWaiter } from './place-waiter.js';
import { askServer } from './server-question.js';

export interface BorrowOptions {
  readonly timeoutMs: number;
  /** Fires when the connection is not needed any more. */
  readonly signal: AbortSignal;
  /** Keeps waiting while the server is unreachable, instead of failing with the reason. */
  readonly isPatient?: boolean;
  /** Leaves the connection as unused as it was, where the number of uses is limited. */
  readonly isUncounted?: boolean;
  /** Startup parameters for replication: a connection that is dialed for this wait is one for replication with these. */
  readonly replication?: ReadonlyMap<string, string>;
}

/** Runs `use`, which must leave the connection settled or reject. Rejects with the engine's error if no connection is available. */
export async function borrow<T>(
  pool: BackendPool,
  options: BorrowOptions,
  use: (backend: Backend) => Promise<T>,
): Promise<T> {
  const pooled = await takeClean(pool, options);
  const { connection: backend, generation } = pooled;
  if (options.isUncounted === true) pooled.uncountedUses++;
  try {
    return await use(backend);
  } finally {
    if (backend.isSettled) pool.release(backend, generation);
    else pool.discard(backend, generation, new Error('It was given back with work under way.'));
  }
}

/** Checks out a connection with the settings of a new session. A server that refuses to reset its settings is replaced. */
async function takeClean(pool: BackendPool, options: BorrowOptions): Promise<PooledConnection<Backend>> {
  pool.tally.borrowed++;
  for (;;) {
    const pooled = pool.tryTake() ?? (await wait(pool, options));
    const { connection: backend, generation } = pooled;
    try {
      // The server may have closed the connection since it was granted.
      if (!backend.isLost) {
        await forgetSettings(backend, pool);
        return pooled;
      }
      pool.lost(backend, generation, new Error('The server closed the connection.'));
    } catch (error) {
      pool.discard(backend, generation, error as Error);
      if (!(error instanceof OwnQueryError)) throw error;
    }
  }
}

async function forgetSettings(backend: Backend, { settings: { none } }: BackendPool): Promise<void> {
  if (backend.settings === none) return;
  const text = textOf(transition(backend.settings, none));
  backend.settings = none;
  await askServer(backend, { what: 'Resetting the settings', text });
}

function wait(
  pool: BackendPool,
  { timeoutMs, signal, isPatient = false, replication }: BorrowOptions,
): Promise<PooledConnection<Backend>> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const waiter = new Borrower((pooled, error) => {
      signal.removeEventListener('abort', abort);
      if (pooled === undefined) reject(error);
      else if (signal.aborted) {
        if (pooled.connection.isSettled) pool.release(pooled.connection, pooled.generation);
        else pool.discard(pooled.connection, pooled.generation, asError(signal.reason));
        reject(signal.reason);
      } else resolve(pooled);
    });
    waiter.isPatient = isPatient;
    waiter.replication = replication;
    const abort = (): void => {
      if (pool.leave(waiter)) reject(signal.reason);
    };
    signal.addEventListener('abort', abort);
    pool.enqueue(waiter, timeoutMs);
  });
}

type Answer = (pooled: PooledConnection<Backend> | undefined, error?: Error) => void;

class Borrower extends PlaceWaiter {
  readonly #answer: Answer;

  constructor(answer: Answer) {
    super();
    this.#answer = answer;
  }

  override granted(pooled: PooledConnection<Backend>): void {
    pooled.connection.replication?.claim(this.replication);
    process.nextTick(this.#answer, pooled);
  }

  override failed(error: Error): void {
    process.nextTick(this.#answer, undefined, error);
  }
}
