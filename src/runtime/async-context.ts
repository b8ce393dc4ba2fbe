/**
 * The owner of a piece of work, as `AsyncLocalStorage` sees it: work for a caller runs in the context of its call, and
 * work for no caller (keepalive, refill, lifetimes, leases, timers) in none, so that no request's store outlives the
 * request. Promises carry their context by themselves; callbacks, events and timers do not.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';

/** The context of the call that makes it. */
export class CallerContext extends AsyncResource {
  constructor() {
    super('headgate.caller');
  }
}

/** The context of a caller in a queue; undefined where it has none. */
export function contextOf(waiter: object | undefined): CallerContext | undefined {
  const { context } = (waiter ?? {}) as { readonly context?: unknown };
  return context instanceof CallerContext ? context : undefined;
}

/** The function, to be called from anywhere and run in the present context. */
export function inPresentContext<A extends unknown[]>(call: (...args: A) => unknown): (...args: A) => void {
  const context = new CallerContext();
  return (...args) => {
    context.runInAsyncScope(call, undefined, ...args);
  };
}

/** The empty context. Never the one that a program's code runs in: a store set by that code must not stay here. */
let nobody: AsyncResource | undefined;

function contextOfNobody(): AsyncResource {
  if (nobody === undefined) {
    nobody = new AsyncResource('headgate.nobody');
    // May be made inside a request: modules are loaded lazily.
    forgetContext(nobody);
  }
  return nobody;
}

/** Runs `task` with no store of any `AsyncLocalStorage`. */
export function withoutContext<A, R>(task: (argument: A) => R, argument: A): R {
  return contextOfNobody().runInAsyncScope(runAfresh<A, R>, undefined, task, argument);
}

function runAfresh<A, R>(task: (argument: A) => R, argument: A): R {
  return new AsyncResource('headgate.pool').runInAsyncScope(task, undefined, argument);
}

/** `withoutContext()` at less cost, for a function that sets a timer and runs no foreign code. */
export function setWithoutContext(task: () => void): void {
  contextOfNobody().runInAsyncScope(task);
}

/** Takes the stores off an async resource that lives for longer than the call in which it was made. */
export function forgetContext(resource: object): void {
  storeSymbols ??= keepsFrames() ? learnStoreSymbols() : new Set(['kResourceStore']);
  for (const symbol of Object.getOwnPropertySymbols(resource)) {
    if (storeSymbols.has(symbol.description)) Reflect.deleteProperty(resource, symbol);
  }
}

/** Descriptions of the symbols under which Node keeps stores on a resource. */
let storeSymbols: ReadonlySet<string | undefined> | undefined;

/** From Node 24 on, all stores are in one frame. Before, each storage has a symbol, and using one slows promises down for good. */
function keepsFrames(): boolean {
  return Number.parseInt(process.versions.node, 10) >= 24;
}

function learnStoreSymbols(): ReadonlySet<string | undefined> {
  const trial = new AsyncLocalStorage<object>();
  const store = {};
  const resource = trial.run(store, () => new AsyncResource('headgate.trial'));
  const symbols = Object.getOwnPropertySymbols(resource).filter((symbol) => {
    const value = (resource as unknown as Record<symbol, unknown>)[symbol];
    return value === store || holds(value, trial, store);
  });
  return new Set(symbols.map((symbol) => symbol.description));
}

/** A frame is a map of a class that Node keeps to itself: no `Map` of this program. */
function holds(value: unknown, trial: object, store: object): boolean {
  const { get } = (value ?? {}) as { readonly get?: unknown };
  return typeof get === 'function' && get.call(value, trial) === store;
}

interface Handle {
  asyncReset?(resource: object): void;
  /** Below TLS: the handle of the TCP connection. */
  readonly _parent?: Handle | undefined;
}

/**
 * Runs the events of a socket in the current context from now on, whichever it was opened in. Node's own `http.Agent`
 * does the same for sockets that it reuses; a stream without such a handle is left unchanged.
 */
export function adoptSocket(stream: unknown): void {
  let handle = (stream as { readonly _handle?: Handle | null } | undefined)?._handle ?? undefined;
  for (; handle !== undefined && handle !== null; handle = handle._parent) {
    if (typeof handle.asyncReset !== 'function') return;
    forgetContext(handle);
    handle.asyncReset(new SocketContext());
  }
}

class SocketContext {}
