/** Cancel keys for clients. They are the pooler's own, since a client does not keep one server connection. */
import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import type { BackendKey } from '../../wire/session-messages.js';
import { keyWithoutPeer, keyWithPeer } from './peer-keys.js';

/** The holder of a key. */
export interface Cancellable {
  /** Resolves when everything possible is done. */
  cancel(): Promise<void>;
}

/** Some programs read a process id as a signed number, and reject a negative one. */
const largestProcessId = 0x7fff_ffff;
const shortSecretBytes = 4;
/** Well below the 256 that are possible, so that a pooler in front of this one can add its own. */
const longSecretBytes = 32;
/** Asking the system for a few random bytes takes about as long as asking for many. */
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
  readonly #peerId: number;
  readonly #holders = new Map<number, Holder>();
  #random: Buffer = Buffer.alloc(0);
  #randomAt = 0;

  /** `peerId`: id of this pooler among the poolers at the same address; 0 without peers. */
  constructor(ids: ProcessIds = allIds, peerId = 0) {
    this.#ids = ids;
    this.#peerId = peerId;
  }

  get size(): number {
    return this.#holders.size;
  }

  /** `isLong`: the client speaks protocol 3.2 or newer. */
  register(client: Cancellable, isLong: boolean): BackendKey {
    let processId = this.#newId();
    while (this.#holders.has(processId)) processId = this.#newId();
    const secretKey = this.#newSecret(isLong ? longSecretBytes : shortSecretBytes);
    const issued = { processId, secretKey };
    const key = this.#peerId > 0 ? keyWithPeer(issued, this.#peerId) : issued;
    this.#holders.set(processId, { secretKey: this.own(key).secretKey, client });
    return key;
  }

  /** A client's key as it is known in this pooler: with peers, without what is for them. */
  own(key: BackendKey): BackendKey {
    return this.#peerId > 0 ? keyWithoutPeer(key) : key;
  }

  /** The bytes of an issued key are not kept in the buffer. */
  #newSecret(bytes: number): Buffer {
    if (this.#randomAt + bytes > this.#random.length) {
      this.#random = randomBytes(randomAtOnce);
      this.#randomAt = 0;
    }
    const own = Buffer.allocUnsafe(bytes);
    for (let at = 0; at < bytes; at++) {
      own[at] = this.#random[this.#randomAt] as number;
      this.#random[this.#randomAt++] = 0;
    }
    return own;
  }

  #newId(): number {
    return this.#ids.of(randomInt(1, this.#ids.largest));
  }

  /** `key`: as it was issued. */
  forget(key: BackendKey): void {
    this.#holders.delete(this.own(key).processId);
  }

  /** The holder of this key, as `own()` returns it. */
  find({ processId, secretKey }: BackendKey): Cancellable | undefined {
    const holder = this.#holders.get(processId);
    if (holder === undefined || holder.secretKey.length !== secretKey.length) return undefined;
    return timingSafeEqual(holder.secretKey, secretKey) ? holder.client : undefined;
  }
}
