/** The process at the other end of a Unix socket. */
import { fileNumberOf } from './socket-options.js';
import { SocketTransport } from './socket-transport.js';
import { type PeerCredentials, peerCredentials } from './system-calls.js';
import type { Transport } from './transport.js';

/** Undefined for other sockets, for closed ones, and where the system can't be asked. */
export function peerOf(transport: Transport): PeerCredentials | undefined {
  if (!transport.isUnix || !(transport instanceof SocketTransport)) return undefined;
  return peerCredentials(fileNumberOf(transport.socket));
}
