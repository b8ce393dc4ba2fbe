/** The process at the other end of a Unix socket. */
import { SocketTransport } from './socket-transport.js';
import { type PeerCredentials, peerCredentials } from './system-calls.js';
import type { Transport } from './transport.js';

/** A closed socket has no peer any more, and its end is logged with the peer. */
const known = new WeakMap<Transport, PeerCredentials>();

/** Undefined for other sockets, for closed ones that were never asked, and where the system can't be asked. */
export function peerOf(transport: Transport): PeerCredentials | undefined {
  if (!transport.isUnix || !(transport instanceof SocketTransport)) return undefined;
  let peer = known.get(transport);
  if (peer !== undefined) return peer;
  peer = peerCredentials(transport.fileNumber);
  if (peer !== undefined) known.set(transport, peer);
  return peer;
}
