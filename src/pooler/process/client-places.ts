/** A client's place in the limits of clients: in this process and, with several processes, in the shared count. */

import type { ClientQuotas } from '../clients/client-limits.js';
import type { PoolerState } from './pooler-state.js';
import type { SharedParts } from './shared-parts.js';

/** Returns what gives the place back. Throws a refusal where there is none. */
export function takePlace(
  { limits, shared }: PoolerState,
  user: string,
  database: string,
  quotas: ClientQuotas,
): (() => void) | Promise<() => void> {
  const leave = limits.take(user, database, quotas);
  return shared === undefined ? leave : takeSharedPlace(shared, user, database, leave);
}

async function takeSharedPlace(
  shared: SharedParts,
  user: string,
  database: string,
  leave: () => void,
): Promise<() => void> {
  try {
    const leaveAll = await shared.places.take(user, database);
    return () => {
      leave();
      leaveAll();
    };
  } catch (error) {
    leave();
    throw error;
  }
}
