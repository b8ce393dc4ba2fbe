/**
 * A connection on its way from one process to another. Both have it until the sender closes its own. Where the layer below
 * Node's streams is to be had, the bare handle is sent: it needs no answer of Node's own, and nobody has read from it at
 * the other end.
 */
import type { ChildProcess, SendHandle } from 'node:child_process';
import { Socket, type SocketConstructorOpts } from 'node:net';
import { nativeHandleOf } from '../../net/native-streams.js';

/** Whether it arrives, the other side has to say. */
export function sendSocket(to: ChildProcess, message: object, socket: Socket): void {
  const handle = nativeHandleOf(socket) as SendHandle | undefined;
  const unsaid = (): void => {};
  if (handle === undefined) to.send(message, socket, { keepOpen: true }, unsaid);
  else to.send(message, handle, {}, unsaid);
}

/** What came with a message, as a socket that has just been accepted and that nobody reads from; undefined for nothing. */
export function socketOf(came: unknown): Socket | undefined {
  if (came === undefined || came === null) return undefined;
  if (came instanceof Socket) return stopReading(came);
  const options = { handle: came, pauseOnCreate: true, allowHalfOpen: true };
  return new Socket(options as SocketConstructorOpts);
}

/** Node has begun to read by itself, and takes the end of what comes for the end of all. */
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
