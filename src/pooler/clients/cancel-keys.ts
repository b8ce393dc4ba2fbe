/** The keys with which clients can cancel: the pooler's own, since a client has no server of its own. */
import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import type { BackendKey } from '../../wire/session-messages.js';

/** Whoever has a key. */
export interface Cancellable {
  /** Resolves when all is done that can be done. */
  cancel(): Promise<void>;
}

/** Some programs take a process id for a signed number, and a negative one for nonsense. */
const largestProcessId = 0x7fff_ffff;
const shortSecretBytes = 4;
/** Well below the 256 that are possible, so that a pooler in front of this one can add its own. */
const longSecretBytes = 32;
/** To ask the system for a few random bytes takes about as long as for many. */
const randomAtOnce = 4_096;

interface Holder {
  readonly secretKey: Buffer;
  readonly client: Cancellable;
}

/** Process ids that no other process gives out. */
export interface ProcessIds {
  readonly largest: number;
  of(own: number): number;
}

const allIds: ProcessIds = { largest: largestProcessId, of: (own) => own };

export class CancelKeys {
  readonly #ids: ProcessIds;
  readonly #holders = new Map<number, Holder>();
  #random: Buffer = Buffer.alloc(0);
  #randomAt = 0;

  constructor(ids: ProcessIds = allIds) {
    this.#ids = ids;
  }

  get size(): number {
    return this.#holders.size;
  }

  /** `isLong`: the client speaks protocol 3.2 or newer. */
  register(client: Cancellable, isLong: boolean): BackendKey {
    let processId = this.#newId();
    while (this.#holders.has(processId)) processId = this.#newId();
    const secretKey = this.#newSecret(isLong ? longSecretBytes : shortSecretBytes);
    this.#holders.set(processId, { secretKey, client });
    return { processId, secretKey };
  }

  /** What was given out is here no more. */
  #newSecret(bytes: number): Buffer {
    if (this.#randomAt + bytes > this.#random.length) {
      this.#random = randomBytes(randomAtOnce);
      this.#randomAt = 0;
    }
    const secret = this.#random.subarray(this.#randomAt, this.#randomAt + bytes);
    const own = Buffer.from(secret);
    secret.fill(0);
    this.#randomAt += bytes;
    return own;
  }

  #newId(): number {
    return this.#ids.of(randomInt(1, this.#ids.largest));
  }

  forget(processId: number): void {
    this.#holders.delete(processId);
  }

  /** Who has this key. */
  find({ processId, secretKey }: BackendKey): Cancellable | undefined {
    const holder = this.#holders.get(processId);
    if (holder === undefined || holder.secretKey.length !== secretKey.length) return undefined;
    return timingSafeEqual(holder.secretKey, secretKey) ? holder.client : undefined;
  }
}
