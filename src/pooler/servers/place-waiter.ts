/** A waiter of the pooler's own, for whom another kind of connection may be dialed. */
import { Waiter } from '../../core/waiters.js';
import type { Backend } from './backend.js';

export abstract class PlaceWaiter extends Waiter<Backend> {
  /** Startup parameters of a client that replicates: a dial for this waiter opens its connection at once. */
  replication: ReadonlyMap<string, string> | undefined;
}
