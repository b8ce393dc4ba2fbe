/** Chooses the transport of a socket. */
import type { Socket } from 'node:net';
import { nativeHandleOf } from './native-streams.js';
import { RawTransport, type ReadBuffer } from './raw-transport.js';
import type { SocketEnds } from './socket-ends.js';
import type { SocketTransport } from './socket-transport.js';
import { StreamTransport } from './stream-transport.js';

/** For a plain socket that is connected, allows half-open connections and has no reader. */
export function plainTransport(socket: Socket, ends: SocketEnds, readBuffer: ReadBuffer): SocketTransport {
  const handle = nativeHandleOf(socket);
  return handle === undefined
    ? new StreamTransport(socket, ends)
    : new RawTransport(socket, handle, ends, readBuffer);
}
