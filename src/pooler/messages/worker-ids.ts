/**
 * Ids that are unique among all workers: the worker's number, in as few bits as the workers need, is followed by the worker's
 * own count. An id fits into a positive number of four bytes.
 */

const bits = 31;

export class WorkerIds {
  /** Counted from 1. */
  readonly worker: number;
  readonly #shift: number;

  /** `workers`: number of workers. */
  constructor(worker: number, workers: number) {
    this.worker = worker;
    this.#shift = shiftFor(workers);
  }

  /** The largest count that fits. */
  get largest(): number {
    return 2 ** this.#shift - 1;
  }

  /** `own` is from 1 to `largest`; larger values wrap around. */
  of(own: number): number {
    return this.worker * 2 ** this.#shift + (own % 2 ** this.#shift);
  }
}

/** The worker that issued an id, and its own count; undefined where no worker can have issued it. */
export function ownerOf(
  id: number,
  workers: number,
): { readonly worker: number; readonly own: number } | undefined {
  const size = 2 ** shiftFor(workers);
  const worker = Math.floor(id / size);
  return worker >= 1 && worker <= workers ? { worker, own: id % size } : undefined;
}

function shiftFor(workers: number): number {
  return bits - (32 - Math.clz32(workers));
}
