/**
 * Cancel keys of poolers with peers, in PgBouncer's layout, so that PgBouncer and Headgate can be each other's peers. Of the first
 * eight bytes, the second and third are the id of the peer, lowest byte first, and the last two bits count how often the request may
 * still be passed on. The sign bit of the process id is 0. The other 45 bits are the key of the client.
 */
import type { BackendKey } from '../../wire/session-messages.js';

const mostHops = 0b11;
/** Bytes of the process id and of the shortest secret. */
const laidOutBytes = 8;

/** The key as the client gets it. */
export function keyWithPeer({ processId, secretKey }: BackendKey, peerId: number): BackendKey {
  const bytes = Buffer.alloc(laidOutBytes + secretKey.length - 4);
  const id = Buffer.alloc(4);
  id.writeUInt32BE(processId);
  bytes[0] = id[0] as number;
  bytes.writeUInt16LE(peerId, 1);
  id.copy(bytes, 3, 1);
  secretKey.copy(bytes, 6, 2);
  bytes[7] = (bytes[7] as number) | mostHops;
  return { processId: bytes.readUInt32BE(0), secretKey: bytes.subarray(4) };
}

/** The key without peer and hops: equal to that of every other key for the same client. */
export function keyWithoutPeer({ processId, secretKey }: BackendKey): BackendKey {
  const id = Buffer.alloc(4);
  id.writeUInt32BE(processId);
  secretKey.copy(id, 2, 0, 2);
  id[1] = processId & 0xff;
  const own = Buffer.from(secretKey);
  own.writeUInt16BE(0, 0);
  own[3] = (own[3] as number) & ~mostHops;
  return { processId: id.readUInt32BE(0), secretKey: own };
}

/** The peer id of the pooler that issued this key, if all poolers have peers. */
export function peerOfKey({ processId }: BackendKey): number {
  return ((processId >>> 16) & 0xff) | (processId & 0xff00);
}

/** The key for the next pooler; undefined if the request was passed on too often already. */
export function keyForPeer({ processId, secretKey }: BackendKey): BackendKey | undefined {
  const hops = (secretKey[3] as number) & mostHops;
  if (hops === 0) return undefined;
  const next = Buffer.from(secretKey);
  next[3] = (next[3] as number) - 1;
  return { processId, secretKey: next };
}
