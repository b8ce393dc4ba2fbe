/**
 * Numbers that are different in all workers: a worker's own number stands in front of its own count, in as few bits as the
 * workers need, and all fits into a positive number of four bytes.
 */

const bits = 31;

export class WorkerIds {
  /** From 1. */
  readonly worker: number;
  readonly #shift: number;

  /** `workers`: how many there are. */
  constructor(worker: number, workers: number) {
    this.worker = worker;
    this.#shift = shiftFor(workers);
  }

  /** The largest count that fits. */
  get largest(): number {
    return 2 ** this.#shift - 1;
  }

  /** `own` is from 1 to `largest`; what is larger begins again. */
  of(own: number): number {
    return this.worker * 2 ** this.#shift + (own % 2 ** this.#shift);
  }
}

/** Whose number it is, and which of its own; undefined where no worker can have given it out. */
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
