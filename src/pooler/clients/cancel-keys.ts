/** Cancel keys for clients. They are the pooler's own, since a client does not keep one server connection. */
import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import type { BackendKey } from '../../wire/session-messages.js';

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

/** Position, in the key of a pooler with peers, of the number of times that the request may still be passed on. */
const hopsAt = 2;
const mostHops = 0b11;

function markKey(secretKey: Buffer, peerId: number): void {
  secretKey.writeUInt16BE(peerId, 0);
  secretKey[hopsAt] = (secretKey[hopsAt] as number) | mostHops;
}

/** The peer id of the pooler that issued this key, if all poolers have peers. */
export function peerOfKey({ secretKey }: BackendKey): number {
  return secretKey.length < 4 ? 0 : secretKey.readUInt16BE(0);
}

/** The key for the next pooler; undefined if the request was passed on too often already. */
export function keyForPeer({ processId, secretKey }: BackendKey): BackendKey | undefined {
  const hops = (secretKey[hopsAt] as number) & mostHops;
  if (hops === 0) return undefined;
  const next = Buffer.from(secretKey);
  next[hopsAt] = (next[hopsAt] as number) - 1;
  return { processId, secretKey: next };
}

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
    if (this.#peerId > 0) markKey(secretKey, this.#peerId);
    this.#holders.set(processId, { secretKey, client });
    return { processId, secretKey };
  }

  /** The bytes of an issued key are not kept in the buffer. */
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

  /** The holder of this key. */
  find({ processId, secretKey }: BackendKey): Cancellable | undefined {
    const holder = this.#holders.get(processId);
    if (holder === undefined || holder.secretKey.length !== secretKey.length) return undefined;
    if (this.#peerId === 0) return timingSafeEqual(holder.secretKey, secretKey) ? holder.client : undefined;
    const [one, other] = [Buffer.from(holder.secretKey), Buffer.from(secretKey)];
    for (const key of [one, other]) key[hopsAt] = (key[hopsAt] as number) & ~mostHops;
    return timingSafeEqual(one, other) ? holder.client : undefined;
  }
}
