/**
 * Hands a connection from one process to another. Both have it until the sender closes its own handle. If the handle below
 * Node's streams is available, it is sent bare: that needs no confirmation of Node's own, and the receiving process does not
 * start reading.
 */
import type { ChildProcess, SendHandle } from 'node:child_process';
import { Socket, type SocketConstructorOpts } from 'node:net';
import { nativeHandleOf } from '../../net/native-streams.js';

/** Arrival must be confirmed by the other side. */
export function sendSocket(to: ChildProcess, message: object, socket: Socket): void {
  const handle = nativeHandleOf(socket) as SendHandle | undefined;
  const unsaid = (): void => {};
  if (handle === undefined) to.send(message, socket, { keepOpen: true }, unsaid);
  else to.send(message, handle, {}, unsaid);
}

/** The socket that came with a message, as if just accepted, with reading stopped; undefined for none. */
export function socketOf(came: unknown): Socket | undefined {
  if (came === undefined || came === null) return undefined;
  if (came instanceof Socket) return stopReading(came);
  const options = { handle: came, pauseOnCreate: true, allowHalfOpen: true };
  return new Socket(options as SocketConstructorOpts);
}

/** Node has started reading on its own, and takes the end of input for the end of the connection. */
function stopReading(socket: Socket): Socket {
  socket.allowHalfOpen = true;
  const handle = nativeHandleOf(socket);
  if (handle === undefined) socket.pause();
  else {
    handle.readStop();
    handle.reading = false;
  }
  return socket;
}
