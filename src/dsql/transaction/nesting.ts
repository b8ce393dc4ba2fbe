/** Notices a transaction inside another one of the same pool, however many calls are between them. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { TransactionMisuseError } from './errors.js';

interface Scope {
  readonly pool: object;
  readonly outer: Scope | undefined;
  isOpen: boolean;
}

const scopes = new AsyncLocalStorage<Scope>();

export function refuseNesting(pool: object): void {
  for (let scope = scopes.getStore(); scope !== undefined; scope = scope.outer) {
    if (scope.isOpen && scope.pool === pool) throw new TransactionMisuseError('nested');
  }
}

/** Runs the function of a transaction. What it leaves running afterwards is outside of the transaction. */
export async function insideTransaction<T>(pool: object, fn: () => T | Promise<T>): Promise<T> {
  const scope: Scope = { pool, outer: openScope(scopes.getStore()), isOpen: true };
  try {
    return await scopes.run(scope, async () => fn());
  } finally {
    scope.isOpen = false;
  }
}

/** Scopes that are over are left out, so that none is kept by those that follow. */
function openScope(scope: Scope | undefined): Scope | undefined {
  let open = scope;
  while (open !== undefined && !open.isOpen) open = open.outer;
  return open;
}
