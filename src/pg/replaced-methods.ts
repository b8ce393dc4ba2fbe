/**
 * Tracers (OpenTelemetry, dd-trace) replace `connect` and `query` of pg's own Pool by functions that call the originals.
 * Our class extends that one and calls the replaced method: the tracer then calls pg-pool's method, and that our
 * `newClient`.
 */
export interface PoolMethods {
  readonly connect?: unknown;
  readonly query?: unknown;
}

/** Texts that occur only in pg-pool's own methods. */
const marks = { connect: 'newClient', query: 'dispatching query' } as const;

/** A tracer may have come before this class was made, or come later. */
export class ReplacedMethods {
  readonly #base: PoolMethods;
  #connect: unknown;
  #query: unknown;

  constructor(base: PoolMethods) {
    this.#base = base;
    this.#connect = isReplaced(base.connect, marks.connect) ? undefined : base.connect;
    this.#query = isReplaced(base.query, marks.query) ? undefined : base.query;
  }

  get hasConnect(): boolean {
    const { connect } = this.#base;
    if (connect === this.#connect) return false;
    if (isReplaced(connect, marks.connect)) return true;
    this.#connect = connect;
    return false;
  }

  get hasQuery(): boolean {
    const { query } = this.#base;
    if (query === this.#query) return false;
    if (isReplaced(query, marks.query)) return true;
    this.#query = query;
    return false;
  }

  /** Tracers look for the callback in the last place. */
  connect(pool: object, callback: unknown): unknown {
    return call(this.#base.connect, pool, [callback]);
  }

  query(pool: object, text: unknown, values: unknown, callback: unknown): unknown {
    return call(this.#base.query, pool, [text, values, callback]);
  }
}

function call(method: unknown, pool: object, args: unknown[]): unknown {
  while (args.length > 0 && args.at(-1) === undefined) args.pop();
  return (method as (...args: unknown[]) => unknown).apply(pool, args);
}

const known = new WeakMap<object, boolean>();

/** True if a function was replaced: its source lacks `mark`. */
export function isReplaced(method: unknown, mark: string): boolean {
  if (typeof method !== 'function') return false;
  let answer = known.get(method);
  if (answer === undefined) {
    answer = !Function.prototype.toString.call(method).includes(mark);
    known.set(method, answer);
  }
  return answer;
}
