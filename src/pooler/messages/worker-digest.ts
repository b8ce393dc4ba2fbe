/** Digest of a worker, with ids of clients and servers that are unique among all workers. */
import type { Digest } from '../process/page-digest.js';
import type { WorkerIds } from './worker-ids.js';

export function withWorkerIds(digest: Digest, ids: WorkerIds): Digest {
  return {
    ...digest,
    worker: ids.worker,
    longestPins: digest.longestPins.map((pin) => ({ ...pin, client: ids.of(pin.client) })),
    running: digest.running.map((one) => ({
      ...one,
      client: ids.of(one.client),
      server: one.server === undefined ? undefined : ids.of(one.server),
    })),
  };
}
